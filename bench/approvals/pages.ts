import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { StorageBackend } from '../../core/approval/backend.ts';
import { listApprovals } from '../../core/approval/list.ts';
import { newRequestId } from '../../core/approval/request.ts';
import { type ApprovalRow, EXPIRY_SHARDS } from '../../core/approval/schema.ts';
import type { Dialect } from '../../core/dialect.ts';
import { cassandra } from '../../plugins/dialects/cassandra/dialect.ts';
import { dynamodb } from '../../plugins/dialects/dynamodb/dialect.ts';
import { mariadb } from '../../plugins/dialects/mariadb/dialect.ts';
import { mongodb } from '../../plugins/dialects/mongodb/dialect.ts';
import { mysql } from '../../plugins/dialects/mysql/dialect.ts';
import { postgresql } from '../../plugins/dialects/postgresql/dialect.ts';
import { freshKeyspace } from '../../test/kit/cassandra.ts';
import { CassandraNode } from '../../test/kit/cassandra-nodes.ts';
import { freshPrefix } from '../../test/kit/dynamodb.ts';
import { freshMongo } from '../../test/kit/mongodb.ts';
import { freshDatabase as freshMysql } from '../../test/kit/mysql.ts';
import { ownDynamodb } from '../../test/kit/own-dynamodb.ts';
import { freshDatabase } from '../../test/kit/postgresql.ts';
import { lasting } from '../../test/servers/engines/cassandra.ts';
import { find } from '../../test/servers/find.ts';
import type { TestDatabase } from '../../test/suites/test-database.ts';
import { keep } from '../report.ts';
import { table } from '../table.ts';
import { gateOn, nextCall, perSecond, serviceOn, spread, stored, toolsWith } from './stage.ts';

/*
 * A page of 100,000 waiting requests, by every declared index, on every engine: `npm run bench -- pages
 * [--waiting=100000] [engine…]`. Requests are copies of one that the gate made, each with an id, an execution and a
 * deadline of its own, written by the store itself. Only all of it writes results/pages.md.
 */

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: { waiting: { type: 'string' }, rounds: { type: 'string' } },
});
const MANY = 100_000;
const waiting = Number(flags.waiting ?? MANY);
const rounds = Number(flags.rounds ?? 60);
const LIMIT_MS = 50;
const HOUR_MS = 3_600_000;

const onServer = (name: 'mysql' | 'mariadb') => async (): Promise<TestDatabase> => {
  const found = await find(name);
  if ('missing' in found) throw new Error(found.missing);
  return freshMysql(found.url);
};

const ENGINES: Readonly<Record<string, { readonly dialect: Dialect; fresh(): Promise<TestDatabase> }>> = {
  postgresql: { dialect: postgresql, fresh: freshDatabase },
  mysql: { dialect: mysql, fresh: onServer('mysql') },
  mariadb: { dialect: mariadb, fresh: onServer('mariadb') },
  mongodb: { dialect: mongodb, fresh: freshMongo },
  cassandra: {
    dialect: cassandra,
    async fresh() {
      // The one of the tests is started for minutes, with half of what makes Java fast left out.
      const folder = mkdtempSync(join(tmpdir(), 'svc-cassandra-'));
      const node = new CassandraNode('127.0.0.2', '127.0.0.2', folder, lasting('2g'));
      await node.start();
      const own = await freshKeyspace([node.point]);
      return {
        url: own.url,
        async drop() {
          await own.close();
          await node.kill();
          rmSync(folder, { recursive: true, force: true });
        },
      };
    },
  },
  dynamodb: {
    dialect: dynamodb,
    async fresh() {
      const server = await ownDynamodb();
      const own = freshPrefix(server.port);
      return {
        url: own.url,
        async drop() {
          await own.drop();
          await server.kill();
        },
      };
    },
  },
};

async function pagesOn(
  backend: StorageBackend,
): Promise<{ readonly filled: number; readonly times: readonly number[][] }> {
  const service = await serviceOn(backend);
  const gate = gateOn(
    service,
    toolsWith(() => 'paid'),
    24 * HOUR_MS,
  );
  const { request } = await stored(gate, nextCall());
  const one = await service.read(request.requestId);
  if (!one) throw new Error('the request is not in the store');
  let at = 0;
  const filled = await perSecond(waiting, 64, () => {
    at += 1;
    const row: ApprovalRow = {
      ...one.record,
      requestId: newRequestId(),
      agentTag: `agent ${at % 10}`,
      executionId: `exe_${at % 1000}`,
      shard: at % EXPIRY_SHARDS,
      expiresAt: new Date(one.record.expiresAt.getTime() + at),
    };
    return service.rows.insert(row);
  });
  const due = { equals: { status: 'waiting' as const, shard: 3 }, limit: 100, to: new Date(Date.now() + 25 * HOUR_MS) };
  const pages = [
    () => listApprovals(service),
    () => listApprovals(service, { agentTag: 'agent 3' }),
    () => listApprovals(service, { executionId: 'exe_7' }),
    () => service.rows.page('byExpiry', due),
    () => listApprovals(service, { limit: 1000 }),
  ];
  const times: number[][] = [];
  for (const page of pages) {
    const took: number[] = [];
    // The first are of a server that was never asked.
    for (let round = -rounds; round < rounds; round++) {
      const began = performance.now();
      await page();
      if (round >= 0) took.push(performance.now() - began);
    }
    times.push(took);
  }
  await service.close();
  return { filled, times };
}

const found: string[][] = [];
for (const name of positionals.length > 0 ? positionals : Object.keys(ENGINES)) {
  const engine = ENGINES[name];
  if (!engine) throw new Error(`there is no engine ${name}: choose of ${Object.keys(ENGINES).join(', ')}`);
  const { url, drop } = await engine.fresh();
  const backend = await engine.dialect.connect(url, {});
  try {
    const { filled, times } = await pagesOn(backend);
    const cells = times.map((took) => {
      const { p50, p95 } = spread(took);
      return `${p50.toFixed(1)}, ${p95.toFixed(1)}${p95 > LIMIT_MS ? ' MISSED' : ''}`;
    });
    found.push([name, ...cells, `${filled.toFixed(0)}/s`]);
    console.error(`${name}: ${cells.join(' | ')}`);
  } finally {
    await backend.close();
    await drop();
  }
}
const HEAD = ['', '100 by status', 'by agent', 'by execution', 'by expiry', '1,000 by status', 'written'];
const text = [
  '# Measured with `npm run bench -- pages`',
  `A page of ${waiting.toLocaleString('en')} waiting requests: p50 and p95 of ${rounds}, in ms (aim: p95 of at most ${LIMIT_MS}).`,
  table(HEAD, found),
].join('\n\n');
console.log(text);
if (positionals.length === 0 && waiting === MANY) await keep('pages.md', text);
