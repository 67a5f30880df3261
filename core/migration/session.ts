import { AsyncLocalStorage } from 'node:async_hooks';
import type { Adapter } from '../database/adapter.ts';
import type { LockOptions } from '../dialect.ts';
import { SvcError } from '../errors.ts';
import type { Execution } from './execution.ts';
import { halfDone, isWayBack } from './half-done.ts';
import { claimDatabase, Ledger } from './ledger.ts';
import { resume } from './resume.ts';

export interface SessionOptions extends Pick<LockOptions, 'onWait' | 'signal'> {
  /** Milliseconds; default 60,000. */
  readonly lockTimeoutMs?: number;
  /** Takes a database over whose `_svc_meta` names another product, tag or environment. */
  readonly adopt?: boolean;
  /** What this process read last time, still true when nobody else held the lock since. */
  readonly known?: { readonly ledger: Ledger; readonly epoch: number } | undefined;
  /** Asked before anything that was interrupted is gone on with; refuses by throwing. */
  readonly admits?: (ledger: Ledger) => void;
  /** Told of each migration, one that is resumed included. */
  readonly watch?: Pick<Execution, 'started' | 'finished'>;
}

/**
 * The lock, the history as it is under it, and nothing half-done: what every writer starts from. `back` are the
 * migrations whose rollback was interrupted, and is finished now.
 */
export function underLock<T>(
  adapter: Adapter,
  options: SessionOptions,
  work: (run: Execution, back: ReadonlySet<string>) => Promise<T>,
): Promise<T> {
  return underBareLock(adapter, options, async (run) => {
    if (run.ledger === options.known?.ledger) return work(run, new Set());
    options.admits?.(run.ledger);
    return work(run, await settle(run));
  });
}

/** The databases whose lock whoever is calling holds already: a hook that wants one of them would wait for itself. */
const held = new AsyncLocalStorage<ReadonlySet<string>>();

/** The lock and the history, whatever state it is in: for `resolve`. */
export function underBareLock<T>(
  adapter: Adapter,
  options: SessionOptions,
  work: (run: Execution) => Promise<T>,
): Promise<T> {
  const { lockTimeoutMs, onWait, signal, adopt, known, watch } = options;
  const database = JSON.stringify([adapter.product, adapter.database, adapter.env]);
  const outer = held.getStore() ?? new Set();
  if (outer.has(database)) {
    return Promise.reject(
      new SvcError('hook_refused', 'A migration cannot be started inside another one of the same database.', {
        why: 'A hook that runs under the migration lock asked for the lock.',
        state: 'Nothing of it was run.',
        next: ['Let the hook do it before or after the run, or on another database.'],
      }),
    );
  }
  const inside = new Set([...outer, database]);
  return adapter.connection.exclusively(
    (epoch) =>
      held.run(inside, async () => {
        const run = { ...watch, adapter, epoch, signal, sent: new Map() };
        if (known && epoch === known.epoch + 1) return work({ ...run, ledger: known.ledger });
        await claimDatabase(adapter, epoch, adopt ?? false);
        return work({ ...run, ledger: await Ledger.read(adapter.connection) });
      }),
    {
      ...(lockTimeoutMs !== undefined && { timeoutMs: lockTimeoutMs }),
      ...(onWait && { onWait }),
      ...(signal && { signal }),
    },
  );
}

/**
 * The lock is ours, so whoever was applying is dead: its migration is finished first. A failed one waits for a person.
 * Gives those that are rolled back now.
 */
async function settle(run: Execution): Promise<ReadonlySet<string>> {
  const back = new Set<string>();
  for (const entry of run.ledger.inOrder()) {
    if (entry.row.status === 'failed') throw halfDone(entry);
    if (entry.row.status !== 'applying') continue;
    await resume(run, entry);
    if (isWayBack(entry.row)) back.add(entry.row.tag);
  }
  return back;
}
