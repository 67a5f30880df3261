import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { StorageBackend } from '../../core/approval/backend.ts';
import { inboxPageAndCount } from '../../core/approval/inbox.ts';
import { listApprovals } from '../../core/approval/list-approvals.ts';
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
import { longLivedJvm } from '../../test/servers/engines/cassandra.ts';
import { find } from '../../test/servers/find.ts';
import type { TestDatabase } from '../../test/suites/test-database.ts';
import { machineFacts } from '../machine.ts';
import { saveResult } from '../report.ts';
import { table } from '../table.ts';
import { gateOn, nextCall, perSecond, serviceOn, spread, storeRequest, toolsWith } from './stage.ts';

/*
 * A page of 100,000 waiting requests, by every declared index, on every engine: `npm run bench -- pages
 * [--waiting=100000] [--quick] [engine…]`. The requests are copies of one that the gate created, each with its own id, execution
 * and deadline, written directly to the store. Only a complete run writes results/pages.md.
 */

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: { waiting: { type: 'string' }, rounds: { type: 'string' }, quick: { type: 'boolean' } },
});
const DEFAULT_WAITING = 100_000;
const waiting = Number(flags.waiting ?? (flags.quick ? 2_000 : DEFAULT_WAITING));
const rounds = Number(flags.rounds ?? 60);
const LIMIT_MS = 50;
const HOUR_MS = 3_600_000;

const onServer = (name: 'mysql' | 'mariadb') => async (): Promise<TestDatabase> => {
  const server = await find(name);
  if ('missing' in server) throw new Error(server.missing);
  return freshMysql(server.url);
};

const ENGINES: Readonly<Record<string, { readonly dialect: Dialect; fresh(): Promise<TestDatabase> }>> = {
  postgresql: { dialect: postgresql, fresh: freshDatabase },
  mysql: { dialect: mysql, fresh: onServer('mysql') },
  mariadb: { dialect: mariadb, fresh: onServer('mariadb') },
  mongodb: { dialect: mongodb, fresh: freshMongo },
  cassandra: {
    dialect: cassandra,
    async fresh() {
      // The node of the tests is not usable here: its JVM flags trade throughput for a fast start.
      const folder = mkdtempSync(join(tmpdir(), 'svc-cassandra-'));
      const node = new CassandraNode('127.0.0.2', '127.0.0.2', folder, longLivedJvm('2g'));
      await node.start();
      const database = await freshKeyspace([node.point]);
      return {
        url: database.url,
        async drop() {
          await database.close();
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
      const database = freshPrefix(server.port);
      return {
        url: database.url,
        async drop() {
          await database.drop();
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
  const { request } = await storeRequest(gate, nextCall());
  const template = await service.read(request.requestId);
  if (!template) throw new Error('the request is not in the store');
  let count = 0;
  const filled = await perSecond(waiting, 64, () => {
    count += 1;
    const row: ApprovalRow = {
      ...template.record,
      requestId: newRequestId(),
      agentTag: `agent ${count % 10}`,
      executionId: `exe_${count % 1000}`,
      shard: count % EXPIRY_SHARDS,
      expiresAt: new Date(template.record.expiresAt.getTime() + count),
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
    () => inboxPageAndCount(service, { status: 'waiting', limit: 20 }, 100),
  ];
  const times: number[][] = [];
  for (const page of pages) {
    const pageTimes: number[] = [];
    // The negative rounds warm up the server.
    for (let round = -rounds; round < rounds; round++) {
      const startedAt = performance.now();
      await page();
      if (round >= 0) pageTimes.push(performance.now() - startedAt);
    }
    times.push(pageTimes);
  }
  await service.close();
  return { filled, times };
}

const results: string[][] = [];
for (const name of positionals.length > 0 ? positionals : Object.keys(ENGINES)) {
  const engine = ENGINES[name];
  if (!engine) throw new Error(`unknown engine ${name}: choose from ${Object.keys(ENGINES).join(', ')}`);
  const { url, drop } = await engine.fresh();
  const backend = await engine.dialect.connect(url, {});
  try {
    const { filled, times } = await pagesOn(backend);
    const cells = times.map((pageTimes) => {
      const { p50, p95 } = spread(pageTimes);
      return `${p50.toFixed(1)}, ${p95.toFixed(1)}${p95 > LIMIT_MS ? ' MISSED' : ''}`;
    });
    results.push([name, ...cells, `${filled.toFixed(0)}/s`]);
    console.error(`${name}: ${cells.join(' | ')}`);
  } finally {
    await backend.close();
    await drop();
  }
}
const HEAD = ['', '100 by status', 'by agent', 'by execution', 'by expiry', '1,000 by status', 'inbox', 'written'];
const text = [
  '# Measured with `npm run bench -- pages`',
  `A page of ${waiting.toLocaleString('en')} waiting requests: p50 and p95 of ${rounds}, in ms (target: p95 of at most ${LIMIT_MS}).`,
  (await machineFacts([])).map((fact) => `- ${fact}`).join('\n'),
  table(HEAD, results),
].join('\n\n');
console.log(text);
if (positionals.length === 0 && Object.keys(flags).length === 0) await saveResult('pages.md', text);
