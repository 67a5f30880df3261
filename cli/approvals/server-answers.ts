import type { ApprovalDetails } from '../../config/sdk/approval-details.ts';
import type { SignalResult } from '../../core/approval/decide.ts';
import type { Delegation } from '../../core/approval/delegations.ts';
import type { ApprovalPage } from '../../core/approval/list-approvals.ts';
import type { Principal } from '../../core/approval/principal.ts';
import { APPROVAL_STATUSES, type ApprovalRecord, isRequestId } from '../../core/approval/request.ts';
import type { StandingRule } from '../../core/approval/standing-rules.ts';
import { isPlainObject } from '../../core/json.ts';
import { addressProblem } from '../../core/url.ts';
import type { OidcLogin } from '../people/oidc-login.ts';

/*
 * What a server answers is shown on a terminal, and commands to copy are made of it. A server that is not what it was taken
 * for must not put anything else there: texts of machines have no space, quote or control character. What people and models
 * have written is escaped where it is shown.
 */

/** Whom a server knows the bearer of a token as. */
export interface ServerIdentity {
  readonly product: string;
  readonly env: string;
  readonly principal: Principal;
  /** ISO 8601, UTC. Absent if the server does not know it. */
  readonly expiresAt?: string;
}

type Fields = Readonly<Record<string, unknown>>;

const MACHINE_TEXTS = new Set(
  'requestId status cause run timestamp timeout decidedAt delegationId standingId createdAt until revokedAt validUntil unattendedSince expiresAt standing digest reviewToken toolDigest type at prev was state'.split(
    ' ',
  ),
);
/** These have what people and models have written, under names of their own. */
const FREE = new Set(['parameters', 'modifiedParams', 'outcome', 'definition', 'rule']);

export function isIdentity(answer: Fields): answer is Fields & ServerIdentity {
  const { product, env, principal } = answer;
  return isText(product) && isText(env) && isPrincipal(principal) && isPlain(answer);
}

export function isLogin(answer: Fields): answer is Fields & { readonly oidc?: OidcLogin } {
  const { oidc } = answer;
  if (oidc === undefined) return true;
  if (!isPlainObject(oidc)) return false;
  const { issuer, clientId, scopes = [], algorithms = [] } = oidc;
  return (
    isText(issuer) &&
    addressProblem(issuer) === undefined &&
    isText(clientId) &&
    [scopes, algorithms].every((list) => isList(list, isText))
  );
}

export function isPage(answer: Fields): answer is Fields & ApprovalPage {
  const { records, cursor = '-' } = answer;
  return isList(records, isRecord) && isText(cursor) && /^[\x21-\x7e]+$/.test(cursor) && isPlain(answer);
}

export function isDetails(answer: Fields): answer is Fields & { readonly request: ApprovalDetails } {
  const { request } = answer;
  return isRecord(request) && isList((request as unknown as Fields).deliveries, isPlainObject) && isPlain(answer);
}

export function isResult(answer: Fields): answer is Fields & SignalResult {
  const { requestId, status, decidedAt, votes } = answer;
  return isId(requestId) && isStatus(status) && isMoment(decidedAt) && isVotes(votes) && isPlain(answer);
}

export function isDelegation(answer: Fields): answer is Fields & Delegation {
  const { delegationId, from, groups, to, createdAt, until, revokedAt = until } = answer;
  return (
    [delegationId, from, to].every(isText) &&
    isList(groups, isText) &&
    [createdAt, until, revokedAt].every(isMoment) &&
    isPlain(answer)
  );
}

export function isDelegations(answer: Fields): answer is Fields & { readonly delegations: readonly Delegation[] } {
  return isList(answer.delegations, (one) => isPlainObject(one) && isDelegation(one));
}

export function isStandingRule(answer: Fields): answer is Fields & StandingRule {
  const { standingId, requestId, agentTag, tool, by, parameters, atMost, uses, used } = answer;
  const { createdAt, until, revokedAt = until } = answer;
  return (
    [standingId, requestId, agentTag, tool, by].every(isText) &&
    isPlainObject(parameters) &&
    isPlainObject(atMost) &&
    [uses, used, ...Object.values(atMost)].every((one) => typeof one === 'number') &&
    [createdAt, until, revokedAt].every(isMoment) &&
    isPlain(answer)
  );
}

export function isStandingRules(
  answer: Fields,
): answer is Fields & { readonly standingRules: readonly StandingRule[] } {
  return isList(answer.standingRules, (one) => isPlainObject(one) && isStandingRule(one));
}

function isRecord(value: unknown): value is ApprovalRecord {
  if (!isPlainObject(value)) return false;
  const { requestId, status, parameters, events, timestamp, timeout, votes, run, rule } = value;
  const texts = [value.executionId, value.agentTag, value.tool, value.reason, run];
  return (
    isId(requestId) &&
    isStatus(status) &&
    texts.every(isText) &&
    isMoment(timestamp) &&
    isMoment(timeout) &&
    isPlainObject(parameters) &&
    isList(events, isPlainObject) &&
    isVotes(votes) &&
    (rule === undefined || isRule(rule))
  );
}

function isRule(value: unknown): boolean {
  if (!isPlainObject(value)) return false;
  const { escalate = [] } = value;
  return isList(escalate, (one) => isPlainObject(one) && isText(one.role) && Number.isSafeInteger(one.afterMs));
}

const isText = (value: unknown): value is string => typeof value === 'string';
const isId = (value: unknown): boolean => isText(value) && isRequestId(value);
const isStatus = (value: unknown): boolean => APPROVAL_STATUSES.some((one) => one === value);
const isMoment = (value: unknown): boolean => isText(value) && !Number.isNaN(Date.parse(value));
const isList = (value: unknown, isItem: (item: unknown) => boolean): boolean =>
  Array.isArray(value) && value.every(isItem);

const isVotes = (value: unknown): boolean =>
  value === undefined || isList(value, (vote) => isPlainObject(vote) && isText(vote.by) && isPrincipal(vote.principal));

function isPrincipal(value: unknown): boolean {
  return isPlainObject(value) && isText(value.id) && isList(value.groups, isText);
}

/** Whether every text of a machine is one, at any depth. */
function isPlain(value: unknown): boolean {
  if (Array.isArray(value)) return value.every(isPlain);
  if (!isPlainObject(value)) return true;
  return Object.entries(value).every(([name, member]) => {
    if (FREE.has(name)) return true;
    if (MACHINE_TEXTS.has(name) && isText(member)) return /^[\w.:+/=~,|-]*$/.test(member);
    return isPlain(member);
  });
}
