import { headOf } from '../event-chain.ts';
import type { ApprovalRow } from '../schema.ts';
import { ANNOUNCED_MS } from './announce-late.ts';
import type { SealPublicKey } from './key.ts';
import { headerDigest, isSeal, type Seal, type SealedRequest, sealProblem } from './seal.ts';

/** What a check of the audit is compared with. */
export interface SealSource {
  /** Where the seals come from, for people. */
  readonly from: string;
  /** The seals, oldest first. */
  read(): AsyncIterable<unknown>;
  /** There must be some. */
  readonly isExpected?: boolean;
  /** One of them has signed each seal. */
  readonly keys: readonly SealPublicKey[];
  readonly product: string;
  readonly env: string;
}

/** What the seals say. @experimental */
export interface SealCheck {
  /** Where they come from. */
  readonly from: string;
  readonly seals: number;
  /** The number of the last one; 0 without one. */
  readonly last: number;
  /** ISO 8601, UTC: what was stored by then is sealed. Absent if no search for new events has ended. */
  readonly sealedAt?: string;
  /** How many requests `svc approvals prune` removed. */
  readonly removed: number;
  /** How many requests have something that is newer than the last seal. */
  readonly unsealed: number;
  /** What is wrong with the seals themselves. */
  readonly problems: readonly string[];
}

interface Covered extends SealedRequest {
  readonly seal: number;
}

/** A seal that covers more events of a request than those before it. */
interface Growth {
  readonly events: number;
  /** Milliseconds since 1970: what was stored by then is in an earlier seal. Undefined if no search had ended. */
  readonly since: number | undefined;
}

interface SealsOfRequest {
  /** The one with the most events last. */
  readonly covered: Covered[];
  /** In the order of the seals. */
  readonly growth: Growth[];
}

/** Compares requests with what was sealed of them. */
export class SealedAudit {
  readonly #from: string;
  readonly #requests = new Map<string, SealsOfRequest>();
  readonly #seen = new Set<string>();
  readonly #problems: string[] = [];
  /** The digests of the headers, by number. */
  readonly #headers = new Map<number, string>();
  #last = 0;
  #complete: Seal | undefined;
  #unsealed = 0;

  /** Reads every seal, and checks that they are signed and follow each other. Throws `config_invalid` for an unknown key. */
  static async read(source: SealSource): Promise<SealedAudit> {
    const audit = new SealedAudit(source.from);
    for await (const seal of source.read()) audit.#add(seal, source);
    if (audit.#last === 0 && source.isExpected) audit.#problems.push(`There are no seals in ${source.from}.`);
    return audit;
  }

  private constructor(from: string) {
    this.#from = from;
  }

  get check(): SealCheck {
    let removed = 0;
    for (const requestId of this.#requests.keys())
      if (this.wasRemoved(requestId) && !this.#seen.has(requestId)) removed += 1;
    return {
      from: this.#from,
      seals: this.#headers.size,
      last: this.#last,
      ...(this.#complete && { sealedAt: this.#complete.at }),
      removed,
      unsealed: this.#unsealed,
      problems: this.#problems,
    };
  }

  /** What was sealed of a request and is not so any more, and what was sealed or is there long after its time. */
  problemsOf(row: ApprovalRow): string[] {
    const { requestId, body } = row;
    this.#seen.add(requestId);
    const { covered = [], growth = [] } = this.#requests.get(requestId) ?? {};
    if ((covered.at(-1)?.events ?? -1) < body.events.length) this.#unsealed += 1;
    let intact = -1;
    for (const { events, head, seal } of covered) {
      if (events > body.events.length || headOf(row, events) !== head)
        return [`${partText(intact, events)} since seal ${seal}.`];
      intact = events;
    }
    const problems: string[] = [];
    let from = -1;
    for (const { events, since } of [...growth, { events: body.events.length, since: this.#searchedAt }]) {
      problems.push(...lateTexts(row, from, events, since));
      from = events;
    }
    return problems;
  }

  get #searchedAt(): number | undefined {
    return this.#complete && Date.parse(this.#complete.at);
  }

  /** The sealed requests that were not seen, except those that were removed by `prune`. */
  missing(): string[] {
    return [...this.#requests.keys()].filter((requestId) => !this.#seen.has(requestId) && !this.wasRemoved(requestId));
  }

  /** Whether `prune` removed all that was sealed of a request. */
  wasRemoved(requestId: string): boolean {
    const { covered = [] } = this.#requests.get(requestId) ?? {};
    const last = covered.at(-1)?.events;
    return covered.some(({ events, removed }) => removed && events === last);
  }

  #add(value: unknown, { keys, product, env }: SealSource): void {
    if (!isSeal(value)) {
      this.#problems.push(`After seal ${this.#last} is something that is not a seal.`);
      return;
    }
    const { seal } = value;
    const digest = headerDigest(value);
    // A sink may be written twice.
    if (this.#headers.get(seal) === digest) return;
    const problem =
      sealProblem(value, keys) ??
      (value.product === product && value.env === env ? undefined : `is of ${value.product} (${value.env})`);
    if (problem !== undefined) {
      this.#problems.push(`Seal ${seal} ${problem}.`);
      return;
    }
    const expected = this.#last + 1;
    if (seal > expected) {
      const which = seal - 1 === expected ? `Seal ${expected} is` : `Seals ${expected} to ${seal - 1} are`;
      this.#problems.push(`${which} missing.`);
    } else if (seal < expected) this.#problems.push(`Seal ${seal} comes after seal ${this.#last}.`);
    else if (value.previous !== (this.#headers.get(this.#last) ?? null))
      this.#problems.push(`Seal ${seal} does not follow the one before it.`);
    this.#headers.set(seal, digest);
    this.#last = seal;
    for (const request of value.requests) this.#cover({ ...request, seal });
    if (value.complete) this.#complete = value;
  }

  #cover(request: Covered): void {
    const { requestId, events } = request;
    const { covered, growth } = this.#requests.get(requestId) ?? { covered: [], growth: [] };
    covered.splice(covered.findLastIndex((one) => one.events <= events) + 1, 0, request);
    // A search that was slow may seal less than another one has.
    if (events > (growth.at(-1)?.events ?? -1)) growth.push({ events, since: this.#searchedAt });
    this.#requests.set(requestId, { covered, growth });
  }
}

/** Which part of a request was changed: the first `intact` events are as they were sealed, the first `events` are not. */
function partText(intact: number, events: number): string {
  if (events === 0) return 'The request was changed';
  const from = Math.max(intact + 1, 1);
  const which = from >= events ? `Event ${events}` : `One of events ${from} to ${events}`;
  return `${intact < 0 ? `${which}, or the request,` : which} was changed, removed, put in or moved`;
}

/**
 * What of a request, after its first `from` events up to `to`, is dated long before `since`, when a search found all that
 * was there: -1 for the request itself.
 */
function lateTexts({ body }: ApprovalRow, from: number, to: number, since: number | undefined): string[] {
  if (since === undefined) return [];
  // Also what is not a date.
  const isLate = (at: string) => !(Date.parse(at) >= since - ANNOUNCED_MS);
  const texts =
    from < 0 && isLate(body.timestamp) ? ['The request was put in: it is in no seal of the time that it has.'] : [];
  const events = body.events.slice(Math.max(from, 0), to);
  const late = texts.length === 0 ? events.findIndex(({ at }) => isLate(at)) : -1;
  if (late >= 0)
    texts.push(`Event ${Math.max(from, 0) + late + 1} was put in: it is in no seal of the time that it has.`);
  return texts;
}
