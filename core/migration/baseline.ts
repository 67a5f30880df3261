import { isSvcError, SvcError } from '../errors.ts';
import { CLOCK, type RecordWrite, recordWrite, type Writable } from '../records.ts';
import { applyAll } from '../schema/apply.ts';
import { isObjectOperation, objectKey, objectsAfter } from '../schema/database-object.ts';
import type { Collection } from '../schema/model.ts';
import { modelOperations } from '../schema/model-operations.ts';
import { version } from '../version.ts';
import { affectedCollections } from './affected-collections.ts';
import { drift, withoutUnknownReferences, withUnreadObjects } from './drift.ts';
import { type HistoryRow, historyTable, osActor } from './history-table.ts';
import type { MigrationRun } from './journal.ts';
import { assertKnownDialects } from './known-dialects.ts';
import { type LockSessionOptions, withRecoveredHistory } from './lock-session.ts';
import { checksum, type Migration } from './migration.ts';
import { objectDrift, readObjects } from './objects.ts';
import { upTo } from './plan-up.ts';
import { assertDefined, assertReconciled, type DefinedMigration } from './reconcile.ts';
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
    const reconciled = await assertReconciled(target.connection, defined, run.history);
    const pending = upTo(reconciled.pending, options.to).map(({ migration }) => migration);
    if (pending.length === 0) return { tags: [] };
    for (const migration of pending) assertKnownDialects(target, migration);
    const files = reconciled.pending.flatMap(({ file }) => file ?? []);
    const present = await assertPresent(run, pending, files).catch(async (error: unknown) => {
      throw await withPresentPart(run, pending, files, error);
    });
    await target.connection.adopt?.(present, run.epoch);
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

/** How many of the last migrations are left out in turn, to find those that the database has. */
const MAX_LEFT_OUT = 20;

/** The error, with the command that records the first of these migrations, if the database has those only. */
async function withPresentPart(
  run: MigrationRun,
  pending: readonly Migration[],
  files: readonly string[],
  error: unknown,
): Promise<unknown> {
  if (!isSvcError(error) || error.code !== 'drift') return error;
  for (let leftOut = 1; leftOut < Math.min(pending.length, MAX_LEFT_OUT + 1); leftOut += 1) {
    const part = pending.slice(0, -leftOut);
    try {
      await assertPresent(run, part, files);
    } catch {
      continue;
    }
    return error.with({
      next: [`svc db migrate baseline --to ${part.at(-1)?.tag}    records those that the database has`, ...error.next],
    });
  }
  return error;
}

/**
 * The collections that these migrations affect. Throws `drift` unless the catalog matches the schema that the history and
 * these migrations produce.
 */
async function assertPresent(
  { target, history }: MigrationRun,
  pending: readonly Migration[],
  files: readonly string[],
): Promise<readonly Collection[]> {
  const { connection, dialect } = target;
  const operations = pending.flatMap(({ up }) => modelOperations(up, dialect.name));
  const { unmanaged } = replayMigrations(
    (await history.completedMigrations(connection)).map(({ migration }) => migration),
    dialect.name,
  );
  const before = new Map(await history.model(target));
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
  let differences = await drift(connection, expected, found);
  if (differences.length > 0 && connection.introspectAs) {
    const described = new Map(found);
    for (const [name, collection] of expected) {
      const one = await connection.introspectAs(collection);
      if (one) described.set(name, one);
    }
    differences = await drift(connection, expected, described);
  }
  differences = [...differences, ...(await objectDifferences(connection, pending))];
  if (differences.length === 0) return [...expected.values()];
  throw new SvcError('drift', 'The database does not match the schema that the migrations produce.', {
    why: differences.join('; '),
    state: 'Nothing was recorded.',
    next: [
      `${files.length > 0 ? `Delete ${files.join(', ')}, then: ` : ''}svc db schema pull    writes the schema file and a migration that match the database`,
      'Or change the database to match the migrations, then: svc db migrate baseline',
    ],
    details: { differences },
  });
}

/** The objects that these migrations make or drop, compared with those that exist. */
async function objectDifferences(
  connection: Target['connection'],
  pending: readonly Migration[],
): Promise<readonly string[]> {
  const operations = pending.flatMap(({ up }) => up.filter(isObjectOperation));
  if (operations.length === 0) return [];
  const affected = new Set(operations.map(objectKey));
  const found = new Map([...(await readObjects(connection))].filter(([key]) => affected.has(key)));
  return objectDrift(connection, objectsAfter(operations), found);
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
