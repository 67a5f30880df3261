import { canonicalJson } from '../json.ts';
import { callDigest } from '../tool/call-digest.ts';
import type { ToolParameters } from '../tool/parameters.ts';
import type { Tool } from '../tool/tool.ts';
import { type CallOutcome, notRunOutcome, timeoutOutcome, withoutParameters, withParameters } from './outcome.ts';
import type { ApprovalEvent, ApprovalRecord, ApprovalRequest, Outcome } from './request.ts';
import type { ApprovalBody, ApprovalRow, Claim, StoredDecision } from './schema.ts';

/*
 * The state machine of a request. Each transition is a pure function from a row to its successor; the caller writes
 * the successor with a compare-and-set on the version it was computed from.
 *
 *   status:  waiting -> approved | rejected | cancelled
 *   run:     none -> claimed -> done | unknown, and unknown -> claimed for idempotent tools
 */

export interface DecisionVerdict {
  readonly approved: boolean;
  readonly by: string;
  readonly from: string;
  readonly reason?: string;
  readonly modifiedParams?: ToolParameters;
  /** Digest of the merged parameters if the decision modified them. */
  readonly digest?: string;
}

/** A person decided. `now` may be a second old, so `at` is kept before the deadline that the store checks. */
export function withDecision(row: ApprovalRow, verdict: DecisionVerdict, now: number): ApprovalRow {
  const { approved, by, from, reason, modifiedParams, digest } = verdict;
  const at = iso(Math.min(now, row.expiresAt.getTime() - 1));
  const decision: StoredDecision = {
    at,
    by,
    ...(!approved && { cause: 'human' }),
    ...(reason !== undefined && { reason }),
    ...(modifiedParams !== undefined && { modifiedParams }),
    ...(digest !== undefined && { digest }),
  };
  const type = approved ? 'approved' : 'rejected';
  return next(row, { status: type }, { decision }, { type, at, by, from, ...(!approved && { as: 'human' }) });
}

const SYSTEM = 'system';

export function withExpiry(row: ApprovalRow, now: number): ApprovalRow {
  const at = iso(Math.max(now, row.expiresAt.getTime()));
  const decision: StoredDecision = { at, by: SYSTEM, cause: 'timeout' };
  return next(row, { status: 'rejected' }, { decision }, { type: 'rejected', at, by: SYSTEM, as: 'timeout' });
}

export function withCancellation(
  row: ApprovalRow,
  { reason, outcome }: { readonly reason: string; readonly outcome?: Outcome },
  by: string,
  now: number,
): ApprovalRow {
  const at = iso(now);
  const body = { decision: { at, by, reason }, ...(outcome && { outcome: withoutParameters(outcome) }) };
  return next(row, { status: 'cancelled' }, body, { type: 'cancelled', at, by });
}

/** A policy denied the call, so nobody reviews it. Stored so that it appears in lists. */
export function withDenial(row: ApprovalRow, reason: string, now: number): ApprovalRow {
  const at = iso(now);
  const decision: StoredDecision = { at, by: 'policy', cause: 'policy', reason };
  return next(row, { status: 'rejected' }, { decision }, { type: 'rejected', at, by: 'policy', as: 'policy' });
}

export function withClaim(row: ApprovalRow, claim: Claim, now: number): ApprovalRow {
  return next(row, {}, { run: 'claimed', claim }, { type: 'claimed', at: iso(now), by: claim.by });
}

/** The tool is still running. */
export function withHeartbeat(row: ApprovalRow, claim: Claim): ApprovalRow {
  return { ...row, body: { ...row.body, claim: { ...claim, beat: claim.beat + 1 } } };
}

/** The process that ran the tool stopped responding: it is not known whether the tool took effect. */
export function withLostClaim(row: ApprovalRow, by: string, now: number): ApprovalRow {
  return next(row, {}, { run: 'unknown' }, { type: 'interrupted', at: iso(now), by });
}

/** The tool ended. An outcome that the agent has already received is not replaced. */
export function withResult(row: ApprovalRow, outcome: Outcome, by: string, now: number): ApprovalRow {
  const stored = row.body.outcome ?? withoutParameters(outcome);
  return next(row, {}, { run: 'done', outcome: stored }, { type: 'finished', at: iso(now), by, as: outcome.status });
}

/** The call ended without a result from the tool. A claim under which nothing ran is removed. */
export function withClosure(row: ApprovalRow, outcome: Outcome, by: string, now: number): ApprovalRow {
  const run = row.body.run === 'claimed' ? 'none' : row.body.run;
  return next(
    row,
    {},
    { run, outcome: withoutParameters(outcome) },
    { type: 'closed', at: iso(now), by, as: outcome.status },
  );
}

function next(
  row: ApprovalRow,
  columns: Partial<Pick<ApprovalRow, 'status'>>,
  body: Partial<ApprovalBody>,
  event: ApprovalEvent,
): ApprovalRow {
  return { ...row, ...columns, body: { ...row.body, ...body, events: [...row.body.events, event] } };
}

/** The outcome for the agent; undefined until the call has ended. */
export function callOutcomeOf({ requestId, status, body }: ApprovalRow): CallOutcome | undefined {
  const { decision } = body;
  const outcome = fullOutcome(body);
  switch (status) {
    case 'waiting':
      return undefined;
    case 'cancelled':
      return { ...(outcome ?? notRunOutcome('approval_cancelled', body, decision?.reason)), requestId };
    case 'rejected':
      if (decision?.cause === 'timeout') return { ...timeoutOutcome(body, body.timeoutMs), requestId };
      return {
        ...notRunOutcome(decision?.cause === 'policy' ? 'policy_denied' : 'approval_rejected', body, decision?.reason),
        requestId,
      };
    case 'approved': {
      if (!outcome) return undefined;
      const changed = changedParameters(body);
      return { ...outcome, ...(changed.length > 0 && { changed }), requestId };
    }
  }
}

/** The parameters to run with, not yet validated: the reviewer's changes merged into an object without prototype. */
export function effectiveParameters({
  parameters,
  decision,
}: Pick<ApprovalBody, 'parameters' | 'decision'>): ToolParameters {
  return Object.assign(Object.create(null), parameters, decision?.modifiedParams) as ToolParameters;
}

/** The parameters to run an approved call with; undefined if the tool or the request is not what was approved. */
export function approvedParameters(
  { executionId, body }: ApprovalRow,
  tool: Tool | undefined,
  digest: string | undefined,
): ToolParameters | undefined {
  if (!tool || tool.digest !== body.toolDigest) return undefined;
  const requested = callDigest(executionId, tool.digest, body.parameters);
  if (requested !== body.digest || (digest !== undefined && digest !== requested)) return undefined;
  const validated = tool.validate(effectiveParameters(body));
  if (!validated.ok) return undefined;
  const { parameters } = validated;
  if (body.decision?.modifiedParams === undefined) return parameters;
  return callDigest(executionId, tool.digest, parameters) === body.decision.digest ? parameters : undefined;
}

/** The call with the parameters that the tool runs with. */
export function callAsRun(body: ApprovalBody): Pick<ApprovalBody, 'tool' | 'parameters'> {
  return { tool: body.tool, parameters: { ...effectiveParameters(body) } };
}

/** The stored outcome with parameters: the effective ones if the tool ran or may have run. */
function fullOutcome(body: ApprovalBody): Outcome | undefined {
  const { outcome } = body;
  const hasRun = outcome?.status === 'failed' || outcome?.status === 'interrupted';
  return outcome && withParameters(outcome, hasRun ? callAsRun(body) : body);
}

function changedParameters({ parameters, decision }: ApprovalBody): string[] {
  const modified = decision?.modifiedParams ?? {};
  const isUnchanged = (name: string) =>
    Object.hasOwn(parameters, name) && canonicalJson(parameters[name]) === canonicalJson(modified[name]);
  return Object.keys(modified).filter((name) => !isUnchanged(name));
}

const iso = (time: number): string => new Date(time).toISOString();

const MASKED = Object.freeze({ masked: true });

/** The public view of a request. Sensitive parameters are masked unless `reveal`. */
export function toApprovalRequest(row: ApprovalRow, reveal = false): ApprovalRequest {
  const { requestId, executionId, agentTag, expiresAt, body } = row;
  const { tool, reason, timestamp } = body;
  const parameters = reveal ? body.parameters : mask(body.parameters, body.sensitive);
  return { requestId, executionId, agentTag, tool, parameters, reason, timestamp, timeout: expiresAt.toISOString() };
}

/** The public view of a row. Assigned field by field: conditional spreads take three times as long on large pages. */
export function toApprovalRecord(row: ApprovalRow, reveal = false): ApprovalRecord {
  const { run, groupId, toolCallId, decision, sensitive, timestamp, events } = row.body;
  const record = toApprovalRequest(row, reveal) as { -readonly [K in keyof ApprovalRecord]: ApprovalRecord[K] };
  record.status = row.status;
  if (decision?.cause !== undefined) record.cause = decision.cause;
  record.run = run;
  if (groupId !== undefined) record.groupId = groupId;
  if (toolCallId !== undefined) record.toolCallId = toolCallId;
  if (decision) {
    record.decidedAt = decision.at;
    record.decidedBy = decision.by;
    if (decision.reason !== undefined) record.decisionReason = decision.reason;
    const { modifiedParams } = decision;
    if (modifiedParams) record.modifiedParams = reveal ? modifiedParams : mask(modifiedParams, sensitive);
  }
  const outcome = reveal || !sensitive ? fullOutcome(row.body) : undefined;
  if (outcome) record.outcome = outcome;
  record.events = [{ type: 'requested', at: timestamp }, ...events];
  return record;
}

function mask(parameters: ToolParameters, sensitive: readonly string[] = []): ToolParameters {
  if (sensitive.length === 0) return parameters;
  return Object.fromEntries(
    Object.entries(parameters).map(([name, value]) => [name, sensitive.includes(name) ? MASKED : value]),
  );
}
