import type { RecordStore } from '../records.ts';
import { Alarm } from './alarm.ts';
import type { StoreHome } from './home.ts';
import { type ApprovalRow, approvals } from './rows.ts';

/** Without hints: how soon the store is looked at again, and how seldom once nothing happens. */
const FIRST_LOOK_MS = 20;
const LONGEST_LOOK_MS = 2_000;
/** With hints, one of which may have been lost. */
const WATCHED_LOOK_MS = 5_000;
/** Looking may take up to a twentieth of the time. */
const REST = 19;
/** So few are asked for one by one. */
const FEW = 16;

/** A place in the waiting room, for one request. */
export interface Seat {
  /** Resolves when the request may have changed since the last time, or at `at` (`performance.now()`). */
  changed(at?: number): Promise<void>;
  leave(): void;
}

/**
 * Everybody in this process who waits for a request to change. What wakes them is a hint and nothing more: whoever is
 * woken reads the request again. Hints come from this process itself, from `watch`, and from looking now and then.
 */
export class WaitingRoom {
  readonly #home: StoreHome;
  readonly #rows: RecordStore<ApprovalRow>;
  readonly #seats = new Map<string, Set<() => void>>();
  readonly #alarm = new Alarm<() => void>((wake) => wake());
  #watching: Promise<(() => Promise<void>) | undefined> | undefined;
  #watched = false;
  #looking: NodeJS.Timeout | undefined;
  #lookAt = 0;
  #pause = FIRST_LOOK_MS;
  #closed = false;

  constructor(home: StoreHome, rows: RecordStore<ApprovalRow>) {
    this.#home = home;
    this.#rows = rows;
  }

  sit(requestId: string): Seat {
    let hinted = false;
    let resolve: (() => void) | undefined;
    const wake = (): void => {
      hinted = true;
      resolve?.();
    };
    const wakes = this.#seats.get(requestId) ?? new Set();
    this.#seats.set(requestId, wakes.add(wake));
    this.#open();
    return {
      changed: async (at) => {
        if (!hinted && !this.#closed) {
          if (at !== undefined) this.#alarm.set(wake, at);
          await new Promise<void>((woken) => {
            resolve = woken;
          });
          this.#alarm.delete(wake);
        }
        hinted = false;
      },
      leave: () => {
        this.#alarm.delete(wake);
        wakes.delete(wake);
        if (wakes.size === 0 && this.#seats.get(requestId) === wakes) this.#seats.delete(requestId);
        if (this.#seats.size === 0) this.#rest();
      },
    };
  }

  /** A request may have changed; without its id, any may have. */
  hint(requestId?: string): void {
    if (requestId === undefined) {
      if (this.#seats.size > 0) this.#lookIn(FIRST_LOOK_MS);
      return;
    }
    for (const wake of this.#seats.get(requestId) ?? []) wake();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#rest();
    for (const requestId of this.#seats.keys()) this.hint(requestId);
    this.#alarm.clear();
    const stop = await this.#watching?.catch(() => undefined);
    await stop?.();
  }

  #open(): void {
    this.#pause = FIRST_LOOK_MS;
    this.#watching ??= this.#watch();
    this.#lookIn(this.#watched ? WATCHED_LOOK_MS : this.#pause);
  }

  async #watch(): Promise<(() => Promise<void>) | undefined> {
    try {
      const stop = await this.#home.watch?.(approvals.collection, (requestId) => this.hint(requestId));
      this.#watched = stop !== undefined;
      // Whatever came before it listened was not heard.
      if (this.#watched) this.hint();
      return stop;
    } catch {
      this.#watching = undefined;
      return undefined;
    }
  }

  #rest(): void {
    clearTimeout(this.#looking);
    this.#looking = undefined;
  }

  /** Unless it looks sooner anyway. */
  #lookIn(ms: number): void {
    const at = performance.now() + ms;
    if (this.#closed || (this.#looking && this.#lookAt <= at)) return;
    this.#rest();
    this.#lookAt = at;
    this.#looking = setTimeout(() => void this.#look(), ms);
    // Whoever waits has a deadline, and its timer keeps the process.
    this.#looking.unref();
  }

  async #look(): Promise<void> {
    const began = performance.now();
    this.#looking = undefined;
    try {
      for (const requestId of await this.#changed()) this.hint(requestId);
    } catch {
      // The store is out of reach: looked at again after a longer pause.
    }
    if (this.#seats.size === 0 || this.#looking) return;
    const took = performance.now() - began;
    this.#pause = this.#watched ? WATCHED_LOOK_MS : Math.min(this.#pause * 1.5, LONGEST_LOOK_MS);
    this.#lookIn(Math.max(this.#pause, took * REST));
  }

  /** Those seated whose requests wait no longer: by what still waits, where they are many. */
  async #changed(): Promise<string[]> {
    const seated = [...this.#seats.keys()];
    if (seated.length <= FEW) return seated;
    const [from = '', to = ''] = bounds(seated);
    const waiting = new Set<string>();
    let cursor: string | undefined;
    do {
      const page = await this.#rows.page('byStatus', {
        equals: { status: 'waiting' },
        from,
        to,
        limit: 1000,
        columns: ['requestId'],
        ...(cursor !== undefined && { cursor }),
      });
      for (const { record } of page.records) waiting.add(record.requestId);
      cursor = page.cursor;
    } while (cursor !== undefined);
    return seated.filter((requestId) => !waiting.has(requestId));
  }
}

function bounds(ids: readonly string[]): [string, string] | [] {
  let [least] = ids;
  let most = least;
  if (least === undefined || most === undefined) return [];
  for (const id of ids) {
    if (id < least) least = id;
    if (id > most) most = id;
  }
  return [least, most];
}
