import * as assert from 'node:assert/strict';
import { migration } from '../core/migration/builder.ts';
import { migrate, rollback } from '../core/migration/migrate.ts';
import { resolveMigration } from '../core/migration/resolve.ts';
import { status } from '../core/migration/status.ts';
import type { Target } from '../core/migration/target.ts';
import { committingEngines } from './kit/engines.ts';
import { definedInCode } from './kit/migrations.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

// The error for an interrupted migration depends on its direction.

const id = { name: 'id', type: 'integer', primaryKey: true } as const;

for (const engine of committingEngines) {
  if (engine.missing !== undefined) {
    test.skip(`${engine.name}: decisions about interrupted migrations and rollbacks`, engine.missing);
    continue;
  }
  const on = (name: string, body: (adapter: Target) => Promise<void>) =>
    test(`${engine.name}: ${name}`, () => engine.withDatabase(body));
  const { name: dialect } = engine.dialect;
  const up = ['the rest was done by hand', 'the steps were undone by hand'];
  const rolledBackReason = [...up].reverse();
  const explained = (next: readonly string[]) =>
    ['--applied', '--rolled-back'].map(
      (flag) =>
        next
          .find((line) => line.includes(flag))
          ?.split(flag)[1]
          ?.trim() ?? '',
    );
  /** Neither up nor down can finish while a table of that name exists. */
  const failing = migration('20260101_000000_stubborn')
    .createCollection('made', [id])
    .raw(dialect, "INSERT INTO gate VALUES ('up')", { down: "INSERT INTO gate VALUES ('down')" })
    .createCollection('last', [id])
    .build();
  const defined = [definedInCode(failing)];
  const gate = ({ connection }: Target, open: boolean) =>
    connection.query(open ? 'CREATE TABLE gate (what varchar(9))' : 'DROP TABLE gate');

  on('a retry that fails again is reported as interrupted again', async (adapter) => {
    const first = await expectError(migrate(adapter, defined), 'migration_half_done');
    const again = await expectError(resolveMigration(adapter, failing.tag, 'retry'), 'migration_half_done');
    assert.deepEqual([again.state, again.next], [first.state, first.next]);
    assert.equal(again.state, '1 of 3 steps are committed.');
    await gate(adapter, true);
    assert.equal((await resolveMigration(adapter, failing.tag, 'retry')).status, 'completed');
  });

  on('an interrupted rollback explains the decisions from its direction', async (adapter) => {
    await gate(adapter, true);
    await migrate(adapter, defined);
    await gate(adapter, false);
    const interrupted = await expectError(rollback(adapter), 'migration_half_done');
    for (const refusal of [interrupted, await expectError(migrate(adapter, defined), 'migration_half_done')]) {
      assert.match(refusal.message, /^The rollback of "20260101_000000_stubborn" stopped half-way\.$/);
      assert.deepEqual(explained(refusal.next), rolledBackReason);
    }
    assert.equal(interrupted.state, '1 of 3 steps are committed.');
    await resolveMigration(adapter, failing.tag, 'failed');
    assert.deepEqual(
      explained((await expectError(migrate(adapter, defined), 'migration_half_done')).next),
      rolledBackReason,
    );
    const { why, next } = await expectError(resolveMigration(adapter, failing.tag, 'rolled-back'), 'drift');
    assert.match(why ?? '', /made/);
    assert.match(next[0] ?? '', /--retry +run the rest$/);
    // As explained: the rest of the rollback is done by hand.
    await adapter.connection.query('DROP TABLE made');
    await resolveMigration(adapter, failing.tag, 'rolled-back');
    assert.equal((await status(adapter, defined)).state, 'PENDING');

    // And applied again, after a rollback.
    const again = await expectError(migrate(adapter, defined), 'migration_half_done');
    assert.match(again.message, /^The migration "20260101_000000_stubborn" stopped half-way\.$/);
    assert.deepEqual(explained(again.next), up);
    await gate(adapter, true);
    await resolveMigration(adapter, failing.tag, 'retry');
    assert.equal((await status(adapter, defined)).state, 'OK');
    // A finished migration that is marked as failed is not being rolled back.
    await adapter.connection.query("UPDATE _svc_migrations SET status = 'failed'");
    const completed = explained((await expectError(migrate(adapter, defined), 'migration_half_done')).next);
    assert.deepEqual(completed, ['it is applied', up[1]]);
    await resolveMigration(adapter, failing.tag, 'applied');
  });

  on('a rollback whose reverted steps were undone by hand leaves the migration applied', async (adapter) => {
    await gate(adapter, true);
    await migrate(adapter, defined);
    await gate(adapter, false);
    await expectError(rollback(adapter), 'migration_half_done');
    await expectError(resolveMigration(adapter, failing.tag, 'applied'), 'drift');
    await adapter.connection.query('CREATE TABLE last (id int NOT NULL PRIMARY KEY)');
    await resolveMigration(adapter, failing.tag, 'applied');
    assert.equal((await status(adapter, defined)).state, 'OK');
    await gate(adapter, true);
    await rollback(adapter);
    assert.deepEqual([...(await adapter.connection.introspect()).keys()], ['gate']);
  });
}
