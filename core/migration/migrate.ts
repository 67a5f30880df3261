import { isSvcError, type SvcError } from '../errors.ts';
import type { History, HistoryRecord } from './history.ts';
import { type LockSessionOptions, withRecoveredHistory } from './lock-session.ts';
import { isPlanReviewed, reviewPlan } from './plan-approval.ts';
import { assertNoneBeingApplied, lastToKeep, planDown } from './plan-down.ts';
import { contractsOf, planUp, wantedBy } from './plan-up.ts';
import type { PlannedMigration } from './planned-migration.ts';
import {
  assertPlanConfirmed,
  planDownAfterRecovery,
  planUpAfterRecovery,
  type RollbackOptions,
  type RunOptions,
  readHistory,
} from './preview.ts';
import { assertDefined, assertReconciled, type DefinedMigration } from './reconcile.ts';
import { runMigrations } from './runner.ts';
import type { Target } from './target.ts';

export interface RunReport {
  readonly migrations: readonly FinishedMigration[];
  /** How many statements were run. */
  readonly steps: number;
  readonly durationMs: number;
  /** The tags that wait for `svc db migrate contract`. */
  readonly contracts: readonly string[];
}

interface FinishedMigration {
  readonly tag: string;
  readonly status: 'completed' | 'rolled_back';
  readonly durationMs: number;
  readonly statements: number;
}

/** Applies the pending migrations in tag order. If there is nothing to do, it takes no lock and writes nothing. */
export async function migrate(
  target: Target,
  defined: readonly DefinedMigration[],
  given: RunOptions = {},
): Promise<RunReport> {
  const startedAt = performance.now();
  assertDefined(given.to, defined);

  // Read the history without the lock: usually nothing is pending, and problems are reported at once.
  const history = await readHistory(target, given);
  const reconciled = await assertReconciled(target.connection, defined, history);
  const pending = wantedBy(reconciled.pending, given);
  if (pending.length === 0 && reconciled.interrupted.length === 0 && !given.adopt)
    return report([], startedAt, contractsOf(reconciled.pending));
  const options = await withRequestedKeep(target, pending, given);

  // Plan and confirm before the lock, so that no other process waits for a person.
  const isReviewed = options.confirm !== undefined || isPlanReviewed(target);
  const confirmed = isReviewed ? await planUpAfterRecovery(target, history, defined, options) : undefined;
  if (confirmed) await options.confirm?.(confirmed);
  const action = options.contract ? 'contract' : 'migrate';
  const plan = confirmed && (await reviewPlan(target, history, action, confirmed, options.ask));

  // Lock, read the history again, finish interrupted migrations, plan, then run and record each migration.
  const ran = await runUnderLock(target, { ...options, plan }, startedAt, async (current, rolledBack) => {
    for (const tag of rolledBack) notice(options, rollbackFinishedNotice(tag));
    const planned = await planUp(target, current, defined, options, rolledBack);
    if (!plan) assertPlanConfirmed(planned, confirmed);
    const outOfOrder = options.contract ? undefined : outOfOrderNotice(planned, current);
    if (outOfOrder !== undefined) notice(options, outOfOrder);
    return planned;
  });
  const finished = new Set(ran.migrations.map(({ tag }) => tag));
  const left = contractsOf(reconciled.pending).filter(({ tag }) => !finished.has(tag));
  return { ...ran, contracts: left.map(({ tag }) => tag) };
}

async function withRequestedKeep(
  { approver }: Target,
  pending: readonly DefinedMigration[],
  options: RunOptions,
): Promise<RunOptions> {
  if (!options.ask?.asRunner || pending.length === 0) return options;
  const keepMs = await approver?.requestedKeep(pending.map(({ migration }) => migration.tag));
  return keepMs === undefined ? options : { ...options, keepMs };
}

/** Rolls back the last `count` migrations of any origin, or all after `to`, in reverse order of application. */
export async function rollback(target: Target, options: RollbackOptions = {}): Promise<RunReport> {
  const startedAt = performance.now();
  const history = await readHistory(target, options);
  const last = lastToKeep(history, options);
  const confirmed = await planDownAfterRecovery(target, history, last);
  if (confirmed.length === 0) return report([], startedAt);
  if (options.confirm) await options.confirm(confirmed);
  const plan = await reviewPlan(target, history, 'rollback', confirmed, options.ask);
  try {
    return await runUnderLock(
      target,
      { ...options, plan, beforeRecovery: assertNoneBeingApplied },
      startedAt,
      async (current) => {
        const planned = await planDown(target, current, last);
        if (!plan) assertPlanConfirmed(planned, confirmed);
        for (const sentence of planned.flatMap(({ purged = [] }) => purged)) notice(options, sentence);
        await options.assertAllowed?.(planned);
        return planned;
      },
    );
  } catch (error) {
    throw isSvcError(error) ? error.with({ next: withRollbackCommand(error, last) }) : error;
  }
}

/** Takes the lock, recovers, plans and runs. `plan` receives the recovered history and the tags of finished rollbacks. */
function runUnderLock(
  target: Target,
  options: RunOptions,
  startedAt: number,
  plan: (history: History, rolledBack: ReadonlySet<string>) => Promise<PlannedMigration[]>,
): Promise<RunReport> {
  const { onEvent } = options;
  const finished: FinishedMigration[] = [];
  const session = { ...options, observer: observe(finished, onEvent), onWait: () => onEvent?.({ type: 'waiting' }) };
  return withRecoveredHistory(target, session, async (run, rolledBack) => {
    const from = run.history.completed().at(-1)?.row.tag;
    const planned = await plan(run.history, rolledBack).catch((error) => {
      throw afterRecovery(error, finished);
    });
    const last = planned.at(-1);
    if (last) {
      onEvent?.({
        type: 'planned',
        direction: last.direction,
        migrations: planned,
        to: last.tag,
        ...(from !== undefined && { from }),
      });
      await runMigrations(run, planned);
    }
    return report(finished, startedAt);
  });
}

/** Emits the events of each migration and collects the finished ones. */
function observe(
  finished: FinishedMigration[],
  onEvent: RunOptions['onEvent'],
): NonNullable<LockSessionOptions['observer']> {
  return {
    onBlocked: (sessions) => onEvent?.({ type: 'blocked', sessions }),
    onResumed: ({ tag, direction, statements }, done) =>
      onEvent?.({ type: 'resumed', tag, direction, done, steps: statements.length }),
    onStarted: ({ tag }) => onEvent?.({ type: 'started', tag }),
    onFinished: ({ tag }, { row }, statements) => {
      const status = row.status === 'rolled_back' ? 'rolled_back' : 'completed';
      const durationMs = row.duration_ms ?? 0;
      finished.push({ tag, status, durationMs, statements: statements.length });
      onEvent?.({ type: 'finished', tag, status, durationMs, statements });
    },
  };
}

/** Adds to a planning error that the recovery has already changed the database. */
function afterRecovery(error: unknown, recovered: readonly FinishedMigration[]): unknown {
  if (recovered.length === 0 || !isSvcError(error)) return error;
  const tags = recovered.map(({ tag }) => tag).join(', ');
  return error.with({
    state: `The interrupted migrations are finished: ${tags}. Nothing else was changed.`,
    details: { changed: true },
  });
}

/** Adds the exact command to repeat: a count would include the migrations that this run has already rolled back. */
function withRollbackCommand({ code, next }: SvcError, last: HistoryRecord | undefined): string[] {
  const command = last ? `svc db migrate rollback --to ${last.row.tag}` : 'svc db migrate status';
  // Before the decision it would fail with the same error.
  if (code === 'migration_half_done') return [...next, `Then: ${command}    for the rest of the rollback`];
  const lines = next.map((line) =>
    line.replace(/^Run the command again: /, `${command}    `).replace(/the command again\.?/, command),
  );
  return lines.some((line) => line.includes(command)) ? lines : [...lines, command];
}

function notice({ onEvent }: RunOptions, message: string): void {
  onEvent?.({ type: 'notice', message });
}

const rollbackFinishedNotice = (tag: string): string =>
  `The interrupted rollback of "${tag}" is finished. The migration is pending again; the next run applies it and those after it.`;

/** A notice about pending files that are older than an applied one; undefined without such files. */
function outOfOrderNotice(planned: readonly PlannedMigration[], history: History): string | undefined {
  const files = history.completed().filter(({ row }) => row.origin === 'file');
  const newest = files.reduce((last, { row }) => (row.tag > last ? row.tag : last), '');
  const older = planned.filter(({ tag }) => tag < newest).map(({ tag }) => tag);
  if (older.length === 0) return undefined;
  const tags = older.join(', ');
  return `Older than "${newest}", which is already applied: ${tags}. This is normal after a branch merge.`;
}

function report(
  migrations: readonly FinishedMigration[],
  startedAt: number,
  contracts: readonly DefinedMigration[] = [],
): RunReport {
  return {
    migrations,
    contracts: contracts.map(({ tag }) => tag),
    steps: migrations.reduce((sum, { statements }) => sum + statements, 0),
    durationMs: performance.now() - startedAt,
  };
}
