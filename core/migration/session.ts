import type { Adapter } from '../database/adapter.ts';
import type { LockOptions } from '../dialect.ts';
import type { Execution } from './execution.ts';
import { halfDone, resume } from './journal.ts';
import { claimDatabase, Ledger } from './ledger.ts';

export interface SessionOptions extends Pick<LockOptions, 'onWait' | 'signal'> {
  /** Milliseconds; default 60,000. */
  readonly lockTimeoutMs?: number;
  /** Takes a database over whose `_svc_meta` names another product, tag or environment. */
  readonly adopt?: boolean;
  /** What this process read last time, still true when nobody else held the lock since. */
  readonly known?: { readonly ledger: Ledger; readonly epoch: number } | undefined;
  /** Told of each migration, one that is resumed included. */
  readonly watch?: Pick<Execution, 'started' | 'finished'>;
}

/** The lock, the history as it is under it, and nothing half-done: what every writer starts from. */
export function underLock<T>(
  adapter: Adapter,
  options: SessionOptions,
  work: (run: Execution) => Promise<T>,
): Promise<T> {
  return underBareLock(adapter, options, async (run) => {
    if (run.ledger !== options.known?.ledger) await settle(run);
    return work(run);
  });
}

/** The lock and the history, whatever state it is in: for `resolve`. */
export function underBareLock<T>(
  adapter: Adapter,
  options: SessionOptions,
  work: (run: Execution) => Promise<T>,
): Promise<T> {
  const { lockTimeoutMs, onWait, signal, adopt, known, watch } = options;
  return adapter.connection.exclusively(
    async (epoch) => {
      if (known && epoch === known.epoch + 1) return work({ ...watch, adapter, epoch, signal, ledger: known.ledger });
      await claimDatabase(adapter, epoch, adopt ?? false);
      return work({ ...watch, adapter, epoch, signal, ledger: await Ledger.read(adapter.connection) });
    },
    {
      ...(lockTimeoutMs !== undefined && { timeoutMs: lockTimeoutMs }),
      ...(onWait && { onWait }),
      ...(signal && { signal }),
    },
  );
}

/** The lock is ours, so whoever was applying is dead: its migration is finished first. A failed one waits for a person. */
export async function settle(run: Execution): Promise<void> {
  for (const entry of run.ledger.inOrder()) {
    if (entry.row.status === 'applying') await resume(run, entry);
    if (entry.row.status === 'failed') throw halfDone(entry);
  }
}
