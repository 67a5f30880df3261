import * as assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import type { Connection } from '../core/dialect.ts';
import { isSvcError } from '../core/errors.ts';
import { migration } from '../core/migration/builder.ts';
import { historyTable } from '../core/migration/history-table.ts';
import { migrate } from '../core/migration/migrate.ts';
import { status } from '../core/migration/status.ts';
import type { Operation } from '../core/schema/operation.ts';
import { cassandra } from '../plugins/dialects/cassandra/dialect.ts';
import { DATACENTER, freshKeyspace } from './kit/cassandra.ts';
import { nodesMissing, withNodes } from './kit/cassandra-nodes.ts';
import { definedInCode } from './kit/migrations.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { waitUntil } from './suites/wait-until.ts';

// Cases that need two nodes: schema disagreement, timeouts of conditional writes, two coordinators.

const ANOTHER = 'another';
const key = { name: 'id', type: 'integer', primaryKey: true } as const;
// Starts its own nodes, which takes 1.3 GB and a minute: for work on the dialect.
const missing = process.env.SVC_TEST_PAIR === '1' ? nodesMissing(2) : 'SVC_TEST_PAIR=1 asks for it';

const raw = (name: string): Operation => ({
  type: 'raw',
  dialect: 'cassandra',
  statement: `CREATE TABLE ${name} (id int PRIMARY KEY)`,
});

async function failureOf(connection: Connection, operation: Operation, part: 'run' | 'awaitEffect' = 'run') {
  const segments = cassandra.compile(operation, new Map()).map((statement) => ({
    transactional: false,
    statements: [{ ...statement, run: statement[part] ?? null }],
    writes: [],
  }));
  const { failure } = await connection.run(segments, 0);
  if (!isSvcError(failure?.error)) throw new Error(`a refusal was expected, not ${String(failure?.error)}`);
  return failure.error;
}

if (missing) test.skip('a pair of Cassandra nodes', missing);
else {
  test(
    'two nodes: agreement, timeouts with an unknown outcome, two migrators on two coordinators',
    () =>
      withNodes(2, async ([first, second]) => {
        if (!first || !second) throw new Error('there are no two nodes');
        const points = [first.point, second.point];

        // Two migrators with different coordinators never run DDL concurrently, and both succeed.
        const both = await freshKeyspace(points, 2);
        const defined = Array.from({ length: 4 }, (_, n) =>
          migration(`2026010${n + 1}_000000_t${n}`)
            .createCollection(`t${n}`, [key])
            .addField(`t${n}`, { name: 'n', type: 'integer', default: 1 })
            .build(),
        ).map(definedInCode);
        const ends = await Promise.all(
          [points, [...points].reverse()].map(async (contact) => {
            const adapter = await connectTarget(cassandra, both.url.replace(points.join(','), contact.join(',')));
            const report = await migrate(adapter, defined, { lockTimeoutMs: 120_000 });
            return { adapter, applied: report.migrations.length };
          }),
        );
        assert.equal(
          ends.reduce((sum, { applied }) => sum + applied, 0),
          defined.length,
        );
        for (const { adapter } of ends) {
          assert.equal((await status(adapter, defined)).state, 'OK');
          await adapter.connection.close();
        }

        // A conditional write times out while the other replica is frozen; its outcome is resolved.
        const store = await cassandra.connect(both.url, {});
        const meta = {
          collection: '_svc_meta',
          key: 'id',
          columns: { id: { type: 'string' }, product: { type: 'text' } },
          indexes: [],
          colocateWithLock: true,
        } as const;
        second.freeze();
        const inserting = store.records(meta).insert({ id: 'slow', product: 'x' });
        await wait(3000);
        second.thaw();
        assert.equal(await inserting, 'inserted');
        assert.equal((await store.records(meta).get('slow'))?.version, 1);
        await store.close();

        // With a frozen peer a statement is sent, but its effect on all nodes is not confirmed.
        const single = await freshKeyspace([first.point], 1);
        const connection = await cassandra.connect(single.url, { agreementTimeoutMs: 3000 });
        second.freeze();
        const after = await failureOf(connection, raw('while_frozen'));
        assert.equal(after.code, 'connection_lost');
        assert.ok(after.why?.includes(second.address), after.why);
        // Afterwards nothing is sent.
        const before = await failureOf(connection, raw('never_sent'));
        assert.equal(before.code, 'schema_disagreement');
        assert.ok(before.why?.includes(second.address), before.why);
        // A run that finds the effect in the catalog does not count the statement as done.
        const resumed = await failureOf(connection, raw('while_frozen'), 'awaitEffect');
        assert.equal(resumed.code, 'schema_disagreement');
        second.thaw();
        await waitUntil(
          async () => (await failureOf(connection, raw('while_frozen'))).code === 'collection_exists',
          'The nodes never agreed again',
          120_000,
        );
        const tables = await single.query(
          `SELECT table_name FROM system_schema.tables WHERE keyspace_name = '${single.keyspace}'`,
        );
        assert.deepEqual(
          tables.map(({ table_name: name }) => name),
          ['while_frozen'],
        );
        await connection.close();
        await both.close();
        await single.close();
      }),
    { timeoutMs: 900_000 },
  );

  test(
    'two data centers: waits for an index in the local one, and reads the history of both',
    () =>
      withNodes(
        2,
        async ([near, far]) => {
          if (!near || !far) throw new Error('there are no two nodes');
          const { url, keyspace, query, close } = await freshKeyspace([near.point]);
          await query(
            `ALTER KEYSPACE ${keyspace} WITH replication = {'class': 'NetworkTopologyStrategy', '${DATACENTER}': 1, '${ANOTHER}': 1}`,
          );
          const indexed = migration('20260101_000000_indexed')
            .createCollection('indexed', [key, { name: 'n', type: 'integer' }])
            .createIndex('indexed', 'indexed_n', [{ name: 'n' }])
            .build();
          const adapter = await connectTarget(cassandra, url);
          try {
            await migrate(adapter, [definedInCode(indexed)], {});
            assert.equal((await status(adapter, [definedInCode(indexed)])).state, 'OK');
          } finally {
            await adapter.connection.close();
          }
          // A history row that the other data center does not have yet.
          await far.kill();
          await query(
            `UPDATE "_svc_migrations" SET name = 'later' WHERE scope = 'migrations' AND kind = '_svc_migrations' AND key = ?`,
            [indexed.tag],
          );
          await far.start();
          const elsewhere = await cassandra.connect(
            url.replace(near.point, far.point).replace(`dc=${DATACENTER}`, `dc=${ANOTHER}`),
            {},
          );
          try {
            const { records } = await elsewhere.records(historyTable).page('bySeq', { limit: 10, direction: 'asc' });
            assert.deepEqual(
              records.map(({ record }) => record.name),
              ['later'],
            );
          } finally {
            await elsewhere.close();
            await close();
          }
        },
        [DATACENTER, ANOTHER],
      ),
    { timeoutMs: 600_000 },
  );
}
