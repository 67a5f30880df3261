import * as assert from 'node:assert/strict';
import { migration } from '../core/migration/builder.ts';
import { inCreationOrder } from '../core/migration/creation-order.ts';
import { historyTable } from '../core/migration/history-table.ts';
import { migrate } from '../core/migration/migrate.ts';
import type { Target } from '../core/migration/target.ts';
import { committingEngines } from './kit/engines.ts';
import { definedInCode } from './kit/migrations.ts';
import { LONG } from './kit/project.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

// Indexes and constraints of a new table are part of the statement that creates it, where each statement is a step of its own.

const TAG = '20260101_000000_shop';
const key = { name: 'id', type: 'bigint', primaryKey: true } as const;
const fields = [key, { name: 'parent', type: 'bigint' }, { name: 'n', type: 'integer' }] as const;
const n = [{ name: 'n', order: 'desc' }] as const;
const reference = (name: string, table: string, column = 'id') =>
  ({ name, type: 'foreignKey', columns: ['parent'], references: { table, columns: [column] } }) as const;
const check = (name: string) => ({ name, type: 'check', columns: ['n'], expression: 'n > 0' }) as const;
const shop = () => migration(TAG).createCollection('a', fields).createCollection('b', fields);

const orderOf = (builder: ReturnType<typeof shop>): string =>
  inCreationOrder(builder.build().up)
    .map(({ index, ofCreation }) => `${ofCreation ? '+' : ''}${index}`)
    .join(' ');

test('an index and a constraint follow the creation of their table', () => {
  const builder = shop()
    .createIndex('a', 'a_n', n)
    .addConstraint('b', check('b_n'))
    .addConstraint('b', reference('b_a', 'a'))
    .addConstraint('a', reference('a_a', 'a'))
    .addConstraint('a', reference('a_old', 'old'));
  assert.equal(orderOf(builder), '0 +2 +5 +6 1 +3 +4');
});

test('a foreign key stays after the table and the key that it references', () => {
  const circle = shop().addConstraint('a', reference('a_b', 'b')).addConstraint('b', reference('b_a', 'a'));
  assert.equal(orderOf(circle), '0 1 +3 2');
  const keyed = shop()
    .createIndex('old', 'old_n', n, { unique: true })
    .addConstraint('a', reference('a_old', 'old', 'n'))
    .addConstraint('b', reference('b_other', 'other'));
  assert.equal(orderOf(keyed), '0 1 +4 2 3');
});

test('nothing is moved over another kind of operation, or to a table that may exist', () => {
  const dropped = shop()
    .dropIndex('old', 'a_n', { was: { columns: n } })
    .createIndex('a', 'a_n', n)
    .createCollection('c', fields)
    .addConstraint('c', reference('c_a', 'a'));
  assert.equal(orderOf(dropped), '0 1 2 3 4 5');
  const exists = migration(TAG)
    .createCollection('a', fields, { sqlOptions: { ifNotExists: true } })
    .createCollection('b', fields)
    .createIndex('a', 'a_n', n)
    .addConstraint('b', reference('b_a', 'a'));
  assert.equal(orderOf(exists), '0 1 2 3');
});

for (const engine of committingEngines) {
  const on = (name: string, body: (target: Target) => Promise<void>) =>
    engine.missing === undefined
      ? test(`${engine.name}: ${name}`, () => engine.withUrl(async (_url, connect) => body(await connect())), LONG)
      : test.skip(`${engine.name}: ${name}`, engine.missing);
  const whole = () =>
    shop()
      .createIndex('a', 'a_n', n)
      .addConstraint('b', check('b_n'))
      .createIndex('b', 'b_n_parent', [{ name: 'n' }, { name: 'parent' }], { unique: true })
      .addConstraint('b', reference('b_a', 'a'))
      .raw(engine.dialect.name, 'INSERT INTO gate VALUES (1)', { down: 'DELETE FROM gate' })
      .build();

  on('a table is created with its indexes and constraints in one step', async (target) => {
    const { connection } = target;
    await connection.query('CREATE TABLE gate (id integer)');
    const report = await migrate(target, [definedInCode(whole())]);
    assert.equal(report.steps, 3);
    const model = await connection.introspect(['a', 'b']);
    assert.deepEqual([...(model.get('a')?.indexes.keys() ?? [])], ['a_n']);
    assert.deepEqual(model.get('a')?.indexes.get('a_n')?.columns, [{ name: 'n', order: 'desc' }]);
    assert.deepEqual([...(model.get('b')?.constraints.keys() ?? [])].sort(), ['b_a', 'b_n']);
    assert.equal(model.get('b')?.indexes.get('b_n_parent')?.unique, true);
  });

  /** Stops at the raw statement, and returns the history to where the creation of `b` was sent. */
  async function interrupted(target: Target): Promise<void> {
    await expectError(migrate(target, [definedInCode(whole())]), 'migration_half_done');
    const history = target.connection.records(historyTable);
    const { record, version } = (await history.get(TAG)) ?? assert.fail('no row');
    assert.deepEqual([record.step, record.journal?.order], [2, [0, 2, 1, 3, 4, 5, 6]]);
    const sent = { ...record, status: 'applying', error: null, step: 1, started: true } as const;
    await history.replace(TAG, version, sent, { epoch: record.epoch });
    await target.connection.query('CREATE TABLE gate (id integer)');
  }
  const assertFinished = async (target: Target): Promise<void> => {
    await migrate(target, [definedInCode(whole())]);
    const model = await target.connection.introspect(['b']);
    assert.deepEqual([...(model.get('b')?.constraints.keys() ?? [])].sort(), ['b_a', 'b_n']);
    assert.equal((await target.connection.query('SELECT id FROM gate')).length, 1);
  };

  on('a run that stopped after such a step finds it done', async (target) => {
    await interrupted(target);
    await assertFinished(target);
  });

  on('a run that stopped before such a step makes all of it', async (target) => {
    await interrupted(target);
    await target.connection.query('DROP TABLE b');
    await assertFinished(target);
  });

  on('a table without one of its constraints is not taken for the step', async (target) => {
    await interrupted(target);
    await target.connection.query('ALTER TABLE b DROP INDEX b_n_parent');
    await expectError(migrate(target, [definedInCode(whole())]), 'migration_half_done');
  });

  on('a key with another type of number than an existing table is refused before the first step', async (target) => {
    const { connection } = target;
    await connection.query('CREATE TABLE old (id int unsigned PRIMARY KEY)');
    const built = shop().addConstraint('b', reference('b_old', 'old')).build();
    const error = await expectError(migrate(target, [definedInCode(built)]), 'constraint_invalid');
    assert.match(error.message, /"b\.parent" cannot reference "old"/);
    assert.equal((await connection.introspect(['a'])).size, 0);
  });
}
