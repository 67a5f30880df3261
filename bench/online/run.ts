import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Dialect } from '../../core/dialect.ts';
import { migrate } from '../../core/migration/migrate.ts';
import type { Migration } from '../../core/migration/migration.ts';
import { applyAll } from '../../core/schema/apply.ts';
import type { Operation } from '../../core/schema/operation.ts';
import { mariadb } from '../../plugins/dialects/mariadb/dialect.ts';
import { mysql } from '../../plugins/dialects/mysql/dialect.ts';
import { postgresql } from '../../plugins/dialects/postgresql/dialect.ts';
import { definedInCode } from '../../test/kit/migrations.ts';
import { connectTarget } from '../../test/kit/target.ts';
import { run } from '../command.ts';
import { drizzleFiles } from '../contenders.ts';
import { dropDatabases, freshDatabase, serverFacts } from '../database.ts';
import { type Engine, engineOf } from '../engine.ts';
import { installPeers } from '../install.ts';
import { machineFacts } from '../machine.ts';
import { saveSections } from '../report.ts';
import { table } from '../table.ts';
import { writeAll } from '../workload.ts';
import { CHANGES, type Change, TABLES } from './changes.ts';
import { isDocumentEngine, measureDocuments } from './documents.ts';
import { cell, longest, measure, type Round } from './round.ts';

/*
 * How long an application waits while its table changes: `npm run bench -- online [--rows=1000000] [--quick] [engine…]`. It sends
 * 100 writes and 100 reads a second; 50 and 50 on MongoDB, DynamoDB and Cassandra, with 100,000 rows. A run without flags
 * writes the sections of its engines into results/online.md, each when it is done.
 */

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: { rows: { type: 'string' }, quick: { type: 'boolean' } },
});
const ROWS = Number(flags.rows ?? (flags.quick ? 20_000 : 1_000_000));
/** Engines without SQL are written more slowly. */
const DOCUMENTS = Number(flags.rows ?? (flags.quick ? 5_000 : 100_000));
const AIM_MS = 200;
const LIMIT_MS = 1_000;

const DIALECTS: Readonly<Record<string, Dialect>> = { postgresql, mysql, mariadb };
const names = positionals.length > 0 ? positionals : Object.keys(DIALECTS);

const BEFORE: Migration = {
  ...{ tag: '20260101_000000_tables', name: 'tables', up: TABLES, down: [], irreversible: 'It is not needed.' },
};
const migrationOf = (operation: Operation): Migration => ({
  tag: '20260102_000000_change',
  name: 'change',
  up: [operation],
  down: [],
  irreversible: 'It is not needed.',
});

/** The statements as a person writes them. */
const plainSql = (dialect: Dialect, { operation }: Change): readonly string[] =>
  dialect.compile(operation, applyAll(TABLES)).map(({ text }) => text);

interface Contender {
  readonly name: string;
  change(url: string, change: Change): Promise<void>;
}

function contendersOf(engine: Engine, dialect: Dialect): readonly Contender[] {
  const inFolder = async (url: string, script: string, files: readonly (readonly [string, string])[]) => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-bench-online-'));
    await writeAll(folder, files);
    try {
      const args = [fileURLToPath(new URL(`../peers/${script}`, import.meta.url)), 'up'];
      await run({ args, cwd: folder, env: { DATABASE_URL: url }, timeoutMs: 600_000 });
    } finally {
      await rm(folder, { recursive: true });
    }
  };
  return [
    {
      name: 'svc',
      async change(url, { operation }) {
        const target = await connectTarget(dialect, url);
        try {
          const migrations = [BEFORE, migrationOf(operation)].map(definedInCode);
          await migrate(target, migrations, { allowDestructive: true });
        } finally {
          await target.connection.close();
        }
      },
    },
    {
      name: 'plain SQL',
      change: async (url, change) => {
        for (const text of plainSql(dialect, change)) await engine.query(url, text);
      },
    },
    {
      name: 'knex',
      change: (url, { knex = '' }) =>
        inFolder(url, 'knex.mjs', [
          [
            'migrations/20260102000000_change.cjs',
            `exports.up = (knex) => knex.schema.alterTable('visits', (t) => { ${knex}; });\nexports.down = () => undefined;\n`,
          ],
        ]),
    },
    {
      name: 'drizzle',
      change: (url, change) =>
        inFolder(
          url,
          'drizzle.mjs',
          drizzleFiles(engine, [
            {
              tag: '0001_change',
              sql: plainSql(dialect, change).join(';\n--> statement-breakpoint\n'),
              table: 'visits',
            },
          ]),
        ),
    },
  ];
}

/** The base, with its rows, from which each round begins. */
async function fill(engine: Engine, dialect: Dialect, url: string): Promise<void> {
  const target = await connectTarget(dialect, url);
  await migrate(target, [definedInCode(BEFORE)]);
  await target.connection.close();
  const isPostgresql = engine.name === 'postgresql';
  const numbers = isPostgresql
    ? `generate_series(1, ${ROWS}) AS s(n)`
    : `(SELECT @n := @n + 1 AS n FROM information_schema.columns a, information_schema.columns b, (SELECT @n := 0) z LIMIT ${ROWS}) s`;
  const text = isPostgresql ? "'c' || n" : "concat('c', n)";
  await engine.query(url, 'INSERT INTO owners (id) VALUES (1), (2), (3)');
  await engine.query(
    url,
    `INSERT INTO visits (name, n, owner, code, status, old) SELECT 'a name of some length', n % 1000, 1 + n % 3, ${text}, 'open', n FROM ${numbers}`,
  );
  await engine.query(url, isPostgresql ? 'VACUUM ANALYZE' : 'ANALYZE TABLE visits');
}

async function copy(engine: Engine, base: string, name: string): Promise<string> {
  if (engine.name === 'postgresql') {
    await engine.query(engine.server, engine.drop(name));
    await engine.query(engine.server, `CREATE DATABASE ${name} TEMPLATE ${base}`);
    const url = new URL(engine.server);
    url.pathname = `/${name}`;
    return url.href;
  }
  const url = await freshDatabase(engine, name);
  const tables = await engine.query(
    url,
    `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = '${base}' ORDER BY table_name`,
  );
  for (const row of tables) {
    const [one] = Object.values(row);
    const [shown = {}] = await engine.query(url, `SHOW CREATE TABLE ${base}.${one}`);
    // Unlike LIKE, with the names of checks.
    await engine.query(url, String(Object.values(shown)[1]));
    await engine.query(url, `INSERT INTO ${one} SELECT * FROM ${base}.${one}`);
  }
  return url;
}

const INTRODUCTION = [
  '# Measured with `npm run bench -- online`',
  '',
  `A table with ${ROWS.toLocaleString('en')} rows changes while an application sends 100 writes and 100 reads a second. In each cell: the`,
  'longest write and the longest read in milliseconds, and how long the change took. drizzle sends the same statements as plain SQL,',
  'in one transaction; knex writes its own. An empty cell: all three send the statement of plain SQL. "nothing" is two seconds',
  'without a change.',
].join('\n');
const facts = (await machineFacts([])).join('; ');

async function report([title = '', ...lines]: readonly string[]): Promise<void> {
  const section = [title, '', facts, ...lines].join('\n');
  console.log(section);
  if (Object.keys(flags).length === 0) await saveSections('online.md', INTRODUCTION, [section]);
}

for (const name of names) {
  if (isDocumentEngine(name)) {
    await report(await measureDocuments(name, DOCUMENTS));
    continue;
  }
  const dialect = DIALECTS[name];
  if (!dialect) throw new Error(`unknown engine ${name}: choose from ${Object.keys(DIALECTS).join(', ')}`);
  const engine = await engineOf(name as Engine['name']);
  await installPeers();
  const contenders = contendersOf(engine, dialect);
  const base = `svc_bench_online_${process.pid}`;
  console.error(`${name}: writing ${ROWS.toLocaleString('en')} rows`);
  await fill(engine, dialect, await freshDatabase(engine, base));
  const rows: string[][] = [];
  const own: Round[] = [];
  const round = async (change: () => (url: string) => Promise<void>): Promise<Round> => {
    const url = await copy(engine, base, `${base}_round`);
    const result = await measure({ url, rows: ROWS, perSecond: 100 }, () => change()(url));
    await engine.query(engine.server, engine.drop(`${base}_round`));
    return result;
  };
  rows.push(['nothing', cell(await round(() => () => wait(2_000)))]);
  for (const change of CHANGES) {
    const cells: string[] = [];
    for (const contender of change.knex === undefined ? contenders.slice(0, 2) : contenders) {
      const result = await round(() => (url) => contender.change(url, change));
      if (contender.name === 'svc' && result.refused === undefined) own.push(result);
      cells.push(cell(result));
    }
    rows.push([change.name, ...contenders.map((_, index) => cells[index] ?? '')]);
    console.error([name, change.name, ...cells].join(' | '));
  }
  await dropDatabases();
  const worst = longest(own.flatMap(({ writes }) => writes));
  await report([
    `## ${await serverFacts(engine)}`,
    '',
    table(['', ...contenders.map((one) => one.name)], rows),
    '',
    `svc: the longest write took ${worst.toFixed(0)} ms (aim ${AIM_MS} ms: ${worst <= AIM_MS ? 'reached' : 'MISSED'}; limit ${LIMIT_MS} ms: ${worst <= LIMIT_MS ? 'kept' : 'BROKEN'}).`,
  ]);
}
