import { SvcError } from '../errors.ts';
import { CLOCK, type RecordWrite, recordWrite, type Writable } from '../records.ts';
import { applyAll } from '../schema/apply.ts';
import { version } from '../version.ts';
import { affectedCollections } from './affected-collections.ts';
import { drift, withoutUnknownReferences, withUnreadObjects } from './drift.ts';
import { type HistoryRow, historyTable, osActor } from './history-table.ts';
import type { MigrationRun } from './journal.ts';
import { type LockSessionOptions, withRecoveredHistory } from './lock-session.ts';
import { checksum, type Migration } from './migration.ts';
import { upTo } from './plan-up.ts';
import { assertDefined, assertReconciled, type DefinedMigration, reconcile } from './reconcile.ts';
import { replayMigrations } from './replay.ts';
import { auditWrite } from './resolve.ts';
import { nameOfTag } from './tag.ts';
import type { Target } from './target.ts';

/** Records pending migrations as applied without running them. Throws `drift` unless the catalog matches their result. */
export async function baseline(
  target: Target,
  defined: readonly DefinedMigration[],
  options: LockSessionOptions & { readonly to?: string } = {},
): Promise<{ readonly tags: readonly string[] }> {
  assertDefined(options.to, defined);
  return withRecoveredHistory(target, options, async (run) => {
    const reconciled = reconcile(defined, run.history);
    assertReconciled(reconciled);
    const pending = upTo(reconciled.pending, options.to).map(({ migration }) => migration);
    if (pending.length === 0) return { tags: [] };
    await assertPresent(run, pending);
    let seq = run.history.lastSeq;
    const writes = pending.flatMap((migration) => [
      auditWrite(migration, 'baseline'),
      baselineWrite(run, migration, ++seq),
    ]);
    const { failure } = await target.connection.run([{ transactional: true, statements: [], writes }], run.epoch);
    if (failure) throw failure.error;
    return { tags: pending.map(({ tag }) => tag) };
  });
}

/** Throws `drift` unless the catalog matches the schema that the history and these migrations produce. */
async function assertPresent({ target, history }: MigrationRun, pending: readonly Migration[]): Promise<void> {
  const { connection } = target;
  const operations = pending.flatMap(({ up }) => up);
  const { unmanaged } = replayMigrations(
    (await history.completedMigrations(connection)).map(({ migration }) => migration),
  );
  const before = new Map(await history.model(connection));
  // The model contains unmanaged tables as introspected. A table that a pending migration creates must come from it.
  for (const operation of operations) {
    if (operation.type === 'createCollection' && unmanaged.has(operation.name)) before.delete(operation.name);
  }
  const model = applyAll(operations, before);
  const names = new Set(operations.flatMap(affectedCollections));
  const expected = new Map([...model].filter(([name]) => names.has(name)));
  const read = withoutUnknownReferences(await connection.introspect([...names]), model);
  // `svc db schema pull` keeps what its migration must not drop.
  const found = withUnreadObjects(read, before, await connection.unsupportedObjects());
  const differences = await drift(connection, expected, found);
  if (differences.length === 0) return;
  throw new SvcError('drift', 'The database does not match the schema that the migrations produce.', {
    why: differences.join('; '),
    state: 'Nothing was recorded.',
    next: ['svc db schema pull    writes the schema file and a migration that match the database'],
    details: { differences },
  });
}

function baselineWrite({ history, epoch }: MigrationRun, migration: Migration, seq: number): RecordWrite {
  const known = history.records.get(migration.tag)?.version;
  const row: Writable<HistoryRow> = {
    tag: migration.tag,
    seq,
    name: migration.name ?? nameOfTag(migration.tag),
    origin: 'file',
    status: 'completed',
    applied_at: CLOCK,
    rolled_back_at: null,
    // null means that it never ran, which prevents a rollback.
    duration_ms: null,
    checksum: checksum(migration),
    migration,
    step: migration.up.length,
    steps: migration.up.length,
    error: null,
    sdk_version: version,
    applied_by: osActor(),
    epoch,
    journal: null,
    started: false,
    found: null,
  };
  return recordWrite(historyTable, row, known);
}
