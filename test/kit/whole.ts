import * as assert from 'node:assert/strict';
import type { Target } from '../../core/migration/target.ts';
import { drift } from '../../core/migration/drift.ts';
import { MigrationEngine } from '../../core/migration/engine.ts';
import type { Migration } from '../../core/migration/migration.ts';
import { historyModel } from '../../core/migration/history.ts';
import { status } from '../../core/migration/status.ts';
import { definedInCode } from './defined.ts';

/** Every migration is applied, in order and once, and the catalog is what they say. */
export async function assertWhole(adapter: Target, migrations: readonly Migration[]): Promise<void> {
  const report = await status(adapter, migrations.map(definedInCode));
  assert.equal(report.state, 'OK', JSON.stringify(report.entries));
  const { connection } = adapter;
  assert.deepEqual(await drift(connection, await historyModel(adapter), await connection.introspect()), []);
  const history = await new MigrationEngine(adapter).getHistory();
  assert.deepEqual(
    history.map(({ tag }) => tag),
    migrations.map(({ tag }) => tag),
  );
}
