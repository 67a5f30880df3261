import type { ToolParameters } from '../tool/parameters.ts';
import { withEvent } from './event-chain.ts';
import { withoutParameters } from './outcome.ts';
import { isVerified, type Principal } from './principal.ts';
import type { ApprovalEvent, Outcome } from './request.ts';
import type { ApprovalBody, ApprovalRow, Claim, StoredDecision, StoredVote } from './schema.ts';

/*
 * The state machine of a request. Each transition is a pure function from a row to its successor; the caller writes
 * the successor with a compare-and-set on the version it was computed from.
 *
 *   status:  waiting -> approved | rejected | cancelled; by a rule, votes come first (apply-decision.ts)
 *   run:     none -> claimed -> done | unknown, and unknown -> claimed for idempotent tools
 */

export interface DecisionVerdict {
  readonly approved: boolean;
  readonly by: string;
  readonly principal: Principal;
  /** The person decides alone, in place of the votes that the rule requires. */
  readonly override?: boolean;
  /** The id of the standing rule that approves it. */
  readonly standing?: string;
  readonly from: string;
  readonly reason?: string;
  readonly modifiedParams?: ToolParameters;
  /** Digest of the merged parameters if the decision modified them. */
  readonly digest?: string;
  readonly idempotency?: ApprovalEvent['idempotency'] | undefined;
}

/** When a person decided. `now` may be a second old, so it is kept before the deadline that the store checks. */
export function decidedAt({ expiresAt }: ApprovalRow, now: number): number {
  return Math.min(now, expiresAt.getTime() - 1);
}

/** A person decided. */
export function withDecision(
  row: ApprovalRow,
  verdict: DecisionVerdict,
  now: number,
  { decidedBy = verdict.by, deciders = [verdict.principal], votes }: Partial<Deciders> = {},
): ApprovalRow {
  const { approved, by, principal, override, standing, from, reason, modifiedParams, digest, idempotency } = verdict;
  const verified = deciders.filter(isVerified);
  const at = iso(decidedAt(row, now));
  const decision: StoredDecision = {
    at,
    by: decidedBy,
    ...(!approved && { cause: 'human' }),
    ...(reason !== undefined && { reason }),
    ...(modifiedParams !== undefined && { modifiedParams }),
    ...(digest !== undefined && { digest }),
    ...(override && { override }),
    ...(standing !== undefined && { standing }),
    ...(verified.length > 0 && { deciders: verified }),
  };
  const type = approved ? 'approved' : 'rejected';
  const as = override ? 'override' : standing !== undefined ? 'standing' : approved ? undefined : 'human';
  const about = { ...(as !== undefined && { as }), ...principalOf(principal), ...(idempotency && { idempotency }) };
  const event = { type, at, by, from, ...about } as const;
  return next(row, { status: type }, { decision, ...(votes && { votes }) }, event);
}

/** Those whose votes are a decision, their names, and all votes. */
interface Deciders {
  readonly decidedBy: string;
  readonly deciders: readonly Principal[];
  readonly votes: readonly StoredVote[];
}

/** A person voted, and the rule requires more votes. `votes` are those that count from now on. */
export function withVote(
  row: ApprovalRow,
  votes: readonly StoredVote[],
  vote: StoredVote,
  idempotency: DecisionVerdict['idempotency'],
): ApprovalRow {
  const { at, by, from, approved, principal } = vote;
  const as = approved ? 'approve' : 'reject';
  const about = { as, ...principalOf(principal), ...(idempotency && { idempotency }) };
  return next(row, {}, { votes }, { type: 'voted', at, by, from, ...about });
}

/** The channels are notified of the request, which still waits; with `as`, that people of these roles may decide too. */
export function withNotice(row: ApprovalRow, roles: readonly string[], by: string, now: number): ApprovalRow {
  const type = roles.length > 0 ? 'escalated' : 'reminded';
  return next(row, {}, {}, { type, at: iso(now), by, ...(roles.length > 0 && { as: roles.join(', ') }) });
}

/** A person reads the sensitive parameters. */
export function withReveal(
  row: ApprovalRow,
  { by, principal, from }: Pick<DecisionVerdict, 'by' | 'principal' | 'from'>,
  now: number,
): ApprovalRow {
  return next(row, {}, {}, { type: 'revealed', at: iso(now), by, from, ...principalOf(principal) });
}

function principalOf(principal: Principal): Pick<ApprovalEvent, 'principal'> {
  return isVerified(principal) ? { principal } : {};
}

/** When an approved call may no longer be claimed, in milliseconds since 1970 by the store's clock. */
export function validUntil({ body }: ApprovalRow): number {
  const { decision, validForMs = body.timeoutMs } = body;
  return decision ? Date.parse(decision.at) + validForMs : 0;
}

/** The call was approved, and no process has started it or can: its approval is no longer valid. */
export function hasLapsed(row: ApprovalRow, now: number): boolean {
  const { status, body } = row;
  const mayStart = body.run === 'none' || body.run === 'unknown';
  return status === 'approved' && body.outcome === undefined && mayStart && now >= validUntil(row);
}

/** The request waits for a decision, or was approved and its call has not started. */
export function isUndone({ status, body }: ApprovalRow): boolean {
  return status === 'waiting' || (status === 'approved' && body.run === 'none' && body.outcome === undefined);
}

/** More than can wait for one call by any sensible design; the oldest are dropped. */
const MAX_WAITERS = 8;

/** Another process waits for the decision. */
export function withWaiter(row: ApprovalRow, waiter: string): ApprovalRow {
  const waiters = [...(row.body.waiters ?? []), waiter].slice(-MAX_WAITERS);
  return { ...row, body: { ...row.body, waiters } };
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

/** A process that ran the tool stopped responding, and no later run has ended. */
export function wasInterrupted({ run, events }: ApprovalBody): boolean {
  return run === 'unknown' || (run === 'claimed' && events.some(({ type }) => type === 'interrupted'));
}

/** The call ended without a result from the tool. A claim under which nothing ran is removed. */
export function withClosure(row: ApprovalRow, outcome: Outcome, by: string, now: number): ApprovalRow {
  const { run: before } = row.body;
  const run = before === 'claimed' ? (wasInterrupted(row.body) ? 'unknown' : 'none') : before;
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
  return withEvent(row, { ...row, ...columns, body: { ...row.body, ...body } }, event);
}

const iso = (time: number): string => new Date(time).toISOString();
