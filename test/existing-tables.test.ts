import * as assert from 'node:assert/strict';
import { Database } from '../core/database/database.ts';
import type { Dialect } from '../core/dialect.ts';
import { baseline } from '../core/migration/baseline.ts';
import { drift } from '../core/migration/drift.ts';
import { historyModel } from '../core/migration/history.ts';
import { migrate } from '../core/migration/migrate.ts';
import { checksum, type Migration } from '../core/migration/migration.ts';
import { MigrationEngine } from '../core/migration/migration-engine.ts';
import type { Target } from '../core/migration/target.ts';
import { cassandra } from '../plugins/dialects/cassandra/dialect.ts';
import { dynamodb } from '../plugins/dialects/dynamodb/dialect.ts';
import { freshKeyspace, unavailable } from './kit/cassandra.ts';
import { freshPrefix } from './kit/dynamodb.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { find } from './servers/find.ts';
import { expectError } from './suites/expect-error.ts';
import type { TestDatabase } from './suites/test-database.ts';

/** An engine whose catalog does not describe everything that a definition says. */
interface Engine {
  readonly name: string;
  readonly dialect: Dialect;
  readonly missing: string | undefined;
  /** Creates the table "old", which the definition below describes. */
  readonly create: string;
  /** A definition that the table does not match. */
  readonly other: object;
  fresh(): TestDatabase | Promise<TestDatabase>;
}

const server = await find('dynamodb');
const engines: readonly Engine[] = [
  {
    name: 'Cassandra',
    dialect: cassandra,
    missing: unavailable,
    create: 'CREATE TABLE old (id int PRIMARY KEY, name text, total decimal, at timestamp)',
    other: { id: { type: 'integer', primaryKey: true }, name: 'integer' },
    fresh: () => freshKeyspace(),
  },
  {
    name: 'DynamoDB',
    dialect: dynamodb,
    missing: 'missing' in server ? server.missing : undefined,
    create: JSON.stringify({
      CreateTable: {
        TableName: 'old',
        AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'N' }],
        KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }],
        BillingMode: 'PAY_PER_REQUEST',
      },
    }),
    other: { id: { type: 'string', primaryKey: true } },
    fresh: () => freshPrefix('url' in server ? Number(new URL(server.url).port) : 0),
  },
];

const fields = {
  id: { type: 'integer', primaryKey: true },
  name: { type: 'string', length: 40, required: true },
  total: { type: 'decimal', precision: 8, scale: 2 },
  at: { type: 'timestamp', default: 'now' },
} as const;
const ifNotExists = { sqlOptions: { ifNotExists: true } };

async function assertAligned(target: Target): Promise<void> {
  const found = await target.connection.introspect();
  assert.deepEqual(await drift(target.connection, await historyModel(target), found), []);
  assert.equal(found.get('old')?.fields.get('name')?.length, 40);
}

for (const { name, dialect, missing, create, other, fresh } of engines) {
  const on = (title: string, work: (target: Target) => Promise<void>): void => {
    if (missing !== undefined) {
      test.skip(`${name}: ${title}`, missing);
      return;
    }
    test(`${name}: ${title}`, async () => {
      const { url, drop } = await fresh();
      try {
        const target = await connectTarget(dialect, url);
        await target.connection.query(create);
        await work(target).finally(() => target.connection.close());
      } finally {
        await drop();
      }
    });
  };

  on('ifNotExists records a like table that another program created', async (target) => {
    const db = new Database(target);
    await expectError(db.schema.create('old', other as typeof fields, ifNotExists), 'table_differs');
    assert.deepEqual((await new MigrationEngine(target).getHistory({ all: true })).length, 0);
    const { migration, statements } = await db.schema.create('old', fields, ifNotExists);
    assert.deepEqual(statements, []);
    await assertAligned(target);
    const added = await db.schema.addField('old', 'more', 'text');
    await assertAligned(target);
    const dropped = await db.schema.dropField('old', 'more');
    // Another definition of the same columns is not the registered one.
    const longer = { ...fields, name: { type: 'string', length: 50, required: true } } as const;
    for (const { tag } of [dropped, added].map((done) => done.migration).concat(migration)) {
      await new MigrationEngine(target).resolve(tag, 'forget');
    }
    await expectError(db.schema.create('old', longer, ifNotExists), 'table_differs');
    await db.schema.create('old', fields, ifNotExists);
  });

  on('baseline records a like table that another program created', async (target) => {
    const files = (up: Migration['up']) => {
      const migration: Migration = { tag: '20260101_000000_old', name: 'old', up, down: [] };
      return [{ tag: migration.tag, checksum: checksum(migration), migration }];
    };
    const create = (definition: object) =>
      files([
        {
          type: 'createCollection',
          name: 'old',
          fields: Object.entries(definition).map(([name, one]) =>
            typeof one === 'string' ? { name, type: one } : { name, ...one },
          ),
        },
      ]);
    await expectError(migrate(target, create(fields)), 'collection_exists');
    await expectError(baseline(target, create(other)), 'drift');
    assert.deepEqual((await baseline(target, create(fields))).tags, ['20260101_000000_old']);
    await assertAligned(target);
    await new Database(target).schema.addField('old', 'more', 'text');
    await assertAligned(target);
  });
}
