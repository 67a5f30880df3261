import { randomBytes } from 'node:crypto';
import { allRows, CLOCK, type RecordStore } from '../records.ts';
import type { StorageBackend } from './backend.ts';
import { PROCESS_NAME } from './call.ts';
import { type ApprovalRow, type WaiterRow, waiters } from './schema.ts';
import { isUndone } from './state.ts';

/** One write per process and interval, however many of its calls wait. */
const BEAT_MS = 30_000;
/** After three missed beats a process counts as gone. */
const LEASE_MS = 3 * BEAT_MS;
/** Rows of waiters that are read at a time. */
const READS_AT_ONCE = 32;

/**
 * The processes that wait for decisions, each a row that it renews while one of its calls waits, so that an approver learns
 * if nobody waits any more. The approval stays as valid as any other: another process may take the call up.
 */
export class Presence {
  /** Of this process. */
  readonly id = randomBytes(12).toString('base64url');
  readonly #store: RecordStore<WaiterRow>;
  readonly #now: () => Promise<number>;
  readonly #isWaiting: () => boolean;
  #beating: Promise<void> | undefined;
  #version = 0;
  #beatAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    backend: StorageBackend,
    { now, isWaiting }: { readonly now: () => Promise<number>; readonly isWaiting: () => boolean },
  ) {
    this.#store = backend.records(waiters);
    this.#now = now;
    this.#isWaiting = isWaiting;
  }

  /** Stores that this process waits, if that was not stored a moment ago. Never rejects: it only informs approvers. */
  async ensure(): Promise<void> {
    this.#timer ??= setInterval(() => {
      // An outage is over before the lease, or the process counts as gone until the next beat.
      if (this.#isWaiting()) void this.#beat('waiting').catch(() => undefined);
      else this.#stop();
    }, BEAT_MS).unref();
    if (performance.now() - this.#beatAt >= BEAT_MS) await this.#beat('waiting').catch(() => undefined);
  }

  /** When a process was last seen waiting, ISO 8601, if the row is undone and none waits. Undefined too if the store fails. */
  async unattendedSince(row: ApprovalRow): Promise<string | undefined> {
    return (await this.unattended([row]).catch(() => undefined))?.get(row.requestId);
  }

  /** For each undone row for which no process waits, when one was last seen. A row of an earlier version is not judged. */
  async unattended(rows: readonly ApprovalRow[]): Promise<ReadonlyMap<string, string>> {
    const undone = rows.filter((row) => isUndone(row) && row.body.waiters && !row.body.waiters.includes(this.id));
    const found = new Map<string, string>();
    if (undone.length === 0) return found;
    const seen = await this.#read([...new Set(undone.flatMap(({ body }) => body.waiters ?? []))]);
    const now = await this.#now();
    for (const { requestId, body } of undone) {
      const own = (body.waiters ?? []).flatMap((id) => seen.get(id) ?? []);
      if (own.some((waiter) => isWaiting(waiter, now))) continue;
      const last = Math.max(Date.parse(body.timestamp), ...own.map(({ seenAt }) => seenAt.getTime()));
      found.set(requestId, new Date(last).toISOString());
    }
    return found;
  }

  /** Until when a process counts as waiting for the decision on a request, by the store's clock; undefined if none does. */
  async attendedUntil({ body: { waiters: ids = [] } }: ApprovalRow): Promise<number | undefined> {
    const [now, seen] = [await this.#now(), await this.#read(ids)];
    const waiting = [...seen.values()].filter((waiter) => isWaiting(waiter, now));
    return waiting.length === 0 ? undefined : Math.max(...waiting.map(leaseEnd));
  }

  /** Removes processes that were last seen before that moment, and no longer wait. */
  async prune(before: Date): Promise<void> {
    const now = await this.#now();
    for (const state of ['waiting', 'gone'] as const) {
      const query = { equals: { state }, to: before, limit: 500 };
      for await (const { record, version } of allRows(this.#store, 'byState', query)) {
        if (isWaiting(record, now)) continue;
        await this.#store.remove(record.waiterId, version);
      }
    }
  }

  /** Stores that this process waits no longer. */
  async close(): Promise<void> {
    this.#stop();
    await this.#beating?.catch(() => undefined);
    if (this.#version > 0) await this.#beat('gone').catch(() => undefined);
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #beat(state: WaiterRow['state']): Promise<void> {
    this.#beating ??= this.#write(state).finally(() => {
      this.#beating = undefined;
    });
    return this.#beating;
  }

  async #write(state: WaiterRow['state']): Promise<void> {
    const began = performance.now();
    const row = { waiterId: this.id, state, seenAt: CLOCK, leaseMs: LEASE_MS, at: PROCESS_NAME } as const;
    for (;;) {
      const isNew = this.#version === 0;
      const result = isNew ? await this.#store.insert(row) : await this.#store.replace(this.id, this.#version, row);
      if (result === 'inserted' || result === 'replaced') {
        this.#version += 1;
        this.#beatAt = began;
        return;
      }
      // An earlier attempt may have been stored although its response was lost; an old row may have been pruned.
      this.#version = (await this.#store.get(this.id))?.version ?? 0;
    }
  }

  async #read(ids: readonly string[]): Promise<ReadonlyMap<string, WaiterRow>> {
    const found = new Map<string, WaiterRow>();
    for (let first = 0; first < ids.length; first += READS_AT_ONCE) {
      const some = ids.slice(first, first + READS_AT_ONCE);
      for (const row of await Promise.all(some.map((id) => this.#store.get(id)))) {
        if (row) found.set(row.record.waiterId, row.record);
      }
    }
    return found;
  }
}

const isWaiting = (waiter: WaiterRow, now: number): boolean => waiter.state === 'waiting' && leaseEnd(waiter) >= now;

const leaseEnd = ({ seenAt, leaseMs }: WaiterRow): number => seenAt.getTime() + leaseMs;
