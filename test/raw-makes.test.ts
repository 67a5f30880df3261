import * as assert from 'node:assert/strict';
import type { Dialect } from '../core/dialect.ts';
import { describeError } from '../core/errors.ts';
import { baseline } from '../core/migration/baseline.ts';
import { migration } from '../core/migration/builder.ts';
import { drift } from '../core/migration/drift.ts';
import { historyModel } from '../core/migration/history.ts';
import { migrate, rollback } from '../core/migration/migrate.ts';
import type { Migration } from '../core/migration/migration.ts';
import { MigrationEngine } from '../core/migration/migration-engine.ts';
import { status } from '../core/migration/status.ts';
import type { Target } from '../core/migration/target.ts';
import type { ModelOperation } from '../core/schema/operation.ts';
import { cassandra } from '../plugins/dialects/cassandra/dialect.ts';
import { dynamodb } from '../plugins/dialects/dynamodb/dialect.ts';
import { mongodb } from '../plugins/dialects/mongodb/dialect.ts';
import { freshKeyspace } from './kit/cassandra.ts';
import { freshPrefix } from './kit/dynamodb.ts';
import { sqlEngines } from './kit/engines.ts';
import { definedInCode } from './kit/migrations.ts';
import { freshMongo } from './kit/mongodb.ts';
import { withFreshTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { find } from './servers/find.ts';
import { expectError } from './suites/expect-error.ts';
import type { TestDatabase } from './suites/test-database.ts';

interface RawEngine {
  readonly name: string;
  readonly dialect: Dialect;
  readonly missing?: string | undefined;
  withTarget(body: (target: Target) => Promise<void>): Promise<void>;
  /** Does what `makes` describes. */
  readonly create: string;
  readonly drop: string;
  readonly makes: readonly ModelOperation[];
  /** Makes nothing. */
  readonly nothing: string;
}

const logs: readonly ModelOperation[] = [
  {
    type: 'createCollection',
    name: 'logs',
    fields: [
      { name: 'id', type: 'integer', primaryKey: true },
      { name: 'line', type: 'text', required: true },
    ],
  },
];

async function documentEngine(
  name: 'mongodb' | 'dynamodb' | 'cassandra',
  dialect: Dialect,
  fresh: (url: string) => TestDatabase | Promise<TestDatabase>,
  rest: Pick<RawEngine, 'create' | 'drop' | 'makes' | 'nothing'>,
): Promise<RawEngine> {
  const found = await find(name);
  return {
    name,
    dialect,
    missing: 'missing' in found ? found.missing : undefined,
    withTarget: async (body) => withFreshTarget(dialect, await fresh('url' in found ? found.url : ''), body),
    ...rest,
  };
}

const rawEngines: readonly RawEngine[] = [
  ...sqlEngines.map((engine) => ({
    name: engine.name,
    dialect: engine.dialect,
    missing: engine.missing,
    withTarget: (body: (target: Target) => Promise<void>) => engine.withDatabase((target) => body(target)),
    create: `CREATE TABLE logs (id int PRIMARY KEY, line ${engine.dialect.types.text} NOT NULL)`,
    drop: 'DROP TABLE logs',
    makes: logs,
    nothing: 'SELECT 1',
  })),
  await documentEngine('mongodb', mongodb, freshMongo, {
    create: '{"createIndexes": "people", "indexes": [{"key": {"line": 1}, "name": "by_line"}]}',
    drop: '{"dropIndexes": "people", "index": "by_line"}',
    makes: [{ type: 'createIndex', collection: 'people', index: 'by_line', columns: [{ name: 'line' }] }],
    nothing: '{"ping": 1}',
  }),
  await documentEngine('dynamodb', dynamodb, (url) => freshPrefix(Number(new URL(url).port)), {
    create: JSON.stringify({
      CreateTable: {
        TableName: 'logs',
        AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }],
        KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }],
        BillingMode: 'PAY_PER_REQUEST',
      },
    }),
    drop: '{"DeleteTable": {"TableName": "logs"}}',
    makes: [{ type: 'createCollection', name: 'logs', fields: [{ name: 'id', type: 'string', primaryKey: true }] }],
    nothing: '{"ListTables": {}}',
  }),
  await documentEngine('cassandra', cassandra, () => freshKeyspace(), {
    create: 'CREATE TABLE logs (id int PRIMARY KEY, line text)',
    drop: 'DROP TABLE logs',
    makes: [
      {
        type: 'createCollection',
        name: 'logs',
        fields: [
          { name: 'id', type: 'integer', primaryKey: true },
          { name: 'line', type: 'text' },
        ],
        options: { cassandraOptions: { partitionKey: ['id'] } },
      },
    ],
    nothing: 'SELECT key FROM system.local',
  }),
];

const assertNoDrift = async (target: Target): Promise<void> =>
  assert.deepEqual(
    await drift(target.connection, await historyModel(target), await target.connection.introspect()),
    [],
  );

for (const engine of rawEngines) {
  const { name, dialect } = engine;
  const on = (what: string, body: (target: Target) => Promise<void>): void => {
    if (engine.missing !== undefined) test.skip(`${name}: ${what}`, engine.missing);
    else test(`${name}: ${what}`, () => engine.withTarget(body));
  };
  const people = migration('20260101_000000_people')
    .createCollection('people', [
      { name: 'id', type: 'integer', primaryKey: true },
      { name: 'line', type: 'text' },
    ])
    .build();
  const raw = (tag: string, statement: string, rest: { down?: string; makes?: readonly ModelOperation[] } = {}) =>
    migration(tag).raw(dialect.name, statement, rest).build();
  const created = raw('20260102_000000_raw', engine.create, { down: engine.drop, makes: engine.makes });
  const wrong = raw('20260102_000000_raw', engine.nothing, { makes: engine.makes });
  const apply = (target: Target, ...migrations: readonly Migration[]) => migrate(target, migrations.map(definedInCode));

  on('what a raw statement makes is part of the model, and no longer after its rollback', async (target) => {
    await apply(target, people);
    const before = await historyModel(target);
    await apply(target, people, created);
    assert.notDeepEqual(await historyModel(target), before);
    await assertNoDrift(target);
    await rollback(target, { allowDestructive: true });
    assert.deepEqual(await historyModel(target), before);
    await assertNoDrift(target);
  });

  on('a raw statement that does not make what it says stops the run', async (target) => {
    const error = await apply(target, people, wrong).catch((thrown) => thrown);
    const { transactionalDdl } = dialect.capabilities;
    assert.equal(error.code, transactionalDdl ? 'effect_differs' : 'migration_half_done');
    assert.match(describeError(error), /makes.*is missing/);
    const { entries } = await status(target, [definedInCode(wrong)]);
    assert.equal(entries.find(({ tag }) => tag === wrong.tag)?.state, transactionalDdl ? 'pending' : 'failed');
    await assertNoDrift(target);
  });

  on('a statement that only says what an earlier one made is compared with it', async (target) => {
    await apply(target, people, raw('20260102_000000_raw', engine.create), { ...wrong, tag: '20260103_000000_says' });
    await assertNoDrift(target);
    await expectError(new MigrationEngine(target).down({ ...wrong, tag: '20260103_000000_says' }), 'irreversible');
  });

  on('a raw statement of another dialect makes nothing, and does not prevent a rollback', async (target) => {
    const other = dialect.name === 'mysql' ? 'mariadb' : 'mysql';
    const elsewhere = migration('20260102_000000_elsewhere')
      .raw(other, 'CREATE TABLE logs (id int PRIMARY KEY)', { makes: logs })
      .createCollection('notes', [{ name: 'id', type: 'integer', primaryKey: true }])
      .build();
    await apply(target, people, elsewhere);
    await assertNoDrift(target);
    assert.deepEqual([...(await target.connection.introspect()).keys()].sort(), ['notes', 'people']);
    assert.equal((await new MigrationEngine(target).down(elsewhere)).status, 'rolled_back');
    assert.deepEqual([...(await target.connection.introspect()).keys()], ['people']);
  });

  on('a raw statement of an unknown dialect is refused, with the nearest name', async (target) => {
    const known = {
      ...target,
      dialects: ['cassandra', 'dynamodb', 'mariadb', 'mongodb', 'mysql', 'postgresql', 'sqlite'],
    };
    for (const [typo, next] of [
      ['postgres', /Did you mean "postgresql"/],
      ['foo', /add the plugin/],
    ] as const) {
      const mistyped = migration('20260102_000000_typo').raw(typo, 'SELECT 1').build();
      const error = await expectError(apply(known, mistyped), 'name_unknown');
      assert.match(error.next.join(), next);
      assert.match(error.where ?? '', /20260102_000000_typo up\[0\]/);
      await expectError(new MigrationEngine(known).up(mistyped), 'name_unknown');
      await expectError(baseline(known, [definedInCode(mistyped)]), 'name_unknown');
    }
    assert.equal((await apply(known, migration('20260103_000000_plugin').raw('sqlite', 'SELECT 1').build())).steps, 0);
  });
}
