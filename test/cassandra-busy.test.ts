import * as assert from 'node:assert/strict';
import { Database } from '../core/database/database.ts';
import { migration } from '../core/migration/builder.ts';
import { migrate } from '../core/migration/migrate.ts';
import { anyDefinition, type RecordDefinition } from '../core/records.ts';
import { cassandra } from '../plugins/dialects/cassandra/dialect.ts';
import { clientOf, type FreshKeyspace, freshKeyspace, unavailable } from './kit/cassandra.ts';
import { OVERLOADED, READ_TIMEOUT, startCassandraProxy } from './kit/cassandra-proxy.ts';
import { definedInCode } from './kit/migrations.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';

// What a change of a table leaves to the application at the same time.

const ROWS = 2_500;
const key = { name: 'id', type: 'integer', primaryKey: true } as const;
const tables = migration('20260101_000000_tables')
  .createCollection('many', [key, { name: 'n', type: 'integer' }, { name: 's', type: 'text' }])
  .build();
const filled = migration('20260102_000000_filled')
  .addField('many', { name: 'kind', type: 'text', default: 'x', required: true })
  .build();
const renamed = migration('20260102_000000_renamed').renameField('many', 's', 't', { strategy: 'copy' }).build();

async function withKeyspace(body: (keyspace: FreshKeyspace) => Promise<void>): Promise<void> {
  const keyspace = await freshKeyspace();
  try {
    await body(keyspace);
  } finally {
    await keyspace.drop();
  }
}

/** The table `many` with its rows, through a proxy that answers statements with errors. */
const withRows = (
  errorFor: (cql: string, pageSize: number | undefined) => number | undefined,
  body: (target: Awaited<ReturnType<typeof connectTarget>>, keyspace: FreshKeyspace) => Promise<void>,
) =>
  withKeyspace(async (keyspace) => {
    const { hostname, port } = new URL(keyspace.url);
    const direct = await connectTarget(cassandra, keyspace.url);
    await migrate(direct, [definedInCode(tables)]);
    await direct.connection.close();
    for (let from = 0; from < ROWS; from += 500)
      await Promise.all(
        Array.from({ length: 500 }, (_, at) =>
          keyspace.query('INSERT INTO many (id, n, s) VALUES (?, ?, ?)', [from + at, from + at, 's']),
        ),
      );
    const proxy = await startCassandraProxy(Number(port), errorFor);
    const target = await connectTarget(
      cassandra,
      keyspace.url.replace(`${hostname}:${port}`, `127.0.0.1:${proxy.port}`),
    );
    try {
      await body(target, keyspace);
    } finally {
      await target.connection.close();
      await proxy.close();
    }
  });

async function filledRows(query: FreshKeyspace['query']): Promise<number> {
  const [row] = await query("SELECT count(*) AS n FROM many WHERE kind = 'x' ALLOW FILTERING");
  return Number(row?.n);
}

/** What reading all rows met: the cells of tombstones that the server counts in a trace. */
async function tombstones({ keyspace, url }: FreshKeyspace, cql: string): Promise<number> {
  const client = clientOf([new URL(url).host], keyspace);
  try {
    const { info } = await client.execute(cql, [], { traceQuery: true });
    let cells: readonly string[] = [];
    while (cells.length === 0) {
      const { rows } = await client.execute(
        'SELECT activity FROM system_traces.events WHERE session_id = ?',
        [info.traceId],
        {
          prepare: true,
        },
      );
      cells = rows.map(({ activity }) => String(activity)).filter((one) => /tombstone cells/.test(one));
    }
    return cells.reduce((sum, one) => sum + Number(/(\d+) tombstone cells/.exec(one)?.[1]), 0);
  } finally {
    await client.shutdown();
  }
}

if (unavailable) test.skip('changes of a busy table of Cassandra', unavailable);
else {
  test('a fill of an overloaded cluster waits, and fills every row', async () => {
    let refused = 0;
    await withRows(
      // More often in a row than a statement is repeated at once.
      (cql) => (/^UPDATE "many" .*"kind"/.test(cql) && ++refused <= 450 ? OVERLOADED : undefined),
      async (target, { query }) => {
        await migrate(target, [tables, filled].map(definedInCode));
        assert.ok(refused > ROWS);
        assert.equal(await filledRows(query), ROWS);
      },
    );
  });

  test('db.update on an overloaded cluster waits, and updates every row', async () => {
    let refused = 0;
    await withRows(
      (cql) => (/^UPDATE "many" .*"s"/.test(cql) && ++refused <= 150 ? OVERLOADED : undefined),
      async (target) => {
        const result = await new Database(target).update({
          table: 'many',
          data: { s: 'x' },
          where: { n: { $lt: 400 } },
        });
        assert.deepEqual(result, { matched: 400, modified: 400 });
      },
    );
  });

  test('a page that the cluster does not read in time is read in smaller ones', async () => {
    const sizes = new Set<number>();
    await withRows(
      (cql, size) => {
        if (!/^SELECT .* FROM "many"/.test(cql) || size === undefined) return undefined;
        sizes.add(size);
        return size > 100 ? READ_TIMEOUT : undefined;
      },
      async (target, { query }) => {
        await migrate(target, [tables, filled].map(definedInCode));
        assert.ok(Math.min(...sizes) <= 100, String([...sizes]));
        assert.equal(await filledRows(query), ROWS);
      },
    );
  });

  test('neither a fill nor a copy leaves tombstones, and others get a fifth of the time', () => {
    const sentAt: number[] = [];
    return withRows(
      (cql) => {
        if (/^UPDATE "many" .*"kind"/.test(cql)) sentAt.push(performance.now());
        return undefined;
      },
      async (target, keyspace) => {
        await migrate(target, [tables, filled].map(definedInCode));
        const [first = 0, last = 0, next = 0] = [0, 999, 1_000].map((at) => sentAt[at]);
        // On any machine: a page takes at least as long as from its first to its last row.
        assert.ok(next - last >= (last - first) / 4 - 2, `${next - last} ms after ${last - first} ms`);
        const copy = { ...renamed, tag: '20260103_000000_renamed' };
        await migrate(target, [tables, filled, copy].map(definedInCode), { allowDestructive: true });
        assert.equal(await tombstones(keyspace, 'SELECT * FROM many LIMIT 200'), 0);
      },
    );
  });

  test('records leave tombstones only where a value becomes null', () =>
    withKeyspace(async (keyspace) => {
      const notes: RecordDefinition<{ readonly id: string; readonly a: string | null; readonly b: string | null }> = {
        collection: '_svc_notes',
        key: 'id',
        columns: { id: { type: 'string' }, a: { type: 'text', nullable: true }, b: { type: 'text', nullable: true } },
        indexes: [],
      };
      const { connection } = await connectTarget(cassandra, keyspace.url);
      try {
        await connection.ensureTables([anyDefinition(notes)]);
        const store = connection.records(notes);
        const count = () => tombstones(keyspace, 'SELECT * FROM "_svc_notes"');
        assert.equal(await store.insert({ id: 'one', a: null, b: 'b' }), 'inserted');
        assert.equal(await count(), 0);
        assert.equal(await store.replace('one', 1, { id: 'one', a: null, b: 'c' }), 'replaced');
        assert.equal(await count(), 0);
        assert.equal(await store.replace('one', 2, { id: 'one', a: 'a', b: null }), 'replaced');
        assert.equal(await count(), 1);
        assert.deepEqual((await store.get('one'))?.record, { id: 'one', a: 'a', b: null });
        assert.equal(await store.replace('one', 3, { id: 'one', a: null, b: null }), 'replaced');
        assert.deepEqual((await store.get('one'))?.record, { id: 'one', a: null, b: null });
      } finally {
        await connection.close();
      }
    }));
}
