import { effectiveParameters } from './approved-parameters.ts';
import { isVerified, type Principal } from './principal.ts';
import type { ApprovalEvent } from './request.ts';
import {
  authorityOf,
  firstMatch,
  matchedRule,
  missingRoles,
  personKey,
  type RoleCount,
  ruleAfter,
  type StoredRule,
  sharePerson,
  whyExcluded,
  whyNoOverride,
  whyNoStanding,
  whyNotAllowed,
  withGroupsOf,
} from './rule.ts';
import type { ApprovalRow, StoredVote } from './schema.ts';
import { type DecisionVerdict, decidedAt, withDecision, withVote } from './state.ts';

/** What becomes of a request by one decision. */
export type AppliedDecision =
  /** The row to store: with a vote more, or decided. */
  | { readonly next: ApprovalRow; readonly isFinal: boolean }
  /** The person has decided so before. */
  | { readonly unchanged: true }
  | { readonly refused: 'decision_refused' | 'decision_invalid' | 'parameters_too_large'; readonly why: string };

/** The largest votes of a request, in bytes of JSON: some stores limit a row to 400 KB. */
const MAX_VOTES_BYTES = 64 * 1024;

/** Of these, what only votes have that are small: nobody keeps others from voting with a long reason or large changes. */
const SMALL_VOTES_BYTES = 16 * 1024;
const MAX_SMALL_VOTE_BYTES = 2 * 1024;

/** How often a person may vote on one request: each vote is an event in its row. */
const MAX_VOTES_PER_PERSON = 6;

/**
 * Applies a decision to a request that waits: the votes, the rule and the decision are the next state. Pure, and the only
 * place that decides, for every way in: the callback, the broker, the command line and signals.
 */
export function applyDecision(row: ApprovalRow, verdict: DecisionVerdict, now: number): AppliedDecision {
  const { body } = row;
  const why = otherRule(row, verdict);
  if (why !== undefined) return { refused: 'decision_refused', why };
  const rule = ruleAt(row, decidedAt(row, now));
  if (verdict.override) return applyOverride(row, rule, verdict, now);
  if (!rule) {
    const own = isVerified(verdict.principal) ? whyExcluded(rule, excludedBy(row), verdict.principal) : undefined;
    if (own !== undefined) return { refused: 'decision_refused', why: own };
    return { next: withDecision(row, verdict, now), isFinal: true };
  }
  const { approved, reason } = verdict;
  const principal = withGroupsOf(rule, verdict.principal);
  const excluded = whyNotAllowed(rule, excludedBy(row), principal);
  if (excluded !== undefined) return { refused: 'decision_refused', why: excluded };
  if (needsReason(rule, approved) && !reason?.trim()) {
    return { refused: 'decision_invalid', why: 'The rule of the request requires a reason.' };
  }
  const known = { ...verdict, principal };
  const vote = toVote(row, known, now);
  const earlier = body.votes ?? [];
  const key = personKey(principal);
  const own = earlier.find((one) => personKey(one.principal) === key);
  const isRepeated =
    own?.approved === approved && own.digest === vote.digest && isSameAuthority(own.principal, principal);
  const others = earlier.filter((one) => one !== own);
  const shared = others.filter((one) => sharePerson(one.principal, principal));
  const [first] = shared;
  if (first && principal.for) {
    return { refused: 'decision_refused', why: `Nobody counts twice: ${first.by} has voted.` };
  }
  // Those who vote themselves replace the vote in their place.
  const votes = isRepeated ? earlier : [...others.filter((one) => !shared.includes(one)), vote];
  const counted = votes.filter((one) => one.approved === approved && (!approved || one.digest === vote.digest));
  const voters = counted.map((one) => one.principal);
  const isFinal = approved ? missingRoles(rule, voters).length === 0 : voters.length >= rule.deny;
  // Since the last vote, escalation may have added people to the roles.
  if (isRepeated && !isFinal) return { unchanged: true };
  const room = bytesOf(vote) > MAX_SMALL_VOTE_BYTES ? MAX_VOTES_BYTES - SMALL_VOTES_BYTES : MAX_VOTES_BYTES;
  if (bytesOf(votes) > room) {
    return {
      refused: 'parameters_too_large',
      why: 'The votes of the request have no room for more changes or reasons.',
    };
  }
  if (!isFinal) {
    const before = body.events.filter((event) => event.type === 'voted' && eventKey(event) === key).length;
    if (before >= MAX_VOTES_PER_PERSON) return { refused: 'decision_refused', why: 'This person has voted too often.' };
    return { next: withVote(row, votes, vote, verdict.idempotency), isFinal };
  }
  const decidedBy = counted.map((one) => one.by).join(', ');
  return { next: withDecision(row, known, now, { decidedBy, deciders: voters, votes }), isFinal };
}

const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

/** The decision that the votes of a waiting request are since escalation has added people to the roles; undefined if none. */
export function decisionByVotes(row: ApprovalRow, now: number): ApprovalRow | undefined {
  const last = row.body.votes?.findLast(({ approved }) => approved);
  if (!last) return undefined;
  const { modifiedParams, digest, ...vote } = last;
  const changes = modifiedParams === undefined ? {} : { modifiedParams, digest };
  const applied = applyDecision(row, { ...vote, ...changes }, now);
  return 'next' in applied && applied.isFinal ? applied.next : undefined;
}

/**
 * A person who votes on a request, in the place of the delegator whose vote leaves the fewest missing if they may not do so
 * themselves. What they may do in the end, `applyDecision` decides.
 */
export function voterOf(
  row: ApprovalRow,
  principal: Principal,
  delegators: readonly NonNullable<Principal['for']>[],
  now: number,
): Principal {
  const { votes = [] } = row.body;
  const rule = ruleAt(row, decidedAt(row, now));
  if (!rule) return principal;
  const key = personKey(principal);
  const others = votes.filter((one) => personKey(one.principal) !== key);
  const voters = others.filter(({ approved }) => approved).map((one) => one.principal);
  let chosen = principal;
  let fewest = Number.POSITIVE_INFINITY;
  for (const delegator of delegators) {
    const candidate = withGroupsOf(rule, { ...principal, for: delegator });
    if (whyNotAllowed(rule, excludedBy(row), candidate) !== undefined) continue;
    const isTaken = others.some((one) => sharePerson(one.principal, candidate));
    const missing = missingRoles(rule, [...voters, candidate]).reduce((sum, { count }) => sum + count, 0);
    const left = isTaken ? Number.MAX_SAFE_INTEGER : missing;
    if (left < fewest) [chosen, fewest] = [candidate, left];
  }
  return chosen;
}

/** Whether a person may vote on a request without a delegation. */
export function mayVote(row: ApprovalRow, principal: Principal, now: number): boolean {
  const rule = ruleAt(row, decidedAt(row, now));
  return !rule || whyNotAllowed(rule, excludedBy(row), principal) === undefined;
}

const isSameAuthority = (one: Principal, other: Principal): boolean =>
  personKey(authorityOf(one)) === personKey(authorityOf(other));

/** Whether a person may decide a request alone. */
export function mayOverride(row: ApprovalRow, principal: Principal, now: number): boolean {
  const rule = ruleAt(row, decidedAt(row, now));
  return rule !== undefined && whyNoOverride(rule, excludedBy(row), principal) === undefined;
}

/** One person decides in place of the votes, with a reason, and the record says so. */
function applyOverride(
  row: ApprovalRow,
  rule: StoredRule | undefined,
  verdict: DecisionVerdict,
  now: number,
): AppliedDecision {
  if (!rule)
    return { refused: 'decision_invalid', why: 'No rule applies to the request, so there is nothing to override.' };
  const why = whyNoOverride(rule, excludedBy(row), verdict.principal);
  if (why !== undefined) return { refused: 'decision_refused', why };
  if (!verdict.reason?.trim()) return { refused: 'decision_invalid', why: 'An override needs a reason.' };
  return {
    next: withDecision(row, { ...verdict, principal: withGroupsOf(rule, verdict.principal) }, now),
    isFinal: true,
  };
}

/** The key of the person whose vote an event is; that of an unverified one is in no event. */
const eventKey = ({ principal }: ApprovalEvent): string => (principal ? personKey(principal) : '');

/** The rule of a request, as it was when the request was made. */
export function ruleOf({ body: { rules } }: ApprovalRow): StoredRule | undefined {
  return matchedRule(rules);
}

/** The rule of a request with the people that it has at a moment, in milliseconds since 1970 by the store's clock. */
function ruleAt(row: ApprovalRow, moment: number): StoredRule | undefined {
  const rule = ruleOf(row);
  return rule && ruleAfter(rule, moment - Date.parse(row.body.timestamp));
}

/** Whether an approved request has the votes that its rule requires: an earlier version of the SDK does not know rules. */
export function hasQuorum(row: ApprovalRow): boolean {
  const { body } = row;
  const { rules, decision, digest } = body;
  if (otherRule(row, decision ?? {}) !== undefined) return false;
  if (rules?.at === undefined) return true;
  const rule = decision && ruleAt(row, Date.parse(decision.at));
  if (rule && decision.override) {
    const [decider] = decision.deciders ?? [];
    return decider !== undefined && whyNoOverride(rule, excludedBy(row), decider) === undefined;
  }
  if (decision?.standing !== undefined) {
    const [decider] = decision.deciders ?? [];
    return decider !== undefined && decision.digest === undefined && whyNoStandingRule(row, decider) === undefined;
  }
  return rule !== undefined && missingRoles(rule, votersFor(row, decision?.digest ?? digest)).length === 0;
}

/** Why a person may not allow later calls like that of a request; undefined if they may. */
export function whyNoStandingRule(row: ApprovalRow, principal: Principal): string | undefined {
  const rule = ruleOf(row);
  if (!rule) return 'No rule applies to the request.';
  return whyNoStanding(rule, excludedBy(row), principal);
}

/**
 * Whose approvals a waiting request lacks for the call that the last approval was for, or for the one that was made: with the
 * people that the rule had by its last event, or has `now`.
 */
export function missingApprovals(row: ApprovalRow, now = lastEventAt(row)): readonly RoleCount[] | undefined {
  const rule = row.status === 'waiting' ? ruleAt(row, now) : undefined;
  return rule && missingRoles(rule, votersFor(row, currentDigest(row)));
}

function lastEventAt({ body: { events, timestamp } }: ApprovalRow): number {
  return Date.parse(events.at(-1)?.at ?? timestamp);
}

/** The call that a request is about: as it was decided, else as the last approval would change it. */
export function currentDigest({ body: { votes = [], decision, digest } }: ApprovalRow): string {
  return decision?.digest ?? votes.findLast(({ approved }) => approved)?.digest ?? digest;
}

/** One person each, and nobody for the same other one, whatever is stored. Each was allowed to vote when they did. */
function votersFor(row: ApprovalRow, digest: string): readonly Principal[] {
  const voters: Principal[] = [];
  for (const { approved, digest: votedFor, principal, at } of row.body.votes ?? []) {
    const rule = ruleAt(row, Date.parse(at));
    if (!approved || votedFor !== digest || !rule) continue;
    if (whyNotAllowed(rule, excludedBy(row), principal) !== undefined) continue;
    if (!voters.some((other) => sharePerson(other, principal))) voters.push(principal);
  }
  return voters;
}

const excludedBy = ({ agentTag, body: { requester } }: ApprovalRow) => ({
  agentTag,
  ...(requester !== undefined && { requester }),
});

/** Why changed parameters cannot be decided under the rule of the request: they are for other people to decide. */
function otherRule(
  { body }: ApprovalRow,
  { modifiedParams }: Pick<DecisionVerdict, 'modifiedParams'>,
): string | undefined {
  const { rules, parameters } = body;
  if (!rules || modifiedParams === undefined) return undefined;
  const found = firstMatch(
    rules.list,
    effectiveParameters({ parameters, decision: { at: '', by: '', modifiedParams } }),
  );
  if ('problem' in found) return found.problem;
  if (found.at === undefined || found.at === rules.at) return undefined;
  return 'Another rule applies to the changed parameters. Reject the request, and let the agent make the call so.';
}

export function needsReason({ reason }: Pick<StoredRule, 'reason'>, approved: boolean): boolean {
  return reason === 'always' || reason === (approved ? 'approve' : 'reject');
}

function toVote(row: ApprovalRow, verdict: DecisionVerdict, now: number): StoredVote {
  const { body } = row;
  const { approved, by, principal, from, reason, modifiedParams, digest } = verdict;
  return {
    at: new Date(decidedAt(row, now)).toISOString(),
    by,
    principal,
    from,
    approved,
    digest: digest ?? body.digest,
    ...(modifiedParams !== undefined && { modifiedParams }),
    ...(reason !== undefined && { reason }),
  };
}
