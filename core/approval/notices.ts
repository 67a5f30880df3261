import { setTimeout as wait } from 'node:timers/promises';
import { describeThrown } from '../errors.ts';
import { allRows } from '../records.ts';
import { announceNotice, type DeliveryRoute, NOTICE_WINDOW_MS } from './announce.ts';
import { decisionByVotes } from './apply-decision.ts';
import { PROCESS_NAME } from './call.ts';
import { lastNotice, nextNoticeAt, withDueNotice } from './notice-times.ts';
import type { StoredRule } from './rule.ts';
import type { ApprovalRow } from './schema.ts';
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
/** Of one agent: channels that do not answer delay no other agent. */
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
  let { version } = timer;
  const setTimer = async (at: number | undefined): Promise<boolean> => {
    if (at === undefined) return (await notices.remove(requestId, version)) === 'removed';
    const result = await notices.replace(requestId, version, { ...timer.record, dueAt: new Date(at) });
    version += 1;
    return result === 'replaced';
  };
  if (!(await setTimer(now + LEASE_MS))) return;
  const given = await storeNotice(service, requestId, now);
  if (!given) {
    await setTimer(undefined);
    return;
  }
  const next = nextNoticeAt(given.row);
  const notice = lastNotice(given.row);
  const announce = async () => notice && announceNotice(service, given.row, notice, { routes, isNew: given.isNew });
  if (next !== undefined && next < now + LEASE_MS) {
    // The next notice does not wait for channels that fail.
    await setTimer(next);
    // Other processes that found it due have left it to this one.
    const isDue = next <= (await clock.now());
    await Promise.all([announce(), isDue && giveNotice(service, requestId, routes)]);
  } else {
    await announce();
    if (!service.closing.aborted) await setTimer(next);
  }
}

/** Adds the event of what is due. Undefined if the request does not wait, or not any more: its votes may decide it now. */
async function storeNotice(
  service: ApprovalService,
  requestId: string,
  now: number,
): Promise<{ readonly row: ApprovalRow; readonly isNew: boolean } | undefined> {
  for (;;) {
    const row = await service.read(requestId);
    if (row?.record.status !== 'waiting') return undefined;
    const due = withDueNotice(row.record, PROCESS_NAME, now);
    const result = due ? await service.write(row, due, 'before the deadline') : { written: row };
    if (!result.written) {
      if (result.failure === 'late') await service.expire(row);
      continue;
    }
    const { record } = result.written;
    const decided = decisionByVotes(record, now);
    // Not new: the process that stored it was stopped, and may not have notified every channel.
    if (!decided) return { row: record, isNew: due !== undefined };
    await service.writeDecision(result.written, decided, 'before the deadline');
  }
}

/** Gives the notices of requests that no caller waits for, until it is closed. */
export class NoticeSweep {
  readonly #service: ApprovalService;
  readonly #routes = new Map<string, readonly DeliveryRoute[]>();
  #fallback: readonly DeliveryRoute[] | undefined;
  /** By agent. */
  readonly #running = new Map<string, Set<Promise<void>>>();
  /** A notice was left for when one of its agent has been given. */
  #isIncomplete = false;
  #timer: NodeJS.Timeout | undefined;
  #searching: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(service: ApprovalService) {
    this.#service = service;
  }

  /** Adds the routes of an agent of this process. Without any, its notices are events only. */
  add(agentTag: string, routes: readonly DeliveryRoute[]): void {
    this.#routes.set(agentTag, routes);
    if (routes.length > 0 || this.#service.rules.some(hasNotices)) this.#start();
  }

  /** Adds the routes for agents whose own processes give no notice. */
  addFallback(routes: readonly DeliveryRoute[]): void {
    if (routes.length === 0) return;
    this.#fallback = routes;
    this.#start();
  }

  /** Gives the notices that are due, and returns of how many requests. */
  async sweep(): Promise<number> {
    const started = await this.#startDue();
    await Promise.all(started);
    return started.length;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#searching;
    await Promise.all([...this.#running.values()].flatMap((running) => [...running]));
  }

  async #startDue(): Promise<readonly Promise<void>[]> {
    const service = this.#service;
    const now = await service.clock.readNow();
    const query = { equals: { state: 'due' as const }, to: new Date(now - LATE_MS), limit: 500 };
    const started: Promise<void>[] = [];
    for await (const { record } of allRows(service.notices, 'byState', query)) {
      if (this.#isClosed) break;
      const { requestId, agentTag, dueAt } = record;
      const isVeryLate = dueAt.getTime() <= now - VERY_LATE_MS;
      const routes = this.#routes.get(agentTag) ?? (isVeryLate ? this.#fallback : undefined);
      if (routes) started.push(...this.#give(agentTag, requestId, routes));
    }
    return started;
  }

  #give(agentTag: string, requestId: string, routes: readonly DeliveryRoute[]): readonly Promise<void>[] {
    const running = this.#running.get(agentTag) ?? new Set();
    this.#running.set(agentTag, running);
    if (running.size >= NOTICES_AT_ONCE) {
      this.#isIncomplete = true;
      return [];
    }
    const service = this.#service;
    const giving = service
      .report('A notice', () => giveNotice(service, requestId, routes))
      .finally(() => {
        running.delete(giving);
        if (!this.#isIncomplete) return;
        this.#isIncomplete = false;
        this.#searchIn(0);
      });
    running.add(giving);
    return [giving];
  }

  #start(): void {
    if (!this.#timer) this.#searchIn(FIRST_SWEEP_MS);
  }

  #searchIn(ms: number): void {
    if (this.#isClosed) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#searchIn(SWEEP_INTERVAL_MS);
      this.#searching = this.#searching
        .then(() => this.#startDue())
        .catch((error: unknown) => this.#service.warn(`The search for due notices failed: ${describeThrown(error)}`));
    }, ms).unref();
  }
}

const hasNotices = ({ remind, escalate }: StoredRule): boolean => remind !== undefined || escalate !== undefined;
