import * as assert from 'node:assert/strict';
import type { Target } from '../core/migration/target.ts';
import { migration } from '../core/migration/builder.ts';
import { resolveMigration } from '../core/migration/resolve.ts';
import { migrate, rollback } from '../core/migration/migrate.ts';
import { status } from '../core/migration/status.ts';
import { definedInCode } from './kit/defined.ts';
import { committingEngines } from './kit/engines.ts';
import { expectError } from './suites/expect-error.ts';
import { test } from './kit/test.ts';

// What a person is told of a migration that stopped half-way depends on the way that it went.

const id = { name: 'id', type: 'integer', primaryKey: true } as const;

for (const engine of committingEngines) {
  if (engine.missing !== undefined) {
    test.skip(`${engine.name}: what a person decides about the way up and the way back`, engine.missing);
    continue;
  }
  const on = (name: string, body: (adapter: Target) => Promise<void>) =>
    test(`${engine.name}: ${name}`, () => engine.withDatabase(body));
  const { name: dialect } = engine.dialect;
  const up = ['the rest was done by hand', 'the steps were undone by hand'];
  const back = [...up].reverse();
  const explained = (next: readonly string[]) =>
    ['--applied', '--rolled-back'].map(
      (flag) =>
        next
          .find((line) => line.includes(flag))
          ?.split(flag)[1]
          ?.trim() ?? '',
    );
  /** Goes neither way to its end, while a table of that name is there. */
  const stubborn = migration('20260101_000000_stubborn')
    .createCollection('made', [id])
    .raw(dialect, "INSERT INTO gate VALUES ('up')", { down: "INSERT INTO gate VALUES ('down')" })
    .createCollection('last', [id])
    .build();
  const defined = [definedInCode(stubborn)];
  const gate = ({ connection }: Target, open: boolean) =>
    connection.query(open ? 'CREATE TABLE gate (what varchar(9))' : 'DROP TABLE gate');

  on('a retry that fails again is told as half-done again', async (adapter) => {
    const first = await expectError(migrate(adapter, defined), 'migration_half_done');
    const again = await expectError(resolveMigration(adapter, stubborn.tag, 'retry'), 'migration_half_done');
    assert.deepEqual([again.state, again.next], [first.state, first.next]);
    assert.equal(again.state, '1 of 3 steps are committed.');
    await gate(adapter, true);
    assert.equal((await resolveMigration(adapter, stubborn.tag, 'retry')).status, 'completed');
  });

  on('a rollback that stops half-way explains the decisions the other way round', async (adapter) => {
    await gate(adapter, true);
    await migrate(adapter, defined);
    await gate(adapter, false);
    const told = await expectError(rollback(adapter), 'migration_half_done');
    for (const refusal of [told, await expectError(migrate(adapter, defined), 'migration_half_done')]) {
      assert.match(refusal.message, /^The rollback of "20260101_000000_stubborn" stopped half-way\.$/);
      assert.deepEqual(explained(refusal.next), back);
    }
    assert.equal(told.state, '1 of 3 steps are committed.');
    await resolveMigration(adapter, stubborn.tag, 'failed');
    assert.deepEqual(explained((await expectError(migrate(adapter, defined), 'migration_half_done')).next), back);
    // As it says: the rest of the way back is done by hand.
    await adapter.connection.query('DROP TABLE made');
    await resolveMigration(adapter, stubborn.tag, 'rolled-back');
    assert.equal((await status(adapter, defined)).state, 'PENDING');

    // And up again, which has been up and back before.
    const again = await expectError(migrate(adapter, defined), 'migration_half_done');
    assert.match(again.message, /^The migration "20260101_000000_stubborn" stopped half-way\.$/);
    assert.deepEqual(explained(again.next), up);
    await gate(adapter, true);
    await resolveMigration(adapter, stubborn.tag, 'retry');
    assert.equal((await status(adapter, defined)).state, 'OK');
    // One that is through and that a person marks is on no way back.
    await resolveMigration(adapter, stubborn.tag, 'failed');
    const through = explained((await expectError(migrate(adapter, defined), 'migration_half_done')).next);
    assert.deepEqual(through, ['it is applied', up[1]]);
    await resolveMigration(adapter, stubborn.tag, 'applied');
  });

  on('a rollback whose steps were undone by hand is applied', async (adapter) => {
    await gate(adapter, true);
    await migrate(adapter, defined);
    await gate(adapter, false);
    await expectError(rollback(adapter), 'migration_half_done');
    await adapter.connection.query('CREATE TABLE last (id int NOT NULL PRIMARY KEY)');
    await resolveMigration(adapter, stubborn.tag, 'applied');
    assert.equal((await status(adapter, defined)).state, 'OK');
    await gate(adapter, true);
    await rollback(adapter);
    assert.deepEqual([...(await adapter.connection.introspect()).keys()], ['gate']);
  });
}
