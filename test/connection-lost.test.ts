import * as assert from 'node:assert/strict';
import type { Dialect } from '../core/dialect.ts';
import { migration } from '../core/migration/builder.ts';
import { drift, withoutUnknownReferences } from '../core/migration/drift.ts';
import { historyModel } from '../core/migration/history.ts';
import { historyTable, type Journal } from '../core/migration/history-table.ts';
import { migrate, rollback } from '../core/migration/migrate.ts';
import type { Migration } from '../core/migration/migration.ts';
import { resolveMigration } from '../core/migration/resolve.ts';
import { status } from '../core/migration/status.ts';
import type { Target } from '../core/migration/target.ts';
import type { CreateCollection } from '../core/schema/operation.ts';
import { cassandra } from '../plugins/dialects/cassandra/dialect.ts';
import { mongodb } from '../plugins/dialects/mongodb/dialect.ts';
import { freshKeyspace, unavailable as noCassandra } from './kit/cassandra.ts';
import { cutConnection } from './kit/cut-connection.ts';
import { committingEngines } from './kit/engines.ts';
import { definedInCode } from './kit/migrations.ts';
import { freshMongo, missing as noMongo } from './kit/mongodb.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';
import { runOperations } from './suites/run-operations.ts';
import type { TestDatabase } from './suites/test-database.ts';

// A run loses its connection before and after each of its statements. The next run determines what took effect, also on
// tables not created by svc, and finishes.

const id = { name: 'id', type: 'integer', primaryKey: true } as const;
const legacy: readonly CreateCollection[] = [
  { type: 'createCollection', name: 'users', fields: [id, { name: 'team', type: 'integer' }] },
  { type: 'createCollection', name: 'teams', fields: [id] },
];
const first = migration('20260101_000000_first').addField('users', { name: 'a', type: 'integer' }).build();
const second = migration('20260102_000000_second')
  .addField('users', { name: 'b', type: 'integer' })
  .createCollection('orders', [id, { name: 'user', type: 'integer' }])
  .addField('users', { name: 'c', type: 'integer' })
  .build();
/** SQL for a slow statement on each engine. */
const legacySmall = migration('20260102_000000_second').addField('users', { name: 'b', type: 'integer' }).build();
const usersId = {
  name: 'orders_user',
  type: 'foreignKey',
  columns: ['user'],
  references: { table: 'users', columns: ['id'] },
} as const;
const teamsId = { ...usersId, name: 'users_team', columns: ['team'], references: { table: 'teams', columns: ['id'] } };
/** Replaces a foreign key to a table unknown to svc. */
const keys = migration('20260103_000000_keys')
  .dropConstraint('users', 'users_team', { was: teamsId })
  .addConstraint('orders', usersId)
  .build();
/** Two statements, the first of which changes more than the type. */
const crossed = migration('20260104_000000_crossed')
  .createCollection('crossed', [id, { name: 'n', type: 'integer' }])
  .modifyField('crossed', 'n', { type: 'enum', enumValues: ['1', '2'], unique: true }, { was: { type: 'integer' } })
  .build();

interface Engine {
  readonly dialect: Dialect;
  readonly missing: string | undefined;
  readonly migrations: readonly Migration[];
  withUrl(body: (url: string) => Promise<void>): Promise<void>;
}

const withFresh =
  (fresh: () => Promise<TestDatabase>): Engine['withUrl'] =>
  async (body) => {
    const { url, drop } = await fresh();
    try {
      await body(url);
    } finally {
      await drop();
    }
  };

const engines: readonly Engine[] = [
  ...committingEngines.map((engine) => ({
    dialect: engine.dialect,
    missing: engine.missing,
    migrations: [first, second, keys, crossed],
    withUrl: (body: (url: string) => Promise<void>) => engine.withUrl(body),
  })),
  { dialect: mongodb, missing: noMongo, migrations: [first, second], withUrl: withFresh(freshMongo) },
  {
    dialect: cassandra,
    missing: noCassandra,
    migrations: [first, legacySmall],
    withUrl: withFresh(() => freshKeyspace()),
  },
];

const SLOW = { timeoutMs: 300_000 };

for (const { dialect, missing, migrations, withUrl } of engines) {
  const hasKeys = !dialect.capabilities.unsupported.foreignKey;
  const defined = migrations.map(definedInCode);
  const on = (name: string, body: (adapter: Target) => Promise<void>) => async () =>
    withUrl(async (url) => {
      const adapter = await connectTarget(dialect, url);
      try {
        await runOperations(dialect, adapter.connection, legacy);
        if (hasKeys)
          await runOperations(
            dialect,
            adapter.connection,
            [{ type: 'addConstraint', collection: 'users', constraint: teamsId }],
            await adapter.connection.introspect(),
          );
        await body(adapter);
      } catch (error) {
        throw new Error(`${name}: ${error}`, { cause: error });
      } finally {
        await adapter.connection.close();
      }
    });
  /** Loses the connection at every possible statement, each time on a new database; returns the number of statements. */
  const atEveryStatement = async (body: (adapter: Target, at: number) => Promise<boolean>): Promise<number> => {
    for (let at = 1; ; at += 1) {
      let isCompleted = false;
      await on(`connection lost at ${at}`, async (adapter) => {
        isCompleted = !(await body(adapter, at));
      })();
      if (isCompleted) return at - 1;
    }
  };
  const name = (what: string) => `${dialect.name}: ${what}`;
  if (missing !== undefined) {
    test.skip(name('lost connections'), missing);
    continue;
  }

  test(
    name(
      'after a connection lost before or after any statement the next run finishes, also on tables not created by svc',
    ),
    async () => {
      const places = await atEveryStatement(async (adapter, at) => {
        const connection = cutConnection(adapter.connection, at);
        if (await through(migrate({ ...adapter, connection }, defined, { allowDestructive: true }))) return false;
        await migrate(adapter, defined, { allowDestructive: true });
        await assertWhole(adapter, 'a', 'b');
        return true;
      });
      assert.equal(places, 2 * migrations.flatMap(({ up }) => up).length + (migrations.includes(crossed) ? 2 : 0));
    },
    SLOW,
  );

  test(
    name('the next run finishes a rollback whose connection was lost at any statement'),
    async () => {
      const [one, two] = defined;
      assert.ok(one && two);
      await atEveryStatement(async (adapter, at) => {
        await migrate(adapter, [one, two]);
        const connection = cutConnection(adapter.connection, at);
        if (await through(rollback({ ...adapter, connection }))) return false;
        await migrate(adapter, [one, two], { to: one.tag });
        const { entries } = await status(adapter, [one, two]);
        assert.deepEqual(
          entries.map(({ state }) => state),
          ['completed', 'pending'],
        );
        assert.deepEqual([...(await adapter.connection.introspect()).keys()].sort(), ['teams', 'users']);
        return true;
      });
    },
    SLOW,
  );

  test(
    name('a journal of an older SDK without the table needs a decision'),
    on('older', async (adapter) => {
      const one = [definedInCode(first)];
      const connection = cutConnection(adapter.connection, 1);
      await expectError(migrate({ ...adapter, connection }, one), 'connection_lost');
      const store = adapter.connection.records(historyTable);
      const stored = await store.get(first.tag);
      assert.ok(stored?.record.journal?.before);
      const { before: _, ...journal }: Journal = stored.record.journal;
      assert.ok(await store.replace(first.tag, stored.version, { ...stored.record, journal }));
      // An idempotent statement runs again without a decision.
      if (journal.steps.every(({ statements }) => statements.every(({ idempotent }) => idempotent))) {
        await migrate(adapter, one);
      } else {
        await expectError(migrate(adapter, one), 'migration_half_done');
        assert.equal((await resolveMigration(adapter, first.tag, 'retry')).status, 'completed');
      }
      await assertWhole(adapter, 'a');
    }),
    SLOW,
  );
}

/** Asserts that the catalog matches the history's model of its tables, and that these fields have been added. */
async function assertWhole(adapter: Target, ...added: readonly string[]): Promise<void> {
  const model = await historyModel(adapter);
  const found = await adapter.connection.introspect([...model.keys()]);
  assert.deepEqual(await drift(adapter.connection, model, withoutUnknownReferences(found, model)), []);
  for (const field of added) assert.ok(found.get('users')?.fields.has(field), field);
}

/** False for a run that lost its connection. */
async function through(run: Promise<unknown>): Promise<boolean> {
  try {
    await run;
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'connection_lost') return false;
    throw error;
  }
}
