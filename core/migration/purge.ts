import { SvcError } from '../errors.ts';
import { CLOCK, recordUpdate } from '../records.ts';
import { deserializeCollection } from '../schema/model.ts';
import type { MutableSchema } from '../schema/mutable-schema.ts';
import type { Operation } from '../schema/operation.ts';
import { assertLocksFit } from './assert-locks-fit.ts';
import { migrationError } from './failure.ts';
import type { History } from './history.ts';
import type { MigrationRun } from './journal.ts';
import { type Kept, keptTable, readKept, withKeptField } from './kept.ts';
import { withRecoveredHistory } from './lock-session.ts';
import type { Migration } from './migration.ts';
import { modelForPlanning, planMigration } from './plan.ts';
import { PURGE, reviewPlan, runReviewed } from './plan-approval.ts';
import { destructiveStatements, type PlannedMigration } from './planned-migration.ts';
import { type RunOptions, readHistory } from './preview.ts';
import { type PreviewedMigration, previewStatements } from './preview-statements.ts';
import type { Target } from './target.ts';

/** A dropped table or field that is kept. */
export interface KeptEntry {
  readonly table: string;
  readonly field?: string;
  /** The name that it has while it is kept. */
  readonly name: string;
  /** The migration that dropped it. */
  readonly tag: string;
  readonly keptAt: Date;
  readonly keptUntil: Date;
}

export interface PurgeOptions extends Omit<RunOptions, 'to' | 'keepMs'> {
  /** Also what is to be kept longer. */
  readonly all?: boolean;
}

/** What is kept, the earliest first. */
export const listKept = async (target: Target): Promise<KeptEntry[]> => (await keptNow(target)).map(entryOf);

const keptNow = async (target: Target): Promise<Kept[]> => (await readKept(target)).filter(({ exists }) => exists);

function entryOf({ record }: Kept): KeptEntry {
  const { collection, field, name, tag, kept_at, kept_until } = record;
  return { table: collection, ...(field !== null && { field }), name, tag, keptAt: kept_at, keptUntil: kept_until };
}

export interface PurgePlan {
  readonly kept: readonly KeptEntry[];
  /** Empty if nothing is due. */
  readonly planned: readonly PreviewedMigration[];
}

/** What `purge` would drop. Takes no lock and writes nothing. */
export async function previewPurge(target: Target, options: PurgeOptions = {}): Promise<PurgePlan> {
  const history = await readHistory(target, options);
  const { due, kept } = await readDue(target, options);
  const planned = await planPurge(target, history, due, kept);
  return { kept: due.map(entryOf), planned: await previewStatements(target, planned, options.ask) };
}

/**
 * Drops what was kept long enough, under the migration lock. It is noted as purged before it is dropped: what is still in the
 * catalog after a run that was killed is dropped by the next one. Returns what was dropped.
 */
export async function purge(target: Target, options: PurgeOptions = {}): Promise<readonly KeptEntry[]> {
  const history = await readHistory(target, options);
  const { due, kept } = await readDue(target, options);
  if (due.length === 0) return [];
  const shown = await planPurge(target, history, due, kept);
  if (options.confirm) await options.confirm(shown);
  else if (!options.allowDestructive && !target.approver) assertMayPurge(shown);
  const plan = await reviewPlan(target, history, PURGE, shown, options.ask);
  const names = new Set(due.map(({ record }) => record.name));
  const session = { ...options, plan, onWait: () => options.onEvent?.({ type: 'waiting' }) };
  return withRecoveredHistory(target, session, async (run) => {
    // Another run may have purged or restored some of it. What has become due since was shown to nobody.
    const now = await readDue(target, options);
    const left = now.due.filter(({ record }) => names.has(record.name));
    const planned = await planPurge(target, run.history, left, now.kept);
    const [only] = planned;
    if (only) {
      await assertLocksFit(target, planned);
      await runReviewed(run, planned, () => drop(run, only, left));
    }
    return left.map(entryOf);
  });
}

async function readDue(target: Target, { all = false }: PurgeOptions): Promise<{ due: Kept[]; kept: Kept[] }> {
  const kept = await keptNow(target);
  if (all || kept.length === 0) return { due: kept, kept };
  const now = await target.connection.now();
  return { due: kept.filter(({ record }) => record.kept_until <= now), kept };
}

/** One plan with a statement for each, fields first: those of a table that is dropped too need none. */
async function planPurge(
  target: Target,
  history: History,
  due: readonly Kept[],
  kept: readonly Kept[],
): Promise<PlannedMigration[]> {
  if (due.length === 0) return [];
  const tables = new Set(due.flatMap(({ record }) => (record.field === null ? [record.name] : [])));
  const dropped = due.filter(({ table }) => table === undefined || !tables.has(table));
  const model = await modelForPlanning(target, history, []);
  await addKept(model, target, dropped, kept);
  const up = dropped.map(
    ({ record, table }): Operation =>
      table === undefined
        ? { type: 'dropCollection', collection: record.name }
        : { type: 'dropField', collection: table, field: record.name },
  );
  const lossy = due.map(({ record: { collection, field, tag, kept_until } }) => {
    const what = field === null ? `The table "${collection}"` : `The field "${collection}.${field}"`;
    return `${what}, which ${tag} dropped, was to be kept until ${kept_until.toISOString()}.`;
  });
  const migration: Migration = { tag: 'purge', name: 'purge', up, down: [], lossy };
  return [await planMigration(target, migration, 'up', 'api', model)];
}

/** A field may be in a table that is kept itself, or in one that svc did not create. */
async function addKept(
  model: MutableSchema,
  target: Target,
  dropped: readonly Kept[],
  kept: readonly Kept[],
): Promise<void> {
  for (const { record, table } of dropped) {
    const name = table ?? record.name;
    const whole = kept.find((one) => one.record.name === name)?.record;
    const known =
      model.get(name) ??
      (whole && { ...deserializeCollection(whole.definition), name }) ??
      (await target.connection.introspect([name])).get(name);
    if (known) model.set(name, table === undefined ? known : withKeptField(known, record));
  }
}

async function drop(run: MigrationRun, planned: PlannedMigration, kept: readonly Kept[]): Promise<void> {
  const { connection, dialect } = run.target;
  const writes = kept.map(({ record: { name }, version }) =>
    recordUpdate(keptTable, { name, purged_at: CLOCK }, version),
  );
  const steps = planned.steps.map(({ transactional, statements }) => ({ transactional, statements, writes: [] }));
  const segments = dialect.capabilities.transactionalDdl
    ? [{ transactional: true, statements: planned.statements, writes }]
    : [{ transactional: true, statements: [], writes }, ...steps];
  const { failure, committed } = await connection.run(segments, run.epoch);
  if (!failure) return;
  const done = Math.max(0, committed - 1);
  throw migrationError(
    planned,
    failure,
    done > 0 ? `${done} of ${kept.length} are dropped; the next run drops the rest.` : 'Nothing was dropped.',
    done,
  );
}

function assertMayPurge(planned: readonly PlannedMigration[]): void {
  const statements = planned.flatMap(destructiveStatements);
  throw new SvcError('destructive', 'The purge destroys what was kept.', {
    why: planned
      .flatMap(({ migration }) => migration.lossy ?? [])
      .slice(0, 3)
      .join(' '),
    state: 'Nothing was changed.',
    next: ['Preview first: svc db migrate purge --dry-run', 'Then: svc db migrate purge --allow-destructive'],
    details: { statements },
  });
}
