import { randomUUID } from 'node:crypto';
import { isSvcError, SvcError } from '../errors.ts';
import { onAbort } from '../on-abort.ts';
import { isClearlyOversized, isOversized } from '../tool/call-digest.ts';
import type { HumanInLoop } from '../tool/human-in-loop.ts';
import { jsonResult, NOT_SERIALIZABLE } from '../tool/model-result.ts';
import { storableJson } from '../tool/safe-json.ts';
import type { Tool } from '../tool/tool.ts';
import { announceDecision, announceRequest, type DeliveryRoute, LEAVING } from './announce.ts';
import { hasQuorum } from './apply-decision.ts';
import {
  approvedParameters,
  callAsRun,
  requestDigest,
  staleReason,
  type ValidParameters,
} from './approved-parameters.ts';
import { isOutage, isRetryable } from './backend.ts';
import {
  abortReason,
  assertCallFields,
  type CallOptions,
  detachKind,
  type GateCall,
  PROCESS_NAME,
  type WaitOptions,
} from './call.ts';
import { type CreatedRequest, createRequest, findRequest, type ValidatedCall } from './create-request.ts';
import { Heartbeat } from './heartbeat.ts';
import { nextNoticeAt } from './notice-times.ts';
import { giveNotice } from './notices.ts';
import {
  type CallResult,
  failedOutcome,
  invalidOutcome,
  invalidParametersOutcome,
  type NotRunCode,
  notRunOutcome,
  type PendingResult,
  type PendingStatus,
  parametersTooLargeOutcome,
  pendingResult,
  resultNotStored,
  storableOutcome,
} from './outcome.ts';
import { evaluatePolicies } from './policy.ts';
import { callOutcomeOf, toApprovalRecord, toApprovalRequest } from './public-view.ts';
import { newExecutionId, type Outcome } from './request.ts';
import { awaitHandler, runAsHandler } from './running-handlers.ts';
import type { ApprovalRow, Claim } from './schema.ts';
import type { ApprovalService, RequestRow, WriteResult } from './service.ts';
import {
  validUntil,
  wasInterrupted,
  withCancellation,
  withClaim,
  withClosure,
  withHeartbeat,
  withLostClaim,
  withResult,
  withWaiter,
} from './state.ts';
import { LazyToolContext } from './tool-context.ts';
import type { Subscription } from './watcher.ts';

/*
 * The path of a tool call, top to bottom:
 *
 *   policies             driveCall: the tool's settings and the taps decide whether the call needs approval
 *   request stored       createRequest: before it is announced
 *   announced            #announce: to taps and channels
 *   wait                 #waitForDecision: until a decision, the deadline or an abort
 *   decision or expiry   written by decide.ts or ApprovalService.expire, in any process
 *   claim                #claim: after the policies are evaluated with the final parameters
 *   handler              #runTool
 *   result               #storeResult
 *
 * From the stored request on, each step is derived from the row as read and written with a compare-and-set. A process
 * that was asleep, or lost a race, reads the row again and continues from there.
 */

export interface GateOptions {
  readonly agentTag: string;
  readonly tools: ReadonlyMap<string, Tool>;
  readonly humanInLoop: HumanInLoop;
  /** Why a tool that requires confirmation is called, for those who decide. */
  readonly reason?: string;
  readonly routes?: readonly DeliveryRoute[];
  /** Milliseconds without a heartbeat after which a claim is lost; default 30,000. */
  readonly leaseMs?: number;
}

export interface GatedTool {
  readonly tool: Tool;
  /** Undefined if the tool's settings require no approval; a policy still may. */
  readonly approvalReason: string | undefined;
}

export interface DriveOptions extends WaitOptions {
  /** True: the request is stored and announced, and the tool never runs. */
  readonly askOnly?: true | undefined;
}

const DEFAULT_LEASE_MS = 30_000;
const STORE_RETRY_MS = 1_000;

/**
 * Runs a call that needs or may need approval: policies may require it, and a resumed call may have a request. Undefined
 * only with `askOnly`, if it needs none.
 */
export async function driveCall(
  service: ApprovalService,
  gate: GateOptions,
  gated: GatedTool | undefined,
  call: GateCall,
  options: DriveOptions,
): Promise<CallResult | PendingResult | undefined> {
  assertCallFields(call);
  const drive = (request: ExistingRequest) =>
    new CallDriver(service, gate, gated?.tool, options, request).run(request, call.parameters);
  if (options.resumed && call.requestId !== undefined) {
    const { requestId } = call;
    const found = await service.admission.run(() => service.readAndSubscribe(requestId));
    if (found) return drive({ ...found, isNew: false });
  }
  if (!gated) return invalidOutcome('unknown_tool', 'There is no tool of that name.', call.tool);
  const { tool } = gated;
  if (gated.approvalReason !== undefined && isClearlyOversized(call.parameters)) {
    return parametersTooLargeOutcome(tool.tag);
  }
  const validated = await tool.validate(call.parameters);
  if (!validated.ok) return invalidParametersOutcome(tool.tag, validated.problems);
  const { parameters } = validated;
  const { agentTag, humanInLoop } = gate;
  const executionId = call.executionId ?? newExecutionId();
  const policy = await evaluatePolicies(service.hooks, { agentTag, executionId, tool: tool.tag, parameters });
  const reason =
    gated.approvalReason ?? (policy.verdict === 'allow' ? undefined : (policy.reason ?? 'A policy requires approval.'));
  const input: ValidatedCall = {
    agentTag,
    executionId,
    tool,
    rawParameters: call.parameters,
    parameters,
    ...(call.toolCallId !== undefined && { toolCallId: call.toolCallId }),
    ...(call.requestId !== undefined && { requestId: call.requestId }),
  };
  if (reason === undefined) {
    // A setting or a policy may have required approval earlier: then its decision applies, and what ran is not repeated.
    const existing =
      options.resumed === undefined ? await service.admission.run(() => findRequest(service, input)) : undefined;
    if (existing) return drive(existing);
    if (options.askOnly) return undefined;
    return runWithoutApproval(service, agentTag, tool, { ...call, executionId }, options, validated);
  }
  if (isOversized(parameters)) return parametersTooLargeOutcome(tool.tag);
  const request = {
    ...input,
    reason,
    timeoutMs: humanInLoop.approvalTimeout,
    validForMs: humanInLoop.approvalValidFor,
    ...(call.groupId !== undefined && { groupId: call.groupId }),
    ...(call.requester !== undefined && { requester: call.requester }),
    ...(call.model !== undefined && { model: call.model }),
    ...(call.modelText !== undefined && { modelText: call.modelText }),
    ...(policy.verdict === 'deny' && { denied: policy.reason ?? 'A policy denies the call.' }),
  };
  return drive(await service.admission.run(() => createRequest(service, request)));
}

/** Runs a tool at once. Every ungated call takes this path: it validates, calls the handler, and does no more. */
export async function runWithoutApproval(
  service: ApprovalService,
  agentTag: string,
  tool: Tool,
  call: GateCall,
  options: CallOptions,
  valid?: ValidParameters,
): Promise<CallResult> {
  const validated = valid ?? (await tool.validate(call.parameters));
  if (!validated.ok) return invalidParametersOutcome(tool.tag, validated.problems);
  const { parameters, input } = validated;
  if (options.beforeRun) await options.beforeRun();
  const context = new LazyToolContext({
    agentTag,
    executionId: call.executionId,
    toolCallId: call.toolCallId,
    requestId: call.requestId,
    signal: options.signal,
    log: service.log,
  });
  try {
    return { status: 'completed', result: (await tool.handler(context, input)) as CallResult['result'] };
  } catch (error) {
    return failedOutcome(error, { tool: tool.tag, parameters }, tool.sensitive);
  }
}

/** A stored request. `digest` is absent if the call was not validated again. */
type ExistingRequest = Omit<CreatedRequest, 'digest'> & Partial<Pick<CreatedRequest, 'digest'>>;

/** The result of a step: the outcome, that the caller leaves, the row to continue with, or a wait for a change of the row or a deadline. */
type Step =
  | { readonly outcome: CallResult }
  | { readonly next: RequestRow | 'read' }
  | { readonly pending: PendingStatus }
  | { readonly waitUntil: number | undefined };

/** Takes one call from its stored request to its outcome, whichever process decides. */
class CallDriver {
  readonly #service: ApprovalService;
  /** Undefined if the agent no longer defines it. */
  readonly #tool: Tool | undefined;
  readonly #options: DriveOptions;
  /** When to return without an outcome (`performance.now()`). */
  readonly #leaveAt: number | undefined;
  #announcing: Promise<void> = Promise.resolve();
  readonly #requestId: string;
  /** Digest of the call as passed to the gate; undefined if its parameters are no longer valid. */
  #digest: string | undefined;
  readonly #routes: readonly DeliveryRoute[];
  readonly #leaseMs: number;
  readonly #subscription: Subscription;
  /** Identifies this driver's claim. */
  readonly #token = randomUUID();
  /** Aborts when the request is decided. Created with the first announcement. */
  #decided: AbortController | undefined;
  #resolveEnded = () => {};
  #stopAwaiting = () => {};
  readonly #ended = new Promise<void>((resolve) => {
    this.#resolveEnded = resolve;
  });
  #hasWaited = false;
  /** Notices that were due by then, by the store's clock, have been given. */
  #noticesUntil = 0;
  #hasReportedDecision = false;
  #hasRun = false;
  /** The row as this driver claimed it, with the parameters that were checked before. */
  #claimed: { readonly row: RequestRow; readonly valid: ValidParameters } | undefined;
  /** When this driver last began to store its claim or a sign of life. */
  #aliveAt = Number.NEGATIVE_INFINITY;
  /** The version of another process's claim, and when it was first seen. */
  #observedClaim: { readonly version: number; readonly since: number } | undefined;

  constructor(
    service: ApprovalService,
    { routes = [], leaseMs = DEFAULT_LEASE_MS }: GateOptions,
    tool: Tool | undefined,
    options: DriveOptions,
    { row, isNew, digest, subscription }: ExistingRequest,
  ) {
    this.#leaveAt = options.waitMs === undefined ? undefined : performance.now() + options.waitMs;
    this.#service = service;
    this.#tool = tool;
    this.#options = options;
    this.#requestId = row.record.requestId;
    this.#digest = digest;
    // A request that was cancelled before it was stored is not announced.
    this.#routes = isNew && options.signal?.aborted ? [] : routes;
    this.#leaseMs = leaseMs;
    this.#subscription = subscription;
  }

  /** `parameters` are those of the call, not yet validated. */
  async run({ row: first, isNew }: ExistingRequest, parameters: unknown): Promise<CallResult | PendingResult> {
    const service = this.#service;
    const requestId = this.#requestId;
    const { signal, onRequested } = this.#options;
    const removeListener = signal && onAbort(signal, () => service.watcher.notify(requestId));
    const isAnnounced = this.#routes.length > 0 || service.hooks.approvalRequested.isUsed();
    let row: RequestRow | undefined = first;
    try {
      this.#digest ??= this.#tool && (await digestOf(this.#tool, first.record, parameters));
      if (first.record.status === 'waiting' && onRequested) {
        // Not awaited: the callback may itself wait for the decision.
        void service.runListener('onRequested', () => onRequested(toApprovalRequest(first.record)));
      }
      for (;;) {
        this.#assertAttached();
        const current: RequestRow | undefined = row;
        if (isAnnounced && current?.record.status === 'waiting') this.#announce(current, isNew);
        const step: Step = await this.#retryDuringOutage(() => this.#step(current));
        if ('outcome' in step) return step.outcome;
        if ('pending' in step) return await this.#leave(step.pending, current);
        if ('waitUntil' in step) await this.#subscription.nextChange(step.waitUntil);
        else if (step.next !== 'read') {
          row = step.next;
          continue;
        }
        this.#assertAttached();
        row = await this.#retryDuringOutage(() => service.read(requestId));
      }
    } finally {
      service.runningClaims.delete(this.#token);
      this.#stopAwaiting();
      this.#resolveEnded();
      this.#decided?.abort('decided');
      removeListener?.();
      this.#subscription.unsubscribe();
      if (row?.record.status !== 'waiting') service.announcements.delete(requestId);
      // Another caller in this process that waits for the request takes over its announcement.
      else service.watcher.notify(requestId);
    }
  }

  /** The process may be stopped now, so every channel gets an attempt first. */
  async #leave(status: PendingStatus, row: RequestRow | undefined): Promise<PendingResult> {
    if (!row) throw new Error(`${this.#requestId} is pending and has no row`);
    this.#decided?.abort(LEAVING);
    await this.#announcing;
    this.#service.forgetAnnouncementAt(row.record);
    return pendingResult(status, row.record);
  }

  /** Whether the caller wants the call back without an outcome. */
  #isLeaving(): boolean {
    if (this.#leaveAt === undefined) return false;
    return performance.now() >= this.#leaveAt || this.#options.signal?.aborted === true;
  }

  #announce(row: RequestRow, isNew: boolean): void {
    const service = this.#service;
    this.#decided ??= new AbortController();
    if (service.announcements.get(this.#requestId)?.signal === this.#decided.signal) return;
    const options = { routes: this.#routes, isNew, signal: this.#decided.signal };
    this.#announcing = service.runListener('The announcement', () => announceRequest(service, row, options));
  }

  async #step(row: RequestRow | undefined): Promise<Step> {
    if (!row) {
      const outcome = notRunOutcome('approval_stale', { tool: '', parameters: {} });
      return { outcome: { ...outcome, requestId: this.#requestId } };
    }
    const { record } = row;
    if (record.status === 'waiting') {
      this.#hasWaited = true;
      return this.#waitForDecision(row);
    }
    if (this.#options.askOnly) return { pending: 'decided' };
    this.#reportDecision(record);
    const outcome = callOutcomeOf(record);
    if (outcome) return { outcome };
    switch (record.body.run) {
      case 'none':
        return this.#claim(row);
      case 'claimed':
        return this.#runOrWatchClaim(row);
      case 'unknown':
        if (this.#tool?.idempotent) return this.#claim(row);
        return this.#close(row, 'interrupted');
      case 'done':
        throw new Error(`${this.#requestId} ran and has no outcome`);
    }
  }

  async #waitForDecision(row: RequestRow): Promise<Step> {
    const service = this.#service;
    const { signal } = this.#options;
    const { record } = row;
    if (signal?.aborted && this.#leaveAt === undefined) {
      await service.cancel(row, abortReason(signal), PROCESS_NAME);
      return { next: 'read' };
    }
    if (!this.#tool || this.#tool.digest !== record.body.toolDigest) {
      const reason = staleReason(record.body);
      const outcome = notRunOutcome('approval_stale', record.body, reason);
      const stale = { reason: reason ?? 'The tool has changed.', outcome };
      await service.writeDecision(row, withCancellation(record, stale, PROCESS_NAME, await service.clock.now()));
      return { next: 'read' };
    }
    const named = await this.#nameAsWaiter(row);
    if (named) return named;
    const deadline = record.expiresAt.getTime();
    if (service.clock.msUntil(deadline) <= 0) {
      await service.expire(row);
      // The store's clock may not have reached the deadline: then wait again.
      if (service.clock.msUntil(deadline) <= 0) return { next: 'read' };
    }
    if (this.#isLeaving()) return { pending: 'waiting' };
    const left = service.clock.msUntil(deadline);
    const next = this.#giveDueNotice(record, deadline - left) ?? deadline;
    const until = performance.now() + left - (deadline - next);
    return { waitUntil: Math.min(until, this.#leaveAt ?? until) };
  }

  /** Gives a notice that is due, if no other process does. Returns when the next one is. */
  #giveDueNotice(record: ApprovalRow, now: number): number | undefined {
    const due = nextNoticeAt(record, this.#noticesUntil);
    if (due === undefined || due > now) return due;
    this.#noticesUntil = now;
    const service = this.#service;
    void service.report('A notice', () => giveNotice(service, this.#requestId, this.#routes));
    return nextNoticeAt(record, now);
  }

  /** Only informs approvers, so a store error does not end the wait. */
  async #nameAsWaiter(row: RequestRow): Promise<Step | undefined> {
    const { presence } = this.#service;
    await presence.ensure();
    if (row.record.body.waiters?.includes(presence.id)) return undefined;
    try {
      return nextStep(await this.#service.write(row, withWaiter(row.record, presence.id)));
    } catch {
      return undefined;
    }
  }

  /** Once, to the caller and the channels. Neither is awaited. */
  #reportDecision(record: ApprovalRow): void {
    if (this.#hasReportedDecision) return;
    this.#hasReportedDecision = true;
    this.#decided?.abort('decided');
    const service = this.#service;
    const { onDecided } = this.#options;
    if (onDecided) void service.runListener('onDecided', () => onDecided(toApprovalRecord(record)));
    const { status, body } = record;
    // The process that claims an approved call announces its decision. Other decisions may not have been announced.
    const isUnannounced =
      this.#hasWaited || status !== 'approved' || (body.run === 'none' && body.outcome === undefined);
    if (this.#routes.length > 0 && isUnannounced)
      void service.report('The announcement', (ending) => announceDecision(service, record, this.#routes, ending));
  }

  /** Checks the approved call against its digest and the policies, then claims it. */
  async #claim(row: RequestRow): Promise<Step> {
    const service = this.#service;
    const { signal, beforeRun } = this.#options;
    const { record } = row;
    if (signal?.aborted && this.#leaveAt !== undefined) return { pending: 'decided' };
    if (signal?.aborted) return this.#close(row, 'approval_cancelled', abortReason(signal));
    const valid = await approvedParameters(record, this.#tool, this.#digest);
    if (!valid.ok) return this.#close(row, 'approval_stale', valid.why);
    if (!hasQuorum(record)) return this.#close(row, 'approval_stale', 'It lacks votes that its rule requires.');
    const { parameters } = valid;
    const { agentTag, executionId, body } = record;
    const policy = await evaluatePolicies(service.hooks, { agentTag, executionId, tool: body.tool, parameters });
    if (policy.verdict === 'deny') return this.#close(row, 'policy_denied', policy.reason);
    await beforeRun?.();
    if (signal?.aborted) return { next: row };
    const now = await service.clock.now();
    if (now >= validUntil(record)) return this.#close(row, 'approval_lapsed');
    const claim = { token: this.#token, by: PROCESS_NAME, beat: 0, leaseMs: this.#leaseMs };
    service.runningClaims.set(this.#token, this.#ended);
    this.#aliveAt = performance.now();
    const result = await service.write(row, withClaim(record, claim, now));
    if (result.written) this.#claimed = { row: result.written, valid };
    return nextStep(result);
  }

  /** Runs the tool under this driver's claim, or watches another claim until it has a result or is lost. */
  async #runOrWatchClaim(row: RequestRow): Promise<Step> {
    const service = this.#service;
    const { claim } = row.record.body;
    if (claim?.token === this.#token) return this.#runTool(row);
    this.#stopAwaiting();
    // A caller that left would not learn that the claim is lost.
    if (this.#leaveAt !== undefined && this.#options.signal?.aborted) return { pending: 'running' };
    if (claim) this.#stopAwaiting = awaitHandler(claim.token, this.#requestId);
    if (claim && service.runningClaims.has(claim.token)) return { waitUntil: undefined };
    const now = performance.now();
    if (this.#observedClaim?.version !== row.version) this.#observedClaim = { version: row.version, since: now };
    const lostAt = this.#observedClaim.since + (claim?.leaseMs ?? 0);
    if (!this.#options.resumed && now < lostAt) return { waitUntil: lostAt };
    return nextStep(await service.write(row, withLostClaim(row.record, PROCESS_NAME, await service.clock.now())));
  }

  async #confirmClaim(row: RequestRow, claim: Claim): Promise<Step> {
    this.#aliveAt = performance.now();
    return nextStep(await this.#service.write(row, withHeartbeat(row.record, claim)));
  }

  /** Runs with the parameters of the claimed row as stored: no other process can run it. */
  async #runTool(row: RequestRow): Promise<Step> {
    const service = this.#service;
    const requestId = this.#requestId;
    const { record } = row;
    const tool = this.#tool;
    // A row that was read again, after a write without an answer, is checked again.
    const valid =
      this.#claimed?.row === row ? this.#claimed.valid : await approvedParameters(record, tool, this.#digest);
    if (!tool || !valid.ok) return this.#close(row, 'approval_stale');
    // Storing the claim may have taken so long that another process takes it for lost, or the approval has lapsed.
    const { claim } = record.body;
    if (claim && performance.now() - this.#aliveAt > claim.leaseMs / 2) return this.#confirmClaim(row, claim);
    if ((await service.clock.now()) >= validUntil(record)) return this.#close(row, 'approval_lapsed');
    if (this.#hasRun) throw new Error(`${requestId} was about to run twice`);
    this.#hasRun = true;
    const { agentTag, executionId, body } = record;
    const heartbeat = new Heartbeat(service, row);
    const signal = () => heartbeat.signal(this.#options.signal);
    const { toolCallId } = body;
    const approvedBy = body.decision?.by ?? '';
    const context = new LazyToolContext({
      agentTag,
      executionId,
      toolCallId,
      requestId,
      approvedBy,
      signal,
      log: service.log,
    });
    try {
      const outcome = await runAsHandler(this.#token, () => runHandler(tool, context, valid.input, body));
      await this.#storeResult(await heartbeat.stop(), outcome);
      return { outcome: callOutcomeOf({ ...record, body: { ...body, outcome } }) ?? { ...outcome, requestId } };
    } finally {
      await heartbeat.stop();
    }
  }

  /** If the store can never accept the result, stores only that the tool ran. */
  async #storeResult(claimed: RequestRow, outcome: Outcome): Promise<void> {
    const { tool } = claimed.record.body;
    try {
      await this.#writeResult(claimed, storableOutcome(outcome, tool)).catch((error: unknown) => {
        if (!isSvcError(error) || isRetryable(error)) throw error;
        return this.#writeResult(claimed, resultNotStored(outcome, tool));
      });
    } catch (error) {
      if (!isSvcError(error)) throw error;
      throw error.with({ state: 'The tool ran, and its result could not be stored.' });
    }
  }

  /** Repeats until the result is stored or the claim is lost. */
  async #writeResult(claimed: RequestRow, outcome: Outcome): Promise<void> {
    const service = this.#service;
    for (let row: RequestRow | undefined = claimed; row?.record.body.claim?.token === this.#token; ) {
      const current: RequestRow = row;
      if (current.record.body.run === 'done') return;
      row = await this.#retryUntilStored(async () => {
        const next = withResult(current.record, outcome, PROCESS_NAME, await service.clock.now());
        return (await service.write(current, next)).written ? undefined : service.read(this.#requestId);
      });
    }
  }

  /** Ends the call without running the tool. If an earlier claim was lost, the outcome is always `interrupted`. */
  async #close(row: RequestRow, code: NotRunCode, reason?: string): Promise<Step> {
    const service = this.#service;
    const { record } = row;
    const { body } = record;
    const outcome = wasInterrupted(body)
      ? notRunOutcome('interrupted', callAsRun(body), reason)
      : notRunOutcome(code, body, reason);
    return nextStep(await service.write(row, withClosure(record, outcome, PROCESS_NAME, await service.clock.now())));
  }

  /** An outage does not end the call: the store may be available again before the deadline. */
  #retryDuringOutage<T>(work: () => Promise<T>): Promise<T> {
    return this.#retry(work, (error) => {
      if (!isOutage(error)) throw error;
      this.#assertAttached();
    });
  }

  /** The result of a tool exists only in this process, so the write is repeated until it succeeds. */
  #retryUntilStored<T>(work: () => Promise<T>): Promise<T> {
    let hasWarned = false;
    return this.#retry(work, (error) => {
      if (!isRetryable(error)) throw error;
      if (this.#service.closing.aborted || detachKind(this.#options.signal) === 'final') throw this.#detached();
      if (!hasWarned)
        this.#service.warn(`The result of ${this.#requestId} could not be stored and will be retried: ${error}`);
      hasWarned = true;
    });
  }

  /** `assertRetry` throws to give up. */
  async #retry<T>(work: () => Promise<T>, assertRetry: (error: unknown) => void): Promise<T> {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        assertRetry(error);
        await this.#subscription.nextChange(performance.now() + STORE_RETRY_MS);
        assertRetry(error);
      }
    }
  }

  #assertAttached(): void {
    if (this.#service.closing.aborted || detachKind(this.#options.signal) !== undefined) throw this.#detached();
  }

  #detached(): SvcError {
    return new SvcError('interrupted', 'The caller detached from the call before it ended.', {
      why: this.#service.closing.aborted ? 'The client was closed.' : 'Its signal was aborted.',
      state: 'The request is unchanged.',
      next: ['Make the same call again: it continues with this request.'],
      details: { requestId: this.#requestId },
    });
  }
}

function nextStep({ written }: WriteResult): Step {
  return { next: written ?? 'read' };
}

/** Never throws: an error of the handler is a result. */
async function runHandler(
  tool: Tool,
  context: LazyToolContext,
  input: unknown,
  body: ApprovalRow['body'],
): Promise<Outcome> {
  const call = callAsRun(body);
  try {
    const result = jsonResult(await tool.handler(context, input));
    if (result !== undefined) return { status: 'completed', result: storableJson(result) };
    return failedOutcome(new Error(NOT_SERIALIZABLE), call);
  } catch (error) {
    return failedOutcome(error, call, body.sensitive, body.parameters);
  }
}

/** Undefined if the parameters are no longer valid: then the tool has changed. */
async function digestOf(tool: Tool, record: ApprovalRow, parameters: unknown): Promise<string | undefined> {
  const validated = await tool.validate(parameters);
  if (!validated.ok) return undefined;
  return requestDigest(record, { tool: tool.tag, toolDigest: tool.digest, parameters: validated.parameters });
}
