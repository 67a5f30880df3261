import type { AsyncSeriesHook } from 'tapable';
import { describeThrown, SvcError } from '../errors.ts';
import { Recent } from '../recent.ts';
import { allRows, anyDefinition, type RecordStore, type Versioned } from '../records.ts';
import { gatedToolKey, isCurrentDigest, toolDigest } from '../tool/call-digest.ts';
import { storedValidator } from '../tool/input-schema.ts';
import type { ParameterValidation } from '../tool/parameters.ts';
import { frozenClone } from '../tool/safe-json.ts';
import type { Tool } from '../tool/tool.ts';
import { Admission } from './admission.ts';
import { ensureTableSet, type StorageBackend, type StoreOwner } from './backend.ts';
import { withReadableBodies } from './damaged-body.ts';
import { Delegations } from './delegations.ts';
import { notRunOutcome } from './outcome.ts';
import { isPersonToken, PersonTokens } from './person-tokens.ts';
import type { ApprovalHooks } from './policy.ts';
import { Presence } from './presence.ts';
import type { Principal } from './principal.ts';
import { toApprovalRecord } from './public-view.ts';
import { isRequestId } from './request.ts';
import type { StoredRule } from './rule.ts';
import {
  APPROVALS_VERSION,
  type ApprovalRow,
  approvals,
  type CallRow,
  calls,
  type DeliveryRow,
  delegations,
  deliveries,
  EXPIRY_SHARDS,
  type NoticeRow,
  notices,
  personTokens,
  type StandingRow,
  standingRules,
  type ToolRow,
  tools,
  waiters,
} from './schema.ts';
import { announcingLateEvents } from './seal/announce-late.ts';
import { isUndone, withCancellation, withClosure, withExpiry } from './state.ts';
import { StoreClock } from './store-clock.ts';
import { MAX_TIMEOUT_MS } from './timer-queue.ts';
import { RequestWatcher, type Subscription } from './watcher.ts';

/** How long `close` waits for reports of decisions. */
const REPORTS_TIMEOUT_MS = 5_000;
const TAPS_TIMEOUT_MS = 15_000;

const MAX_SEEN_CALLS = 10_000;

/** Interval of the search for overdue requests of processes that have stopped. The second search follows sooner. */
const SWEEP_INTERVAL_MS = 60_000;
const SECOND_SWEEP_MS = 10_000;
/** How long this process relies on what it read: that no process had ever gated a tool. */
const UNGATED_TTL_MS = 1_000;
/** Marks every tool as gated, in a store whose first requests did not mark theirs. No tag contains it. */
const ANY_TOOL = '*';
/** The first version whose requests mark their tools as gated. */
const MARKS_TOOLS_VERSION = 3;

export type RequestRow = Versioned<ApprovalRow>;

/** The result of a compare-and-set: the new row, or why it was not written. */
export type WriteResult =
  | { readonly written: RequestRow }
  | { readonly written?: undefined; readonly failure: 'late' | 'conflict' };

/** The deliveries of one request by this process. */
export interface ActiveAnnouncement {
  /** Aborts when the request is decided or its caller detaches: then no further attempt starts. */
  readonly signal: AbortSignal;
  /** By channel; each resolves to its delivery, if one succeeded, when the last attempt has been recorded. */
  readonly deliveries: Map<string, Promise<Pick<DeliveryRow, 'id' | 'receipt'> | undefined>>;
}

interface ApprovalServiceOptions {
  readonly backend: StorageBackend;
  readonly hooks: ApprovalHooks;
  readonly owner: StoreOwner;
  /** Who may decide, for requests that are created from now on. */
  readonly rules?: readonly StoredRule[];
  /** Verifies tokens that are not of `svc people token create`. Throws `token_invalid`. */
  readonly verifyToken?: ((token: string) => Promise<Principal>) | undefined;
  /** Receives the final decisions that this process has stored. */
  readonly onDecided?: (service: ApprovalService, row: ApprovalRow, signal: AbortSignal) => Promise<void>;
  /** Receives failures of taps, channels and background work. Messages contain no parameters. */
  readonly warn?: (message: string) => void;
  /** Receives the lines that handlers log. */
  readonly log?: (line: string) => void;
}

/** The requests of one store. Makes every write, and expires overdue requests. */
export class ApprovalService {
  readonly backend: StorageBackend;
  readonly hooks: ApprovalHooks;
  readonly rows: RecordStore<ApprovalRow>;
  readonly calls: RecordStore<CallRow>;
  readonly deliveries: RecordStore<DeliveryRow>;
  readonly notices: RecordStore<NoticeRow>;
  readonly standingRules: RecordStore<StandingRow>;
  readonly clock: StoreClock;
  readonly watcher: RequestWatcher;
  readonly presence: Presence;
  readonly personTokens: PersonTokens;
  readonly delegations: Delegations;
  readonly rules: readonly StoredRule[];
  /** The owner of a token. Throws `token_invalid`. */
  readonly verifyToken: (token: string) => Promise<Principal>;
  readonly admission = new Admission();
  readonly warn: (message: string) => void;
  readonly log: (line: string) => void;
  /** Ids of the requests of calls that this process has made or looked up, by the key of the call. */
  readonly seenCalls = new Recent<string>(MAX_SEEN_CALLS);
  /** Requests that this process has announced. */
  readonly announcements = new Map<string, ActiveAnnouncement>();
  /** Tokens of the claims of this process, each with a promise that resolves when the call has ended. */
  readonly runningClaims = new Map<string, Promise<void>>();
  readonly #tools: RecordStore<ToolRow>;
  readonly #onDecided: ApprovalServiceOptions['onDecided'];
  /** By the digest of the tool's definition. */
  readonly #validators = new Map<string, Tool['validate']>();
  readonly #storedTools = new Map<string, Promise<unknown>>();
  /** Tags of tools that have had a request in this store, which is final. */
  readonly #gatedTools = new Set<string>();
  /** By tag: when the store was last asked and had no request of the tool. */
  readonly #ungatedAt = new Map<string, number>();
  readonly #gatedReads = new Map<string, Promise<boolean>>();
  readonly #closing = new AbortController();
  readonly #endingReports = new AbortController();
  readonly #reports = new Set<Promise<void>>();
  #sweepTimer: NodeJS.Timeout | undefined;
  #sweeping: Promise<unknown> = Promise.resolve();

  /** Creates missing tables and starts to expire overdue requests. */
  static async open(options: ApprovalServiceOptions): Promise<ApprovalService> {
    const definitions = [
      approvals,
      calls,
      tools,
      deliveries,
      notices,
      waiters,
      personTokens,
      delegations,
      standingRules,
    ].map((one) => anyDefinition(one as typeof approvals));
    const upgrade = async (from: number) => {
      if (from >= MARKS_TOOLS_VERSION) return;
      await options.backend.records(calls).insert({ call: gatedToolKey(ANY_TOOL), requestId: ANY_TOOL });
    };
    const tableSet = { id: 'approvals', version: APPROVALS_VERSION, definitions, upgrade } as const;
    await ensureTableSet(options.backend, tableSet, options.owner);
    const service = new ApprovalService(options);
    service.#startSweep(SECOND_SWEEP_MS);
    return service;
  }

  private constructor(options: ApprovalServiceOptions) {
    const { backend, hooks, rules = [], verifyToken, onDecided, warn = () => {}, log = () => {} } = options;
    this.backend = backend;
    this.hooks = hooks;
    this.rules = rules;
    this.#onDecided = onDecided;
    this.warn = warn;
    this.log = log;
    this.rows = announcingLateEvents(withReadableBodies(backend.records(approvals)), backend);
    this.calls = backend.records(calls);
    this.deliveries = backend.records(deliveries);
    this.notices = backend.records(notices);
    this.standingRules = backend.records(standingRules);
    this.#tools = backend.records(tools);
    this.clock = new StoreClock(() => backend.now());
    this.watcher = new RequestWatcher(backend, this.rows, () => this.clock.prepare());
    this.personTokens = new PersonTokens(backend.records(personTokens), this.clock);
    this.verifyToken = (token) =>
      verifyToken && !isPersonToken(token) ? verifyToken(token) : this.personTokens.verify(token);
    this.delegations = new Delegations(backend.records(delegations), this.personTokens, this.clock);
    this.presence = new Presence(backend, {
      now: () => this.clock.now(),
      isWaiting: () => this.watcher.hasSubscribers,
    });
  }

  /** Aborts when the service closes. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Runs a report of a decision, for which `close` waits for a few seconds: then the signal aborts. */
  async report(what: string, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const running = this.runListener(what, () => work(this.#endingReports.signal));
    this.#reports.add(running);
    await running.finally(() => this.#reports.delete(running));
  }

  /** Forgets at its deadline that a request was announced, if no caller in this process waits for it then. */
  forgetAnnouncementAt({ requestId, expiresAt }: ApprovalRow): void {
    const forget = () => {
      if (this.announcements.get(requestId)?.signal.aborted) this.announcements.delete(requestId);
    };
    setTimeout(forget, Math.min(this.clock.msUntil(expiresAt.getTime()), MAX_TIMEOUT_MS)).unref();
  }

  async read(requestId: string): Promise<RequestRow | undefined> {
    return isRequestId(requestId) ? this.rows.get(requestId) : undefined;
  }

  /** Subscribes before it reads, so that no later change is missed. */
  async readAndSubscribe(
    requestId: string,
  ): Promise<{ readonly row: RequestRow; readonly subscription: Subscription } | undefined> {
    const subscription = this.watcher.subscribe(requestId);
    let row: RequestRow | undefined;
    try {
      row = await this.read(requestId);
    } finally {
      if (!row) subscription.unsubscribe();
    }
    return row && { row, subscription };
  }

  /** Writes the next state of a row unless it has changed or, with `guard`, its deadline has passed. */
  async write({ version }: RequestRow, next: ApprovalRow, guard?: 'before the deadline'): Promise<WriteResult> {
    const { requestId } = next;
    const result = await this.rows.replace(requestId, version, next, guard && { before: 'expiresAt' });
    if (result !== 'replaced') return { failure: result === 'late' ? 'late' : 'conflict' };
    this.watcher.notify(requestId);
    return { written: { record: next, version: version + 1 } };
  }

  /** Writes the final decision on a request and runs the taps. */
  async writeDecision(row: RequestRow, next: ApprovalRow, guard?: 'before the deadline'): Promise<WriteResult> {
    const result = await this.write(row, next, guard);
    if (!result.written) return result;
    await this.notifyTaps('approvalDecided', this.hooks.approvalDecided, () => toApprovalRecord(next));
    const report = this.#onDecided;
    if (report) void this.report('The announcement', (signal) => report(this, next, signal));
    return result;
  }

  /** Rejects a waiting request whose deadline has passed; leaves any other unchanged. */
  async expire(row: RequestRow): Promise<void> {
    const { record } = row;
    if (record.status !== 'waiting') return;
    const now = await this.clock.readNow();
    if (now < record.expiresAt.getTime()) return;
    await this.writeDecision(row, withExpiry(record, now));
  }

  /** Reads a row, and expires it first if its deadline has passed. */
  async getExpiringIfDue(requestId: string): Promise<RequestRow | undefined> {
    const row = await this.read(requestId);
    return row && this.expireIfDue(row);
  }

  /** Returns the row, expiring it first if its deadline has passed. On a store error, warns and returns it unchanged. */
  async expireIfDue(row: RequestRow): Promise<RequestRow> {
    if (!this.isDue(row.record)) return row;
    try {
      await this.expire(row);
      return (await this.read(row.record.requestId)) ?? row;
    } catch (error) {
      this.warn(`An overdue approval could not be expired: ${describeThrown(error)}`);
      return row;
    }
  }

  /** By the last reading of the clock. */
  isDue({ status, expiresAt }: Pick<ApprovalRow, 'status' | 'expiresAt'>): boolean {
    return status === 'waiting' && this.clock.msUntil(expiresAt.getTime()) <= 0;
  }

  /**
   * Cancels a request that waits, or was approved and has not started, whatever is decided concurrently. With `whenApproved`,
   * an approved one ends with that code, or is left. Returns the new row.
   */
  async cancel(
    row: RequestRow,
    reason: string,
    by: string,
    whenApproved: 'approval_cancelled' | 'approval_stale' | 'leave' = 'approval_cancelled',
  ): Promise<ApprovalRow | undefined> {
    for (let current: RequestRow | undefined = row; current; current = await this.read(row.record.requestId)) {
      const { record } = current;
      if (!isUndone(record)) return undefined;
      const now = await this.clock.now();
      let result: WriteResult;
      if (record.status === 'waiting') {
        result = await this.writeDecision(current, withCancellation(record, { reason }, by, now));
      } else {
        if (whenApproved === 'leave') return undefined;
        const outcome = notRunOutcome(whenApproved, record.body, reason);
        result = await this.write(current, withClosure(record, outcome, by, now));
      }
      if (result.written) return result.written.record;
    }
    return undefined;
  }

  /** Cancels every request of an execution that `cancel` applies to. */
  async cancelAll(executionId: string, reason: string, by: string): Promise<void> {
    for await (const row of allRows(this.rows, 'byExecution', { equals: { executionId }, limit: 200 })) {
      await this.cancel(row, reason, by);
    }
  }

  /** Expires all overdue requests, including those of other processes, until the service closes. Returns how many. */
  async sweep(): Promise<number> {
    const due = new Date(await this.clock.readNow());
    let found = 0;
    for (let shard = 0; shard < EXPIRY_SHARDS; shard++) {
      let cursor: string | undefined;
      do {
        if (this.#closing.signal.aborted) return found;
        const page = await this.rows.page('byExpiry', {
          equals: { status: 'waiting', shard },
          to: due,
          limit: 200,
          ...(cursor !== undefined && { cursor }),
        });
        await Promise.all(page.records.map((row) => this.expire(row)));
        found += page.records.length;
        cursor = page.cursor;
      } while (cursor !== undefined);
    }
    return found;
  }

  /** Runs a listener; its errors are logged, never propagated. */
  async runListener(name: string, listener: () => unknown): Promise<void> {
    try {
      await listener();
    } catch (error) {
      this.warn(`${name} threw: ${describeThrown(error)}`);
    }
  }

  /** Waits for taps that only observe, for at most TAPS_TIMEOUT_MS. */
  async notifyTaps<T>(name: string, hook: AsyncSeriesHook<[T]>, value: () => T): Promise<void> {
    if (!hook.isUsed()) return;
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`did not end within ${TAPS_TIMEOUT_MS} ms`)), TAPS_TIMEOUT_MS);
    });
    await this.runListener(`A tap on ${name}`, () => Promise.race([hook.promise(frozenClone(value())), timeout]));
    clearTimeout(timer);
  }

  /** Adds a tool that this process defines: `validateParameters` then needs no stored definition. */
  registerTool(tool: Tool): void {
    this.#validators.set(tool.digest, tool.validate);
  }

  /** Stores a tool's definition once, for processes that decide without defining the agent, and marks it as gated. */
  async storeTool(tool: Tool, requestId: string): Promise<void> {
    const { digest, tag, description, idempotent, schema, sensitive, addsDefaults } = tool;
    const definition = { description, idempotent, schema, sensitive, ...(addsDefaults && { addsDefaults }) };
    let stored = this.#storedTools.get(digest);
    if (!stored) {
      stored = Promise.all([
        this.#tools.insert({ digest, tag, definition }),
        this.calls.insert({ call: gatedToolKey(tag), requestId }),
      ]).then(() => this.#setGated(tag));
      this.#storedTools.set(digest, stored);
      stored.catch(() => this.#storedTools.delete(digest));
    }
    await stored;
  }

  /** Whether the store had no request of such a tool a moment ago. */
  isKnownUngated(tag: string): boolean {
    const askedAt = this.#ungatedAt.get(tag);
    return askedAt !== undefined && performance.now() - askedAt < UNGATED_TTL_MS;
  }

  /** Whether a tool of that tag ever had a request in this store. Throws store errors. */
  async wasGated(tag: string): Promise<boolean> {
    if (this.#gatedTools.has(tag)) return true;
    let read = this.#gatedReads.get(tag);
    if (!read) {
      read = this.#readGated(tag).finally(() => this.#gatedReads.delete(tag));
      this.#gatedReads.set(tag, read);
    }
    // A request of this process may have marked the tool during the read.
    return (await read) || this.#gatedTools.has(tag);
  }

  async #readGated(tag: string): Promise<boolean> {
    const askedAt = performance.now();
    const found = await Promise.all([tag, ANY_TOOL].map((name) => this.calls.get(gatedToolKey(name))));
    if (found.some((row) => row !== undefined)) this.#setGated(tag);
    else if (!this.#gatedTools.has(tag)) this.#ungatedAt.set(tag, askedAt);
    return this.#gatedTools.has(tag);
  }

  #setGated(tag: string): void {
    this.#gatedTools.add(tag);
    this.#ungatedAt.delete(tag);
  }

  /** Validates against a stored definition of the tool. Throws `approval_stale` if it is not in the store. */
  async validateParameters(toolDigest: string, parameters: unknown): Promise<ParameterValidation> {
    let validate = this.#validators.get(toolDigest);
    if (!validate) {
      const definition = await this.getToolDefinition(toolDigest);
      if (!definition) {
        throw new SvcError('approval_stale', 'The definition of the tool is not in the store.', {
          next: ['Decide without modifiedParams, or in a process that defines the agent.'],
        });
      }
      validate = storedValidator(definition.schema, definition.addsDefaults);
      this.#validators.set(toolDigest, validate);
    }
    return validate(parameters);
  }

  /** The definition of a tool, for reviewers. Throws `approval_stale` if it is not the one that was stored. */
  async getToolDefinition(digest: string): Promise<Pick<Tool, 'description' | 'schema' | 'addsDefaults'> | undefined> {
    const stored = (await this.#tools.get(digest))?.record;
    if (!stored) return undefined;
    if (toolDigest({ ...stored.definition, tag: stored.tag }) === digest) {
      const { description, schema, addsDefaults } = stored.definition;
      return { description, schema, ...(addsDefaults && { addsDefaults }) };
    }
    throw new SvcError('approval_stale', `The definition of the tool "${stored.tag}" in the store is not valid.`, {
      why: isCurrentDigest(digest)
        ? 'It was changed after it was stored: it does not match its digest.'
        : 'It was stored by another version of @svc/sdk.',
      state: 'Nothing ran.',
      next: ['Reject the request, and let the agent call the tool again.'],
    });
  }

  #startSweep(nextInMs: number): void {
    const warn = (error: unknown) => this.warn(`The search for overdue approvals failed: ${describeThrown(error)}`);
    this.#sweeping = this.#sweeping.then(() => this.sweep()).catch(warn);
    this.#sweepTimer = setTimeout(() => this.#startSweep(SWEEP_INTERVAL_MS), nextInMs);
    this.#sweepTimer.unref();
  }

  /**
   * Ends all waits in this process. Stored requests are unchanged; running tools finish, their results are stored, and
   * decisions are reported to the channels.
   */
  async close(): Promise<void> {
    this.#closing.abort();
    clearTimeout(this.#sweepTimer);
    await this.watcher.close();
    while (this.runningClaims.size > 0) await Promise.all(this.runningClaims.values());
    const timer = setTimeout(() => this.#endingReports.abort(new Error('the client was closed')), REPORTS_TIMEOUT_MS);
    await Promise.all(this.#reports);
    clearTimeout(timer);
    await this.#sweeping;
    await this.presence.close();
  }
}
