import * as assert from 'node:assert/strict';
import { migrate, rollback } from '../core/migration/migrate.ts';
import type { Migration } from '../core/migration/migration.ts';
import { MigrationEngine } from '../core/migration/migration-engine.ts';
import type { Operation } from '../core/schema/operation.ts';
import { sqlEngines } from './kit/engines.ts';
import { definedInCode } from './kit/migrations.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

// A `down` written by hand that drops what an earlier migration created.

const field = (name: string) => ({ name, type: 'integer' }) as const;
const created: Migration = {
  tag: '20260101_000000_t',
  name: 't',
  up: [{ type: 'createCollection', name: 't', fields: [{ ...field('id'), primaryKey: true }, field('b')] }],
  down: [{ type: 'dropCollection', collection: 't' }],
};
const dropB: Operation = { type: 'dropField', collection: 't', field: 'b' };
const addX: Operation = { type: 'addField', collection: 't', field: field('x') };
const second = (up: readonly Operation[], down: readonly Operation[]): Migration => ({
  tag: '20260102_000000_x',
  name: 'x',
  up,
  down,
});

const [engine] = sqlEngines.filter(({ name }) => name === 'pglite');
assert.ok(engine);

test('a rollback that would drop a field or table of an earlier migration is rejected before it changes anything', () =>
  engine.withDatabase(async (target) => {
    for (const down of [[dropB], [{ type: 'dropCollection', collection: 't' } as const]]) {
      const files = [created, second([addX], down)].map(definedInCode);
      await migrate(target, files);
      const error = await expectError(rollback(target, { allowDestructive: true }), 'not_reversible_now');
      await expectError(new MigrationEngine(target).down(second([addX], down)), 'not_reversible_now');
      assert.match(error.message, /would drop "t(\.b)?", which an earlier migration created/);
      assert.deepEqual([...((await target.connection.introspect()).get('t')?.fields.keys() ?? [])], ['id', 'b', 'x']);
      await target.connection.query('ALTER TABLE t DROP COLUMN x');
      await target.connection.query('DELETE FROM _svc_migrations WHERE seq > 1');
    }
  }));

test('a rollback that loses only what its own migration changed is not', () =>
  engine.withDatabase(async (target) => {
    await migrate(target, [created].map(definedInCode));
    const cases: [Operation[], Operation[]][] = [
      [[addX], [{ type: 'dropField', collection: 't', field: 'x' }]],
      [[dropB, { type: 'addField', collection: 't', field: { name: 'b', type: 'text' } }], [dropB]],
      [[{ type: 'renameField', collection: 't', from: 'b', to: 'c' }], [{ ...dropB, field: 'c' }]],
      [[addX], [dropB, { type: 'addField', collection: 't', field: field('b') }, { ...dropB, field: 'x' }]],
    ];
    for (const [up, down] of cases) {
      const files = [created, second(up, down)].map(definedInCode);
      await migrate(target, files, { allowDestructive: true });
      const { migrations } = await rollback(target, { allowDestructive: true });
      assert.equal(migrations.length, 1);
      await target.connection.query('DROP TABLE t');
      await target.connection.query('CREATE TABLE t (id integer PRIMARY KEY, b integer)');
    }
    await rollback(target, { allowDestructive: true });
  }));
