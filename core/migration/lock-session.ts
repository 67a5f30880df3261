import { AsyncLocalStorage } from 'node:async_hooks';
import type { LockOptions } from '../dialect.ts';
import { SvcError } from '../errors.ts';
import { processWide } from '../process-wide.ts';
import { claimDatabase, History, isRollback, newApprovalStore } from './history.ts';
import type { MigrationRun } from './journal.ts';
import type { ReviewedPlan } from './plan-approver.ts';
import { interruptedError } from './reconcile.ts';
import { resumeMigration } from './recover.ts';
import type { Target } from './target.ts';

export interface LockSessionOptions extends Pick<LockOptions, 'onWait' | 'signal'> {
  /** Milliseconds; default 60,000. */
  readonly lockTimeoutMs?: number;
  /** Takes over a database whose `_svc_meta` names another product, database or environment. */
  readonly adopt?: boolean;
  /** The history of this process's last session, still valid if nobody else has held the lock since. */
  readonly cached?: { readonly history: History; readonly epoch: number } | undefined;
  /** Of the plan, if it needed one before the lock. */
  readonly plan?: ReviewedPlan | undefined;
  /** Called before interrupted migrations are finished; throws to prevent it. */
  readonly beforeRecovery?: (history: History) => void;
  /** Receives each migration of the session, recovered ones included. */
  readonly observer?: Pick<MigrationRun, 'onResumed' | 'onStarted' | 'onFinished' | 'onBlocked'>;
}

/**
 * Takes the lock, reads the history and finishes interrupted migrations, then runs `work`. `rolledBack` are the tags
 * whose interrupted rollback was finished.
 */
export function withRecoveredHistory<T>(
  target: Target,
  options: LockSessionOptions,
  work: (run: MigrationRun, rolledBack: ReadonlySet<string>) => Promise<T>,
): Promise<T> {
  return withLockedHistory(target, options, async (run) => {
    if (run.history === options.cached?.history) return work(run, new Set());
    options.beforeRecovery?.(run.history);
    return work(run, await recoverInterrupted(run));
  });
}

/** The databases whose lock the current call chain holds. Requesting one of them again would deadlock. */
const heldLocks = processWide('held-locks', () => new AsyncLocalStorage<ReadonlySet<string>>());

/** Takes the lock, reads the history without recovery, and runs `work`. */
export async function withLockedHistory<T>(
  target: Target,
  options: LockSessionOptions,
  work: (run: MigrationRun) => Promise<T>,
): Promise<T> {
  const { lockTimeoutMs, onWait, signal, adopt, cached, observer, plan } = options;
  const database = JSON.stringify([target.product, target.database, target.env]);
  const held = heldLocks.getStore() ?? new Set();
  if (held.has(database)) {
    throw new SvcError('hook_refused', 'A migration cannot be started inside another one on the same database.', {
      why: 'A hook that runs under the migration lock requested the same lock.',
      state: 'It was not started.',
      next: ['Start it before or after the run, or on another database.'],
    });
  }
  // The store of the requests may be in the same database, and takes this lock when it is opened the first time.
  const approvalStore = await newApprovalStore(target);
  let askAgain: (() => Promise<SvcError>) | undefined;
  const onStale = (ask: () => Promise<SvcError>): void => {
    askAgain = ask;
  };
  const ran = target.connection.withLock(
    (epoch) =>
      heldLocks.run(new Set([...held, database]), async () => {
        const run = { ...observer, target, epoch, signal, plan, onStale, sentText: new Map() };
        if (cached && epoch === cached.epoch + 1) return work({ ...run, history: cached.history });
        await claimDatabase(target, epoch, adopt ?? false, approvalStore);
        return work({ ...run, history: await History.read(target.connection) });
      }),
    {
      ...(lockTimeoutMs !== undefined && { timeoutMs: lockTimeoutMs }),
      ...(onWait && { onWait }),
      ...(signal && { signal }),
    },
  );
  return ran.catch(async (error) => {
    throw askAgain ? await askAgain() : error;
  });
}

/**
 * Finishes interrupted migrations: this process has the lock, so the process that ran them is dead. Throws for a failed
 * one, which needs a person's decision. Returns the tags of finished rollbacks.
 */
async function recoverInterrupted(run: MigrationRun): Promise<ReadonlySet<string>> {
  const rolledBack = new Set<string>();
  for (const record of run.history.inOrder()) {
    if (record.row.status === 'failed') throw interruptedError(record);
    if (record.row.status !== 'applying') continue;
    await resumeMigration(run, record);
    if (isRollback(record.row)) rolledBack.add(record.row.tag);
  }
  return rolledBack;
}
