import type { Client } from 'cassandra-driver';
import { historyTable } from '../../core/migration/history-table.ts';
import type { Migration } from '../../core/migration/migration.ts';
import { anyDefinition } from '../../core/records.ts';
import { cassandra } from '../../plugins/dialects/cassandra/dialect.ts';
import { lockTableColumn } from '../../plugins/dialects/cassandra/records/lock-partition.ts';
import { encodeColumn } from '../../plugins/dialects/cassandra/records/record-values.ts';
import { clientOf, freshKeyspace, unavailable } from '../../test/kit/cassandra.ts';
import type { Bare, BenchEngine } from './contender.ts';
import { rowOf } from './row.ts';

export function cassandraBench(): BenchEngine {
  if (unavailable !== undefined) throw new Error(unavailable);
  return {
    dialect: cassandra,
    server: 'the Cassandra node of the tests',
    fresh: async () => {
      const { url, keyspace, drop } = await freshKeyspace();
      const [, points = ''] = /^cassandra:\/\/([^/]+)/.exec(url) ?? [];
      return { url, bare: () => bare(clientOf(points.split(','), keyspace)), drop };
    },
    close: async () => undefined,
  };
}

/** The values of the dialect. */
const PAGE = 1000;
const CONCURRENCY = 64;

async function bare(client: Client): Promise<Bare> {
  await client.connect();
  const send = (cql: string, values: unknown[] = []) => client.execute(cql, values as never[], { prepare: true });
  return {
    async migrate(migrations) {
      await client.execute(HISTORY);
      let done: Statement[] = [];
      for (const [index, one] of migrations.entries()) {
        await write(send, [...done, historyWrite(one, index + 1, 'applying')]);
        const run = cassandra.compile(one.up[0] as never, new Map())[0]?.run;
        if (run?.kind !== 'ddl') throw new Error(`${one.tag} compiles to no DDL statement`);
        // The driver waits for schema agreement.
        await client.execute(run.cql);
        done = [historyWrite(one, index + 1, 'completed')];
      }
      await write(send, done);
    },
    async load(rows) {
      await client.execute('CREATE TABLE load (id int PRIMARY KEY, name text)');
      const ids = Array.from({ length: rows }, (_, id) => id);
      await forEachConcurrently(ids, (id) => send('INSERT INTO load (id, name) VALUES (?, ?)', [id, `n${id}`]));
    },
    async backfill() {
      await client.execute('ALTER TABLE load ADD IF NOT EXISTS kind text');
      const read = 'SELECT id, kind, writetime(name) AS written FROM load';
      let pageState: string | undefined;
      let filled = 0;
      do {
        const page = await client.execute(read, [], {
          prepare: true,
          fetchSize: PAGE,
          autoPage: false,
          ...(pageState !== undefined && { pageState }),
        });
        const update = 'UPDATE load USING TIMESTAMP ? SET kind = ? WHERE id = ?';
        const open = page.rows.filter(({ kind }) => kind === null);
        filled += open.length;
        await forEachConcurrently(open, ({ written, id }) => send(update, [written, 'person', id]));
        pageState = page.pageState ?? undefined;
      } while (pageState !== undefined);
      return filled;
    },
    close: () => client.shutdown(),
  };
}

interface Statement {
  readonly cql: string;
  readonly values: unknown[];
}

type Send = (cql: string, values: unknown[]) => Promise<unknown>;

/** The history rows share a partition, so that several writes fit into one lightweight transaction. */
async function write(send: Send, statements: readonly Statement[]): Promise<void> {
  const [only] = statements;
  if (only && statements.length === 1) return void (await send(only.cql, only.values));
  const cql = `BEGIN BATCH ${statements.map((one) => `${one.cql};`).join(' ')} APPLY BATCH`;
  await send(
    cql,
    statements.flatMap(({ values }) => values),
  );
}

const definition = anyDefinition(historyTable);
const TYPES = {
  string: 'text',
  text: 'text',
  json: 'text',
  bigint: 'bigint',
  integer: 'int',
  double: 'double',
};
const HISTORY = `CREATE TABLE "_svc_migrations" (scope text, kind text, key text, "_version" bigint, ${Object.entries(
  definition.columns,
)
  .map(
    ([name, { type }]) =>
      `"${lockTableColumn(definition, name)}" ${{ ...TYPES, boolean: 'boolean', timestamp: 'timestamp' }[type]}`,
  )
  .join(', ')}, PRIMARY KEY (scope, kind, key))`;

function historyWrite(one: Migration, seq: number, status: 'applying' | 'completed'): Statement {
  const { migration, ...rest } = rowOf(one, seq, status);
  const row = status === 'applying' ? { ...rest, migration } : rest;
  const entries = Object.entries(row);
  const version = status === 'applying' ? 1 : 2;
  return {
    cql: `UPDATE "_svc_migrations" SET ${entries.map(([name]) => `"${name}" = ?`).join(', ')}, "_version" = ? WHERE scope = ? AND kind = ? AND key = ? IF "_version" = ?`,
    values: [
      ...entries.map(([name, value]) => {
        const column = definition.columns[name];
        if (!column) throw new Error(`there is no column ${name}`);
        return encodeColumn(value, column, name);
      }),
      BigInt(version),
      'migrations',
      historyTable.collection,
      one.tag,
      version === 1 ? null : 1n,
    ],
  };
}

async function forEachConcurrently<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < items.length) await work(items[next++] as T);
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
}
