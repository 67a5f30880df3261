import { setTimeout as wait } from 'node:timers/promises';
import { errorMessage } from '../errors.ts';
import { allRows } from '../records.ts';
import { announceNotice, type DeliveryRoute, NOTICE_WINDOW_MS } from './announce.ts';
import { PROCESS_NAME } from './call.ts';
import { lastNotice, nextNoticeAt, withDueNotice } from './notice-times.ts';
import type { ApprovalRow, NoticeRow } from './schema.ts';
import type { ApprovalService } from './service.ts';

/** In this time no other process gives the notice; it then does if this one was stopped before the channels had it. */
const LEASE_MS = NOTICE_WINDOW_MS + 60_000;
/** A timer of this process may fire that much before the store's clock is there. */
const MAX_EARLY_MS = 1_000;

const SWEEP_INTERVAL_MS = 60_000;
const FIRST_SWEEP_MS = 5_000;
/** A process that waits for the decision gives a notice at its time, and another one of the agent after this. */
const LATE_MS = 30_000;
/** Then a process gives it that has only the channels of the configuration. */
const VERY_LATE_MS = 2 * SWEEP_INTERVAL_MS;
const NOTICES_AT_ONCE = 50;

/** Notifies the channels of a request that still waits, if that is due and no other process does it. */
export async function giveNotice(
  service: ApprovalService,
  requestId: string,
  routes: readonly DeliveryRoute[],
): Promise<void> {
  const { clock, notices } = service;
  const timer = await notices.get(requestId);
  if (!timer) return;
  const early = timer.record.dueAt.getTime() - (await clock.now());
  if (early > MAX_EARLY_MS) return;
  if (early > 0) await wait(early);
  const now = Math.max(await clock.now(), timer.record.dueAt.getTime());
  const leased: NoticeRow = { ...timer.record, dueAt: new Date(now + LEASE_MS) };
  if ((await notices.replace(requestId, timer.version, leased)) !== 'replaced') return;
  const row = await notify(service, requestId, routes, now);
  if (service.closing.aborted) return;
  const next = row && nextNoticeAt(row);
  const version = timer.version + 1;
  if (next === undefined) {
    await notices.remove(requestId, version);
    return;
  }
  await notices.replace(requestId, version, { ...leased, dueAt: new Date(next) });
  // Other processes that found it due have left it to this one.
  if (next <= (await clock.now())) await giveNotice(service, requestId, routes);
}

/** Adds the event of what is due, and notifies the channels. Undefined if the request does not wait any more. */
async function notify(
  service: ApprovalService,
  requestId: string,
  routes: readonly DeliveryRoute[],
  now: number,
): Promise<ApprovalRow | undefined> {
  for (;;) {
    const row = await service.read(requestId);
    if (row?.record.status !== 'waiting') return undefined;
    const due = withDueNotice(row.record, PROCESS_NAME, now);
    const result = due && (await service.write(row, due, 'before the deadline'));
    if (result && !result.written) {
      if (result.failure === 'late') await service.expire(row);
      continue;
    }
    // Without a new one: the process that stored the last one was stopped, and may not have notified every channel.
    const current = due ?? row.record;
    const notice = lastNotice(current);
    if (notice) await announceNotice(service, current, notice, { routes, isNew: due !== undefined });
    return current;
  }
}

/** Gives the notices of requests that no caller waits for, until it is closed. */
export class NoticeSweep {
  readonly #service: ApprovalService;
  readonly #routes = new Map<string, readonly DeliveryRoute[]>();
  #fallback: readonly DeliveryRoute[] | undefined;
  #timer: NodeJS.Timeout | undefined;
  #sweeping: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(service: ApprovalService) {
    this.#service = service;
  }

  /** Adds the routes of an agent of this process. */
  add(agentTag: string, routes: readonly DeliveryRoute[]): void {
    if (routes.length === 0) return;
    this.#routes.set(agentTag, routes);
    this.#start();
  }

  /** Adds the routes for agents whose own processes give no notice. */
  addFallback(routes: readonly DeliveryRoute[]): void {
    if (routes.length === 0) return;
    this.#fallback = routes;
    this.#start();
  }

  /** Gives every notice that is due, and returns how many requests had one. */
  async sweep(): Promise<number> {
    const service = this.#service;
    const now = await service.clock.readNow();
    const query = { equals: { state: 'due' as const }, to: new Date(now - LATE_MS), limit: 500 };
    const running = new Set<Promise<void>>();
    let found = 0;
    for await (const { record } of allRows(service.notices, 'byState', query)) {
      if (this.#isClosed) break;
      const { requestId, agentTag, dueAt } = record;
      const isVeryLate = dueAt.getTime() <= now - VERY_LATE_MS;
      const routes = this.#routes.get(agentTag) ?? (isVeryLate ? this.#fallback : undefined);
      if (!routes) continue;
      found += 1;
      const giving = service
        .report('A notice', () => giveNotice(service, requestId, routes))
        .finally(() => running.delete(giving));
      running.add(giving);
      if (running.size >= NOTICES_AT_ONCE) await Promise.race(running);
    }
    await Promise.all(running);
    return found;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#sweeping;
  }

  #start(): void {
    if (!this.#timer && !this.#isClosed) this.#scheduleIn(FIRST_SWEEP_MS);
  }

  #scheduleIn(ms: number): void {
    this.#timer = setTimeout(() => {
      this.#sweeping = this.sweep()
        .catch((error: unknown) => this.#service.warn(`The search for due notices failed: ${errorMessage(error)}`))
        .finally(() => {
          if (!this.#isClosed) this.#scheduleIn(SWEEP_INTERVAL_MS);
        });
    }, ms).unref();
  }
}
