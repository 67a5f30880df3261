import * as assert from 'node:assert/strict';
import type { Dialect } from '../core/dialect.ts';
import { describeError } from '../core/errors.ts';
import { migration } from '../core/migration/builder.ts';
import { drift } from '../core/migration/drift.ts';
import { historyModel } from '../core/migration/history.ts';
import { migrate, rollback } from '../core/migration/migrate.ts';
import type { Migration } from '../core/migration/migration.ts';
import type { Target } from '../core/migration/target.ts';
import type { TableOptions } from '../core/schema/options.ts';
import { cassandra } from '../plugins/dialects/cassandra/dialect.ts';
import { dynamodb } from '../plugins/dialects/dynamodb/dialect.ts';
import { mongodb } from '../plugins/dialects/mongodb/dialect.ts';
import { freshKeyspace } from './kit/cassandra.ts';
import { freshPrefix } from './kit/dynamodb.ts';
import { definedInCode } from './kit/migrations.ts';
import { freshMongo } from './kit/mongodb.ts';
import { withFreshTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { find } from './servers/find.ts';
import { expectError } from './suites/expect-error.ts';
import type { TestDatabase } from './suites/test-database.ts';

/** Options of a table before and after a raw statement, which `svc db schema generate` cannot change. */
interface Change {
  readonly before: TableOptions;
  readonly after: TableOptions;
  readonly change: object | string;
  readonly undo: object | string;
  readonly nothing: object | string;
  readonly dialect: Dialect;
  fresh(url: string): TestDatabase | Promise<TestDatabase>;
}

/** As `pull` writes the validator of a collection that another program created. */
const named = (name: string) => ({
  $and: [{ $jsonSchema: { properties: { name: { bsonType: 'string' } } } }, { $expr: { $ne: ['$name', name] } }],
});
const stream = { StreamSpecification: { StreamEnabled: true, StreamViewType: 'KEYS_ONLY' } };
const partition = { partitionKey: ['id'] };

const CHANGES: Readonly<Record<'mongodb' | 'dynamodb' | 'cassandra', Change>> = {
  mongodb: {
    before: { mongoOptions: { validator: named('root'), validatorDescribesFields: true, validationLevel: 'moderate' } },
    after: { mongoOptions: { validator: named('admin'), validatorDescribesFields: true } },
    change: { collMod: 'users', validator: named('admin'), validationLevel: 'strict' },
    undo: { collMod: 'users', validator: named('root'), validationLevel: 'moderate' },
    nothing: { ping: 1 },
    dialect: mongodb,
    fresh: freshMongo,
  },
  dynamodb: {
    before: { dynamoOptions: { billingMode: 'PAY_PER_REQUEST' } },
    after: { dynamoOptions: { streamEnabled: true, streamViewType: 'KEYS_ONLY' } },
    change: { UpdateTable: { TableName: 'users', ...stream } },
    undo: { UpdateTable: { TableName: 'users', StreamSpecification: { StreamEnabled: false } } },
    nothing: { ListTables: {} },
    dialect: dynamodb,
    fresh: (url) => freshPrefix(Number(new URL(url).port)),
  },
  cassandra: {
    before: { cassandraOptions: { ...partition, defaultTTL: 60, properties: { comment: 'people' } } },
    after: { cassandraOptions: { ...partition, properties: { comment: 'users', gc_grace_seconds: 60 } } },
    change: "ALTER TABLE users WITH comment = 'users' AND gc_grace_seconds = 60 AND default_time_to_live = 0",
    undo: "ALTER TABLE users WITH comment = 'people' AND gc_grace_seconds = 864000 AND default_time_to_live = 60",
    nothing: 'SELECT key FROM system.local',
    dialect: cassandra,
    fresh: () => freshKeyspace(),
  },
};

const text = (statement: object | string): string =>
  typeof statement === 'string' ? statement : JSON.stringify(statement);

for (const [name, one] of Object.entries(CHANGES)) {
  const { before, after, dialect } = one;
  const found = await find(name as keyof typeof CHANGES);
  const on = (what: string, body: (target: Target) => Promise<void>): void => {
    if ('missing' in found) test.skip(`${name}: ${what}`, found.missing);
    else test(`${name}: ${what}`, async () => withFreshTarget(dialect, await one.fresh(found.url), body));
  };
  const key = name === 'mongodb' ? { name: '_id', type: 'json' as const } : { name: 'id', type: 'string' as const };
  const table = (options: TableOptions) => ({
    type: 'createCollection' as const,
    name: 'users',
    fields: [
      { ...key, primaryKey: true },
      { name: 'name', type: 'string' as const, length: 40 },
    ],
    options,
  });
  const remade = (options: TableOptions) =>
    [{ type: 'dropCollection' as const, collection: 'users' }, table(options)] as const;
  const users = migration('20260101_000000_users').createCollection('users', table(before).fields, before).build();
  const changed = (statement: object | string) =>
    migration('20260102_000000_options')
      .raw(dialect.name, text(statement), {
        makes: remade(after),
        down: text(one.undo),
        downMakes: remade(before),
      })
      .build();
  const aged = migration('20260103_000000_age').addField('users', { name: 'age', type: 'integer' }).build();
  const apply = (target: Target, ...migrations: readonly Migration[]) => migrate(target, migrations.map(definedInCode));
  const assertNoDrift = async (target: Target): Promise<void> =>
    assert.deepEqual(
      await drift(target.connection, await historyModel(target), await target.connection.introspect()),
      [],
    );

  on('a raw statement changes the options of a table, and its rollback changes them back', async (target) => {
    await apply(target, users);
    await assertNoDrift(target);
    await apply(target, users, changed(one.change));
    assert.deepEqual((await historyModel(target)).get('users')?.options, after);
    await assertNoDrift(target);
    await apply(target, users, changed(one.change), aged);
    await assertNoDrift(target);
    await rollback(target, { allowDestructive: true });
    await rollback(target, { allowDestructive: true });
    assert.deepEqual((await historyModel(target)).get('users')?.options, before);
    await assertNoDrift(target);
  });

  on('a raw statement that does not change them stops the run, and the table is as before', async (target) => {
    await apply(target, users);
    const error = await expectError(apply(target, users, changed(one.nothing)), 'migration_half_done');
    assert.match(describeError(error), /options of users/);
    await assertNoDrift(target);
  });
}
