import { allRows, type RecordStore, type Versioned } from '../../records.ts';
import { chainProblems, headOf } from '../event-chain.ts';
import { everyRequest } from '../list-approvals.ts';
import { isRequestId, minIdAt } from '../request.ts';
import type { ApprovalRow } from '../schema.ts';
import type { ApprovalService, RequestRow } from '../service.ts';
import { ANNOUNCED_MS, OPEN_MS, SEARCH_MARGIN_MS } from './announce-late.ts';
import { type OpenRow, openRequests } from './schema.ts';
import type { Seal, SealedRequest } from './seal.ts';
import type { SealLog } from './seal-log.ts';

/** @experimental */
export interface SealReport {
  /** The number of the last seal of the store; 0 if it has none. */
  readonly last: number;
  /** How many seals were made. */
  readonly seals: number;
  /** How many requests with new events they cover. */
  readonly requests: number;
  /** How many new events, in addition to the requests themselves. */
  readonly events: number;
}

/** A row with a seal has at most 400 KB on DynamoDB, and one of this many requests about 120. */
const MAX_REQUESTS = 1000;
/** After this long without anything new, a seal says so. */
const MAX_PAUSE_MS = 3_600_000;
/** How many requests are read at once. */
const READ_AT_ONCE = 50;

/** Seals what is new in the audit: finds it, and signs it. */
export class Sealer {
  readonly #service: ApprovalService;
  readonly #log: SealLog;
  readonly #open: RecordStore<OpenRow>;

  constructor(service: ApprovalService, log: SealLog) {
    this.#service = service;
    this.#log = log;
    this.#open = service.backend.records(openRequests);
  }

  /**
   * Seals every event that no seal covers, and gives the seals to the sinks. `all` looks at every request, and not only at
   * those that may have new events. Throws `audit_broken`, `seal_undelivered` and store errors.
   */
  async seal({ all = false }: { readonly all?: boolean } = {}): Promise<SealReport> {
    // Before anything is sealed: a sink shows whether the seals of the store are the same.
    await this.#log.send();
    const now = await this.#service.clock.readNow();
    const at = new Date(now).toISOString();
    const open = new Map<string, Versioned<OpenRow>>();
    for await (const row of allRows(this.#open, 'byState', { equals: { state: 'open' }, limit: 1000 }))
      open.set(row.record.requestId, row);
    const known = await this.#readSeals(all, new Set([...open.values()].map(({ record }) => record.seal)));
    const report = { last: known.last?.seal ?? 0, seals: 0, requests: 0, events: 0 };
    let requests: SealedRequest[] = [];
    let done: Versioned<OpenRow>[] = [];
    const write = async (isLast: boolean) => {
      const seal = await this.#log.append({ at, requests, ...(isLast && { complete: true }) });
      report.last = seal.seal;
      report.seals += 1;
      // Not before their last events are sealed: no later search would find them.
      for (const row of done) await this.#open.remove(row.record.requestId, row.version);
      requests = [];
      done = [];
    };
    const forget = (row: Versioned<OpenRow>) => {
      if (now - row.record.at.getTime() > ANNOUNCED_MS) done.push(row);
    };
    for await (const { record } of this.#candidates(known.completeAt, [...open.values()], forget)) {
      const { requestId, body } = record;
      const wasOpen = open.get(requestId);
      const before = known.sealed.get(requestId);
      const events = body.events.length;
      if (mayChange(record, now)) await this.#keepOpen(requestId, wasOpen, before?.seal ?? 0, now);
      else if (wasOpen) forget(wasOpen);
      // What was changed by other means is not sealed: `verify` reports it.
      if (events <= (before?.events ?? -1) || !isRequestId(requestId) || chainProblems(record).length > 0) continue;
      known.sealed.set(requestId, { events, seal: before?.seal ?? 0 });
      requests.push({ requestId, events, head: headOf(record) });
      report.requests += 1;
      report.events += events - (before?.events ?? 0);
      if (requests.length === MAX_REQUESTS) await write(false);
    }
    const sinceLast = now - Date.parse(known.last?.at ?? at);
    if (known.completeAt === undefined || report.requests > 0 || sinceLast >= MAX_PAUSE_MS) await write(true);
    else for (const row of done) await this.#open.remove(row.record.requestId, row.version);
    if (report.seals > 0) await this.#log.send();
    return report;
  }

  /** Before `prune` removes requests, 1,000 at most: seals that it does, so that `verify` does not miss them. */
  async sealRemoval(rows: readonly RequestRow[]): Promise<void> {
    await this.#log.send();
    const at = new Date(await this.#service.clock.readNow()).toISOString();
    const requests = rows.map(({ record }) => {
      const { requestId, body } = record;
      return { requestId, events: body.events.length, head: headOf(record), removed: true } as const;
    });
    await this.#log.append({ at, requests });
    await this.#log.send();
  }

  /**
   * When the last complete search began, and what is sealed of the requests that the next one can find: those that the
   * seals since shortly before it cover, and the `others`; or all.
   */
  async #readSeals(all: boolean, others: Set<number>): Promise<Known> {
    const sealed = new Map<string, { events: number; seal: number }>();
    const add = ({ seal, requests }: Seal) => {
      others.delete(seal);
      for (const { requestId, events } of requests)
        if (events > (sealed.get(requestId)?.events ?? -1)) sealed.set(requestId, { events, seal });
    };
    let last: Seal | undefined;
    let completeAt: number | undefined;
    for await (const seal of this.#log.stored.backwards()) {
      last ??= seal;
      const at = Date.parse(seal.at);
      if (!all && completeAt !== undefined && at < completeAt - 2 * SEARCH_MARGIN_MS) break;
      add(seal);
      if (seal.complete) completeAt ??= at;
    }
    for (const number of [...others]) {
      const seal = await this.#log.stored.get(number);
      if (seal) add(seal);
    }
    return { last, completeAt: all ? undefined : completeAt, sealed };
  }

  /** Requests that may have new events; some twice. Without `since`, all. `removed` receives those that were pruned. */
  async *#candidates(
    since: number | undefined,
    open: readonly Versioned<OpenRow>[],
    removed: (row: Versioned<OpenRow>) => void,
  ): AsyncGenerator<RequestRow> {
    const range = since === undefined ? {} : { from: minIdAt('apr', since - SEARCH_MARGIN_MS) };
    yield* everyRequest(this.#service, range);
    for (let from = 0; from < open.length; from += READ_AT_ONCE) {
      const some = open.slice(from, from + READ_AT_ONCE);
      const found = await Promise.all(some.map(({ record }) => this.#service.read(record.requestId)));
      for (const [index, one] of some.entries()) {
        const row = found[index];
        if (row) yield row;
        else removed(one);
      }
    }
  }

  /**
   * Remembers a request that may get more events, and the seal of an earlier search that covers it: what this one seals is
   * in the seals that the next one reads.
   */
  async #keepOpen(
    requestId: string,
    wasOpen: Versioned<OpenRow> | undefined,
    seal: number,
    now: number,
  ): Promise<void> {
    const row = { requestId, state: 'open', at: new Date(now), seal } as const;
    if (!wasOpen) await this.#open.insert(row);
    else if (wasOpen.record.seal !== seal) await this.#open.replace(requestId, wasOpen.version, row);
  }
}

interface Known {
  readonly last: Seal | undefined;
  /** Milliseconds since 1970. */
  readonly completeAt: number | undefined;
  /** By request: how many of its events are sealed, and in which seal. */
  readonly sealed: Map<string, { readonly events: number; readonly seal: number }>;
}

/** Whether a request may get an event that no process announces. */
function mayChange({ body: { events, timestamp } }: ApprovalRow, now: number): boolean {
  const last = events.at(-1);
  if (last?.type === 'finished' || last?.type === 'closed') return false;
  return now - Date.parse(last?.at ?? timestamp) <= OPEN_MS;
}
