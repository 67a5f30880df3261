import * as assert from 'node:assert/strict';
import { drift } from '../../core/migration/drift.ts';
import { historyModel } from '../../core/migration/history.ts';
import { checksum, type Migration } from '../../core/migration/migration.ts';
import { MigrationEngine } from '../../core/migration/migration-engine.ts';
import type { DefinedMigration } from '../../core/migration/reconcile.ts';
import { status } from '../../core/migration/status.ts';
import type { Target } from '../../core/migration/target.ts';
import { applyAll } from '../../core/schema/apply.ts';
import { invertAll } from '../../core/schema/invert.ts';
import type { MigrationOperation } from '../../core/schema/operation.ts';

/** Defines a migration as its file would. */
export function definedInCode(migration: Migration): DefinedMigration {
  return { tag: migration.tag, checksum: checksum(migration), migration };
}

/** A migration that can be rolled back, after the operations `before`. */
export const reversible = (
  tag: string,
  up: readonly MigrationOperation[],
  before: readonly MigrationOperation[] = [],
): Migration => ({
  tag,
  name: tag,
  up,
  down: invertAll(up, applyAll(before)),
});

/** Asserts that every migration is applied, in order and once, and that the catalog matches them. */
export async function assertFullyMigrated(target: Target, migrations: readonly Migration[]): Promise<void> {
  const report = await status(target, migrations.map(definedInCode));
  assert.equal(report.state, 'OK', JSON.stringify(report.entries));
  const { connection } = target;
  assert.deepEqual(await drift(connection, await historyModel(target), await connection.introspect()), []);
  const history = await new MigrationEngine(target).getHistory();
  assert.deepEqual(
    history.map(({ tag }) => tag),
    migrations.map(({ tag }) => tag),
  );
}
