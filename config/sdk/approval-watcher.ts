import { minIdAt } from '../../core/approval/request.ts';
import type { ApprovalRow } from '../../core/approval/schema.ts';
import type { ApprovalService, RequestRow } from '../../core/approval/service.ts';
import { onAbort } from '../../core/on-abort.ts';
import { allRows } from '../../core/records.ts';
import { ChangeLog, type ChangeType, changeOf, type NumberedChange } from './approval-changes.ts';

const POLL_MS = 750;
/** The pause after a search is at least this many times its duration. */
const PAUSE_PER_POLL = 19;
/** Ids have the time of the process that made them: each search also finds those that seem this much older. */
const OVERLAP_MS = 60_000;
/** After a longer time without a listener, the watcher begins again. */
const MAX_GAP_MS = 600_000;
/** How many changes can be missed and read later. */
const MAX_MISSED = 1_000;
const READS_AT_ONCE = 16;
const DECIDED = ['approved', 'rejected', 'cancelled'] as const;

type Listener = (numbered: NumberedChange) => unknown;

export interface ChangeSubscription {
  /** What happened after the id that was passed; undefined if that is not known: list the requests. */
  readonly missed: readonly NumberedChange[] | undefined;
  /** The id of the last change so far. */
  readonly lastId: string;
  unsubscribe(): void;
}

/** A request that waited when it was last found. */
interface Waiting {
  readonly version: number;
  /** Undefined if the row was not read yet. */
  readonly votes?: number;
}

interface Running {
  readonly stop: AbortController;
  /** Of the first search. */
  readonly isReady: Promise<void>;
}

/**
 * Finds the changes of all requests of a store, once for all listeners of this process, and only while there are some.
 * Changes of this process and those that the store notifies of are found at once, others by a search. A change may be
 * reported twice.
 */
export class ApprovalWatcher {
  readonly #service: ApprovalService;
  /** How many times each was subscribed. */
  readonly #listeners = new Map<Listener, number>();
  /** Those who wait for the first search, too. */
  #users = 0;
  #running: Running | undefined;
  #log = new ChangeLog(MAX_MISSED);
  readonly #outageListeners = new Set<(isDown: boolean) => void>();
  #isDown = false;
  readonly #waiting = new Map<string, Waiting>();
  /** By request: when a search last found it decided. These times are of the store's clock, and those of searches. */
  readonly #decided = new Map<string, number>();
  #now = 0;
  /** The first search of the log, and the last one that succeeded. */
  #beganAt: number | undefined;
  #searchedAt = 0;
  /** The last run, which may not have noticed yet that it was stopped. */
  #ending: Promise<unknown> = Promise.resolve();

  constructor(service: ApprovalService) {
    this.#service = service;
  }

  /**
   * Calls `listener` once with every change from now on, or from the one after `lastId`, however often it is subscribed.
   * Waits for the first search, so that what changes after a later list is a change. Throws store errors.
   */
  async subscribe(listener: Listener, lastId?: string): Promise<ChangeSubscription> {
    this.#users += 1;
    this.#running ??= this.#start();
    try {
      await this.#running.isReady;
    } catch (error) {
      this.#release();
      throw error;
    }
    const missed = lastId === undefined ? undefined : this.#log.since(lastId);
    this.#listeners.set(listener, (this.#listeners.get(listener) ?? 0) + 1);
    let isSubscribed = true;
    return {
      missed,
      lastId: this.#log.lastId,
      unsubscribe: () => {
        if (!isSubscribed) return;
        isSubscribed = false;
        const left = (this.#listeners.get(listener) ?? 1) - 1;
        if (left === 0) this.#listeners.delete(listener);
        else this.#listeners.set(listener, left);
        this.#release();
      },
    };
  }

  /** Calls `listener` when the store cannot be searched, now or later, and when it can be again. Returns what ends that. */
  onOutage(listener: (isDown: boolean) => void): () => void {
    if (this.#isDown) listener(true);
    this.#outageListeners.add(listener);
    return () => this.#outageListeners.delete(listener);
  }

  /** Whether the store is being searched. */
  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  close(): void {
    this.#running?.stop.abort();
    this.#running = undefined;
  }

  #release(): void {
    this.#users -= 1;
    if (this.#users === 0) this.close();
  }

  #start(): Running {
    const stop = new AbortController();
    const isReady = this.#ending.then(() => this.#resume());
    const running = { stop, isReady };
    this.#ending = isReady.then(
      () => this.#run(stop.signal),
      () => {
        if (this.#running === running) this.#running = undefined;
      },
    );
    return running;
  }

  /** Finds what has changed since the watcher was stopped; after a long time, begins again. */
  async #resume(): Promise<void> {
    const now = await this.#service.clock.readNow();
    if (this.#beganAt === undefined || now - this.#searchedAt > MAX_GAP_MS) {
      this.#log = new ChangeLog(MAX_MISSED);
      this.#waiting.clear();
      this.#decided.clear();
      this.#beganAt = undefined;
      this.#searchedAt = now;
    }
    await this.#search();
  }

  /** Searches until it is stopped. */
  async #run(stop: AbortSignal): Promise<void> {
    const changed = new Set<string>();
    let wake = () => {};
    const unlisten = this.#service.watcher.listen((requestId) => {
      if (this.#decided.has(requestId)) return;
      changed.add(requestId);
      wake();
    });
    for (let took = 0; !stop.aborted; ) {
      const due = performance.now() + Math.max(POLL_MS, took * PAUSE_PER_POLL);
      for (let left = due - performance.now(); left > 0 && !stop.aborted; left = due - performance.now()) {
        if (changed.size === 0) {
          await pause(left, stop, (resolve) => {
            wake = resolve;
          });
        }
        const ids = [...changed];
        changed.clear();
        // The next search finds what could not be read.
        await this.#examine(ids).catch(() => undefined);
      }
      if (stop.aborted) break;
      const began = performance.now();
      // While the store is unavailable: a later search finds what happens in the meantime.
      const hasSearched = await this.#search().then(
        () => true,
        () => this.#setDown(true),
      );
      // One that has failed took as long as the store was away.
      took = hasSearched ? performance.now() - began : 0;
    }
    unlisten();
  }

  /** Reads which requests wait and which of the newer ones do not, and then those that have changed. */
  async #search(): Promise<void> {
    this.#now = await this.#service.clock.readNow();
    // What the first search finds is no change.
    const isFirst = this.#beganAt === undefined;
    const changed = new Set<string>();
    const missing = new Set(this.#waiting.keys());
    for await (const { record, version } of this.#pages('waiting')) {
      const { requestId } = record;
      missing.delete(requestId);
      if (isFirst) this.#waiting.set(requestId, { version });
      else if (this.#waiting.get(requestId)?.version !== version || this.#service.isDue(record)) changed.add(requestId);
    }
    for (const requestId of missing) changed.add(requestId);
    for (const status of DECIDED) {
      for await (const { record } of this.#pages(status, minIdAt('apr', this.#searchedAt - OVERLAP_MS))) {
        const { requestId } = record;
        if (this.#waiting.has(requestId)) continue;
        if (isFirst || this.#decided.has(requestId)) this.#decided.set(requestId, this.#now);
        else changed.add(requestId);
      }
    }
    await this.#examine([...changed]);
    for (const [requestId, at] of this.#decided) {
      if (at < this.#searchedAt - OVERLAP_MS) this.#decided.delete(requestId);
    }
    this.#beganAt ??= this.#now;
    this.#searchedAt = this.#now;
    this.#setDown(false);
  }

  #setDown(isDown: boolean): void {
    if (isDown === this.#isDown) return;
    this.#isDown = isDown;
    for (const listener of this.#outageListeners) listener(isDown);
  }

  #pages(status: ApprovalRow['status'], from?: string) {
    return allRows(this.#service.rows, 'byStatus', {
      equals: { status },
      ...(from !== undefined && { from }),
      columns: ['requestId', 'status', 'expiresAt'],
      limit: 1_000,
    });
  }

  async #examine(requestIds: readonly string[]): Promise<void> {
    for (let index = 0; index < requestIds.length; index += READS_AT_ONCE) {
      const some = requestIds.slice(index, index + READS_AT_ONCE);
      const rows = await Promise.all(some.map((requestId) => this.#service.getExpiringIfDue(requestId)));
      for (const [at, row] of rows.entries()) {
        if (row) this.#note(row);
        else this.#waiting.delete(some[at] ?? '');
      }
    }
  }

  /** Reports what is new of a request. */
  #note({ record, version }: RequestRow): void {
    const { requestId, status, body } = record;
    const before = this.#waiting.get(requestId);
    if (status === 'waiting') {
      const votes = body.events.filter(({ type }) => type === 'voted').length;
      this.#waiting.set(requestId, { version, votes });
      if (!before) this.#report('created', record);
      else if (votes > (before.votes ?? this.#votesBefore(record))) this.#report('voted', record);
      return;
    }
    this.#waiting.delete(requestId);
    if (this.#decided.has(requestId)) return;
    this.#decided.set(requestId, this.#now);
    const { decision } = body;
    // Notifications are also about calls that were approved long ago.
    if (!before && decision && Date.parse(decision.at) < this.#searchedAt - OVERLAP_MS) return;
    if (!before && decision?.cause !== 'policy') this.#report('created', record);
    this.#report(decision?.cause === 'timeout' ? 'expired' : 'decided', record);
  }

  /** The votes that a request may have had when the log began. */
  #votesBefore({ body }: ApprovalRow): number {
    const limit = new Date((this.#beganAt ?? 0) - OVERLAP_MS).toISOString();
    return body.events.filter(({ type, at }) => type === 'voted' && at < limit).length;
  }

  #report(type: ChangeType, row: ApprovalRow): void {
    const numbered = this.#log.add(changeOf(type, row));
    for (const listener of this.#listeners.keys()) listener(numbered);
  }
}

/** Resolves after `ms`, when the signal aborts, or when the function that `onWait` receives is called. */
async function pause(ms: number, signal: AbortSignal, onWait: (resolve: () => void) => void): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  let remove = () => {};
  await new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
    timer.unref();
    remove = onAbort(signal, resolve);
    onWait(resolve);
  });
  remove();
  clearTimeout(timer);
}
