import { headOf } from '../event-chain.ts';
import type { ApprovalRow } from '../schema.ts';
import { ANNOUNCED_MS } from './announce-late.ts';
import type { SealPublicKey } from './key.ts';
import { headerDigest, isSeal, requestsProblem, type Seal, type SealedRequest, signatureProblem } from './seal.ts';

/** What a check of the audit is compared with. */
export interface SealSource {
  /** Where the seals come from, for people. */
  readonly from: string;
  /** The seals, oldest first. */
  read(): AsyncIterable<unknown>;
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

/** Compares requests with what was sealed of them. */
export class SealedAudit {
  readonly #from: string;
  readonly #requests = new Map<string, Covered[]>();
  readonly #seen = new Set<string>();
  readonly #problems: string[] = [];
  #seals = 0;
  #last: Seal | undefined;
  #complete: Seal | undefined;
  #unsealed = 0;

  /** Reads every seal, and checks that they are signed and follow each other. */
  static async read(source: SealSource): Promise<SealedAudit> {
    const audit = new SealedAudit(source.from);
    for await (const seal of source.read()) audit.#add(seal, source);
    return audit;
  }

  private constructor(from: string) {
    this.#from = from;
  }

  get check(): SealCheck {
    let removed = 0;
    for (const covered of this.#requests.values()) if (covered.some((one) => one.removed)) removed += 1;
    return {
      from: this.#from,
      seals: this.#seals,
      last: this.#last?.seal ?? 0,
      ...(this.#complete && { sealedAt: this.#complete.at }),
      removed,
      unsealed: this.#unsealed,
      problems: this.#problems,
    };
  }

  /** What was sealed of a request and is not so any more, and what should have been sealed. */
  problemsOf(row: ApprovalRow): string[] {
    const { requestId, body } = row;
    this.#seen.add(requestId);
    const problems: string[] = [];
    let intact = -1;
    for (const { events, head, seal } of this.#requests.get(requestId) ?? []) {
      const isSame = events <= body.events.length && headOf(row, events) === head;
      if (isSame) intact = events;
      else if (problems.length === 0) problems.push(`${partText(intact, events)} since seal ${seal}.`);
    }
    const sealed = this.#requests.get(requestId)?.at(-1)?.events ?? -1;
    const isNew = (at: string) => !this.#wasSealedAfter(at);
    if (sealed < 0 && !isNew(body.timestamp)) problems.push('The request was put in: it is in no seal.');
    const unsealed = body.events.slice(Math.max(sealed, 0));
    const late = unsealed.findIndex(({ at }) => !isNew(at));
    const event = unsealed[late];
    if (event && sealed >= 0) {
      const name = `Event ${sealed + late + 1} (${event.type}, ${event.at})`;
      problems.push(`${name} was put in: it is in no seal, and those of its time have been sealed.`);
    }
    if (sealed < body.events.length) this.#unsealed += 1;
    return problems;
  }

  /** The sealed requests that were not seen, except those that were removed by `prune`. */
  missing(): string[] {
    return [...this.#requests.keys()].filter((requestId) => !this.#seen.has(requestId) && !this.wasRemoved(requestId));
  }

  wasRemoved(requestId: string): boolean {
    return this.#requests.get(requestId)?.some(({ removed }) => removed) === true;
  }

  /** Whether what was stored at that time is sealed, even if its write took a while. */
  #wasSealedAfter(at: string): boolean {
    return this.#complete !== undefined && Date.parse(at) < Date.parse(this.#complete.at) - ANNOUNCED_MS;
  }

  #add(value: unknown, { keys, product, env }: SealSource): void {
    if (!isSeal(value)) {
      this.#problems.push(`After seal ${this.#last?.seal ?? 0} is something that is not a seal.`);
      return;
    }
    const expected = (this.#last?.seal ?? 0) + 1;
    const name = `Seal ${value.seal}`;
    if (this.#last && headerDigest(this.#last) === headerDigest(value)) return;
    const problem =
      signatureProblem(value, keys) ??
      requestsProblem(value) ??
      (value.product === product && value.env === env ? undefined : `is of ${value.product} (${value.env})`);
    if (problem !== undefined) {
      this.#problems.push(`${name} ${problem}.`);
      return;
    }
    if (value.seal > expected) {
      const last = value.seal - 1;
      this.#problems.push(last === expected ? `Seal ${last} is missing.` : `Seals ${expected} to ${last} are missing.`);
    } else if (value.seal < expected) this.#problems.push(`${name} comes after seal ${expected - 1}.`);
    else if (value.previous !== (this.#last ? headerDigest(this.#last) : null))
      this.#problems.push(`${name} does not follow the one before it.`);
    this.#seals += 1;
    this.#last = value;
    if (value.complete) this.#complete = value;
    for (const request of value.requests) this.#cover({ ...request, seal: value.seal });
  }

  #cover(request: Covered): void {
    const before = this.#requests.get(request.requestId);
    if (!before) this.#requests.set(request.requestId, [request]);
    else before.splice(before.findLastIndex(({ events }) => events <= request.events) + 1, 0, request);
  }
}

/** Which part of a request was changed: the first `intact` events are as they were sealed, the first `events` are not. */
function partText(intact: number, events: number): string {
  if (events === 0) return 'The request was changed';
  const from = Math.max(intact + 1, 1);
  const which = from === events ? `Event ${events}` : `One of events ${from} to ${events}`;
  return `${intact < 0 ? `${which}, or the request,` : which} was changed, removed, put in or moved`;
}
