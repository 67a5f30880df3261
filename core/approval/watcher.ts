import { allRows, type RecordStore } from '../records.ts';
import type { StorageBackend } from './backend.ts';
import { type ApprovalRow, approvals } from './schema.ts';
import { TimerQueue } from './timer-queue.ts';

/** Poll intervals without notifications: the first, and the longest while nothing changes. */
const FIRST_POLL_MS = 20;
const MAX_POLL_MS = 2_000;
/** Poll interval with notifications, because one may be lost. */
const WATCHED_POLL_MS = 5_000;
/** The pause after a poll is at least this many times its duration. */
const PAUSE_PER_POLL = 19;
/** Up to this number of subscribed requests, each is read on its own. */
const MAX_SINGLE_READS = 16;

/** A subscription to one request. */
export interface Subscription {
  /** Resolves when the request may have changed since the last call, or at `deadline` (`performance.now()`). */
  nextChange(deadline?: number): Promise<void>;
  unsubscribe(): void;
}

/**
 * Wakes the callers in this process that wait for a request to change. A wake-up carries no data: the caller reads the
 * request again. Wake-ups come from this process, from `StorageBackend.watch` and from polling.
 */
export class RequestWatcher {
  readonly #backend: StorageBackend;
  readonly #rows: RecordStore<ApprovalRow>;
  readonly #onNotified: () => void;
  readonly #subscribers = new Map<string, Set<() => void>>();
  readonly #listeners = new Set<(requestId: string) => void>();
  readonly #deadlines = new TimerQueue<() => void>((wake) => wake());
  #watching: Promise<(() => Promise<void>) | undefined> | undefined;
  #isWatched = false;
  #pollTimer: NodeJS.Timeout | undefined;
  #pollAt = 0;
  #pollInterval = FIRST_POLL_MS;
  #closed = false;

  /** Calls `onNotified` before it wakes the subscribers of a request that another process has changed. */
  constructor(backend: StorageBackend, rows: RecordStore<ApprovalRow>, onNotified: () => void) {
    this.#backend = backend;
    this.#rows = rows;
    this.#onNotified = onNotified;
  }

  subscribe(requestId: string): Subscription {
    let isNotified = false;
    let resolve: (() => void) | undefined;
    const wake = (): void => {
      isNotified = true;
      resolve?.();
    };
    const wakes = this.#subscribers.get(requestId) ?? new Set();
    this.#subscribers.set(requestId, wakes.add(wake));
    this.#pollInterval = FIRST_POLL_MS;
    this.#watching ??= this.#watch();
    this.#pollWithin(this.#isWatched ? WATCHED_POLL_MS : FIRST_POLL_MS);
    return {
      nextChange: async (deadline) => {
        if (!isNotified && !this.#closed) {
          if (deadline !== undefined) this.#deadlines.set(wake, deadline);
          await new Promise<void>((woken) => {
            resolve = woken;
          });
          this.#deadlines.delete(wake);
        }
        isNotified = false;
      },
      unsubscribe: () => {
        this.#deadlines.delete(wake);
        wakes.delete(wake);
        if (wakes.size === 0 && this.#subscribers.get(requestId) === wakes) this.#subscribers.delete(requestId);
      },
    };
  }

  /**
   * Calls `listener` with every request that this process has written, or that the store notifies of. Notifications may be
   * lost, late or repeated, and a store may have none. Returns a function that ends it.
   */
  listen(listener: (requestId: string) => void): () => void {
    this.#listeners.add(listener);
    this.#watching ??= this.#watch();
    return () => void this.#listeners.delete(listener);
  }

  get hasSubscribers(): boolean {
    return this.#subscribers.size > 0;
  }

  /** The request may have changed; without an id, any request may have. */
  notify(requestId?: string): void {
    if (requestId === undefined) {
      this.#pollWithin(FIRST_POLL_MS);
      return;
    }
    for (const wake of this.#subscribers.get(requestId) ?? []) wake();
    for (const listener of this.#listeners) listener(requestId);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#pollTimer);
    for (const requestId of this.#subscribers.keys()) this.notify(requestId);
    this.#deadlines.clear();
    const stop = await this.#watching?.catch(() => undefined);
    await stop?.();
  }

  async #watch(): Promise<(() => Promise<void>) | undefined> {
    try {
      const stop = await this.#backend.watch?.(approvals.collection, (requestId) => {
        if (requestId !== undefined && this.#subscribers.has(requestId)) this.#onNotified();
        this.notify(requestId);
      });
      this.#isWatched = stop !== undefined;
      // Changes before the watch began sent no notification.
      if (this.#isWatched) this.notify();
      return stop;
    } catch {
      this.#watching = undefined;
      return undefined;
    }
  }

  /** Keeps a poll that is due sooner. */
  #pollWithin(ms: number): void {
    const at = performance.now() + ms;
    if (this.#closed || (this.#pollTimer && this.#pollAt <= at)) return;
    clearTimeout(this.#pollTimer);
    this.#pollAt = at;
    this.#pollTimer = setTimeout(() => void this.#poll(), ms);
    // Subscribers have a deadline, whose timer keeps the process alive.
    this.#pollTimer.unref();
  }

  async #poll(): Promise<void> {
    const began = performance.now();
    this.#pollTimer = undefined;
    try {
      for (const requestId of await this.#changedRequests()) this.notify(requestId);
    } catch {
      // The store is unavailable: the next poll tries again.
    }
    if (this.#subscribers.size === 0 || this.#pollTimer) return;
    const took = performance.now() - began;
    this.#pollInterval = this.#isWatched ? WATCHED_POLL_MS : Math.min(this.#pollInterval * 1.5, MAX_POLL_MS);
    this.#pollWithin(Math.max(this.#pollInterval, took * PAUSE_PER_POLL));
  }

  /** Ids of subscribed requests that may have changed. With many subscribers, the waiting requests are read in pages. */
  async #changedRequests(): Promise<string[]> {
    const subscribed = [...this.#subscribers.keys()];
    if (subscribed.length <= MAX_SINGLE_READS) return subscribed;
    const waiting = new Set<string>();
    const page = { equals: { status: 'waiting' as const }, ...rangeOf(subscribed), limit: 1000 };
    for await (const { record } of allRows(this.#rows, 'byStatus', { ...page, columns: ['requestId'] })) {
      waiting.add(record.requestId);
    }
    return subscribed.filter((requestId) => !waiting.has(requestId));
  }
}

function rangeOf(ids: readonly string[]): { readonly from: string; readonly to: string } {
  let [from = ''] = ids;
  let to = from;
  for (const id of ids) {
    if (id < from) from = id;
    if (id > to) to = id;
  }
  return { from, to };
}
