import * as assert from 'node:assert/strict';
import { migration } from '../core/migration/builder.ts';
import { drift } from '../core/migration/drift.ts';
import { historyModel } from '../core/migration/history.ts';
import { migrate } from '../core/migration/migrate.ts';
import { resolveMigration } from '../core/migration/resolve.ts';
import { status } from '../core/migration/status.ts';
import type { Target } from '../core/migration/target.ts';
import { definedInCode } from './kit/migrations.ts';
import { sixEngines } from './kit/six-engines.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

// A decision about a migration that stopped halfway is compared with the catalog before it is recorded.

const command = (document: object): string => JSON.stringify(document);

/** What an engine's own tools would send. */
interface ByHand {
  /** A statement that the engine refuses after those before it have committed. */
  readonly refused: string;
  /** Creates the table "last". */
  readonly create: readonly string[];
  readonly drop: (table: string) => string;
}

const SQL: ByHand = {
  refused: 'ALTER TABLE nothing ADD COLUMN n int',
  create: ['CREATE TABLE last (id int NOT NULL PRIMARY KEY, n int)'],
  drop: (table) => `DROP TABLE ${table}`,
};
const INTEGER = { bsonType: ['int', 'long', 'double'], multipleOf: 1, minimum: -(2 ** 31), maximum: 2 ** 31 - 1 };
const OTHERS: Readonly<Record<string, ByHand>> = {
  mongodb: {
    refused: command({ collMod: 'nothing', validationLevel: 'off' }),
    create: [
      command({
        create: 'last',
        validator: {
          $jsonSchema: {
            bsonType: 'object',
            required: ['id'],
            properties: { id: INTEGER, n: { ...INTEGER, bsonType: [...INTEGER.bsonType, 'null'] } },
          },
        },
      }),
      command({ createIndexes: 'last', indexes: [{ name: 'pkey', key: { id: 1 }, unique: true }] }),
    ],
    drop: (table) => command({ drop: table }),
  },
  dynamodb: {
    refused: command({ UpdateTable: { TableName: 'nothing', BillingMode: 'PAY_PER_REQUEST' } }),
    create: [
      command({
        CreateTable: {
          TableName: 'last',
          AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'N' }],
          KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }],
          BillingMode: 'PAY_PER_REQUEST',
        },
      }),
    ],
    drop: (table) => command({ DeleteTable: { TableName: table } }),
  },
  cassandra: {
    refused: 'ALTER TABLE nothing ADD n int',
    create: ['CREATE TABLE last (id int PRIMARY KEY, n int)'],
    drop: (table) => `DROP TABLE ${table}`,
  },
};

const fields = [
  { name: 'id', type: 'integer', primaryKey: true },
  { name: 'n', type: 'integer' },
] as const;
const base = migration('20260101_000000_base').createCollection('t', fields).build();

const driftOf = async (target: Target) =>
  drift(target.connection, await historyModel(target), await target.connection.introspect());

for (const { name, dialect, missing, createDatabase } of sixEngines) {
  const on = (title: string, body: (target: Target, byHand: ByHand) => Promise<void>) => {
    if (missing !== undefined) test.skip(`${name}: ${title}`, missing);
    else
      test(
        `${name}: ${title}`,
        async () => {
          const { url, drop } = await createDatabase();
          const target = await connectTarget(dialect, url);
          try {
            await body(target, OTHERS[name] ?? SQL);
          } finally {
            await target.connection.close();
            await drop();
          }
        },
        { timeoutMs: 120_000 },
      );
  };

  on('a decision that the catalog contradicts is refused, and accepted once it is true', async (target, byHand) => {
    const half = migration('20260102_000000_half')
      .createCollection('made', fields)
      .addField('t', { name: 'extra', type: 'integer' })
      .raw(name, byHand.refused, { transaction: false })
      .createCollection('last', fields)
      .build();
    const defined = [base, half].map(definedInCode);
    const state = async () => (await status(target, defined)).state;
    await expectError(migrate(target, defined), 'migration_half_done');

    const undone = await expectError(resolveMigration(target, half.tag, 'rolled-back'), 'drift');
    assert.match(undone.message, /does not match the schema without "20260102_000000_half"/);
    assert.match(undone.why ?? '', /made/);
    assert.match(undone.why ?? '', /t\.extra/);
    assert.match(undone.next[0] ?? '', / --retry/);
    const done = await expectError(resolveMigration(target, half.tag, 'applied'), 'drift');
    assert.match(done.message, /does not match the schema with "20260102_000000_half"/);
    assert.match(done.why ?? '', /^[^;]*\blast\b[^;]*$/);
    assert.equal(await state(), 'FAILED');

    for (const text of byHand.create) await target.connection.query(text);
    assert.equal((await resolveMigration(target, half.tag, 'applied')).status, 'completed');
    assert.equal(await state(), 'OK');
    assert.deepEqual(await driftOf(target), []);
  });

  on('what was undone by hand is rolled back, whatever else differs', async (target, byHand) => {
    const half = migration('20260102_000000_half')
      .createCollection('made', fields)
      .raw(name, byHand.refused, { transaction: false })
      .build();
    const defined = [base, half].map(definedInCode);
    await expectError(migrate(target, defined), 'migration_half_done');
    await target.connection.query(byHand.drop('made'));
    for (const text of byHand.create) await target.connection.query(text);
    await expectError(resolveMigration(target, half.tag, 'applied'), 'drift');
    assert.equal((await resolveMigration(target, half.tag, 'rolled-back')).status, 'rolled_back');
    assert.equal((await status(target, defined)).state, 'PENDING');
  });
}
