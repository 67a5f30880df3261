import type { BlockingSession } from '../dialect.ts';
import { SvcError } from '../errors.ts';
import { assertLocksFit } from './assert-locks-fit.ts';
import { assertDatabaseOwner, assertHistoryVersion, History, type HistoryRecord } from './history.ts';
import type { LockSessionOptions } from './lock-session.ts';
import type { AskOptions } from './plan-approver.ts';
import { lastToKeep, planDown } from './plan-down.ts';
import { type PlanUpOptions, planUp } from './plan-up.ts';
import { destructiveStatements, type PlannedMigration } from './planned-migration.ts';
import { type PreviewedMigration, previewStatements } from './preview-statements.ts';
import { type DefinedMigration, reconcile } from './reconcile.ts';
import { remainingSteps } from './recover.ts';
import type { Target } from './target.ts';

export type RunEvent =
  | { readonly type: 'waiting' }
  | {
      readonly type: 'planned';
      readonly direction: 'up' | 'down';
      readonly migrations: readonly PlannedMigration[];
      readonly from?: string;
      readonly to?: string;
    }
  /** The run finishes a migration, or a rollback, that was interrupted after `done` of its steps. */
  | {
      readonly type: 'resumed';
      readonly tag: string;
      readonly direction: 'up' | 'down';
      readonly done: number;
      readonly steps: number;
    }
  | { readonly type: 'started'; readonly tag: string }
  /** A statement waits for a lock of these sessions, as far as they are known; sent before each retry. */
  | { readonly type: 'blocked'; readonly sessions: readonly BlockingSession[] }
  | {
      readonly type: 'finished';
      readonly tag: string;
      readonly status: 'completed' | 'rolled_back';
      readonly durationMs: number;
      readonly statements: readonly string[];
    }
  | { readonly type: 'notice'; readonly message: string };

/** `to` is the last migration to apply, or the one that a rollback keeps. */
export interface RunOptions extends Omit<LockSessionOptions, 'onWait'>, PlanUpOptions {
  readonly onEvent?: (event: RunEvent) => void;
  /** How to ask for approval, where the environment requires it; a preview only counts as it says. */
  readonly ask?: AskOptions;
}

export interface RollbackOptions extends RunOptions {
  /** How many migrations to roll back; default 1. Ignored with `to`. */
  readonly count?: number;
  /** Called with the plan made under the lock, before its first statement. Throws if it is not allowed. */
  readonly assertAllowed?: (plan: readonly PlannedMigration[]) => Promise<void>;
}

/** The plan that `migrate` would run, interrupted migrations first. Takes no lock and writes nothing. */
export async function previewMigrate(
  target: Target,
  defined: readonly DefinedMigration[],
  options: RunOptions = {},
): Promise<PreviewedMigration[]> {
  const history = await readHistory(target, options);
  const planned = await planUpAfterRecovery(target, history, defined, options);
  await assertLocksFit(target, planned);
  return previewStatements(target, planned, options.ask);
}

/** The plan that `rollback` would run, interrupted rollbacks first. Takes no lock and writes nothing. */
export async function previewRollback(target: Target, options: RollbackOptions = {}): Promise<PreviewedMigration[]> {
  const history = await readHistory(target, options);
  const planned = await planDownAfterRecovery(target, history, lastToKeep(history, options));
  await assertLocksFit(target, planned);
  return previewStatements(target, planned, options.ask);
}

/** Reads the history without the lock. */
export async function readHistory(target: Target, { adopt }: Pick<RunOptions, 'adopt'>): Promise<History> {
  await (adopt ? assertHistoryVersion(target) : assertDatabaseOwner(target));
  return History.read(target.connection);
}

/** The recovery that a run would perform, followed by `planUp` on the recovered history. */
export async function planUpAfterRecovery(
  target: Target,
  history: History,
  defined: readonly DefinedMigration[],
  options: PlanUpOptions,
): Promise<PlannedMigration[]> {
  const { recovered, historyAfter } = await planRecovery(target, history);
  const rolledBack = new Set(recovered.flatMap(({ tag, direction }) => (direction === 'down' ? [tag] : [])));
  return [...recovered, ...(await planUp(target, historyAfter, defined, options, rolledBack))];
}

/** The recovery that a run would perform, followed by `planDown` on the recovered history. */
export async function planDownAfterRecovery(
  target: Target,
  history: History,
  last: HistoryRecord | undefined,
): Promise<PlannedMigration[]> {
  const { recovered, historyAfter } = await planRecovery(target, history);
  return [...recovered, ...(await planDown(target, historyAfter, last))];
}

async function planRecovery(
  target: Target,
  history: History,
): Promise<{ readonly recovered: readonly PlannedMigration[]; readonly historyAfter: History }> {
  const { interrupted } = reconcile([], history);
  if (interrupted.length === 0) return { recovered: [], historyAfter: history };
  const recovered: PlannedMigration[] = [];
  for (const record of interrupted) recovered.push(await remainingSteps(target, record));
  return { recovered, historyAfter: await History.readAsRecovered(target.connection) };
}

/**
 * Throws if the plan made under the lock contains more than the confirmed one. It may contain less, because others may
 * have applied part of it; but tables they created may contain data that the confirmed plan would not have destroyed.
 */
export function assertPlanConfirmed(
  planned: readonly PlannedMigration[],
  confirmed: readonly PlannedMigration[] | undefined,
): void {
  if (!confirmed) return;
  const confirmedByTag = new Map(confirmed.map((one) => [one.tag, one]));
  const unconfirmed = planned.find((one) => {
    const match = confirmedByTag.get(one.tag);
    return match?.checksum !== one.checksum || destructiveStatements(one).length > destructiveStatements(match).length;
  });
  if (!unconfirmed) return;
  throw new SvcError('check_failed', `The plan has changed since it was shown: "${unconfirmed.tag}" differs.`, {
    state: 'Nothing was changed.',
    next: ['Run the command again.'],
  });
}
