import { v7 as uuid } from 'uuid';
import { SvcError } from '../errors.ts';
import { canonicalJson, jsonDigest } from '../json.ts';
import { allRows } from '../records.ts';
import type { ToolParameters } from '../tool/parameters.ts';
import { type Problem, problemText, type Shape, shapeProblems } from '../validate-shape.ts';
import { ruleOf, whyNoStandingRule } from './apply-decision.ts';
import { effectiveParameters } from './approved-parameters.ts';
import { PROCESS_NAME } from './call.ts';
import { deciderOf, type SignalOptions } from './decide.ts';
import { unknownRequest } from './decision-errors.ts';
import { whyRefused } from './policy.ts';
import { isVerified, type Principal } from './principal.ts';
import { hasSensitiveParameters } from './public-view.ts';
import { revokeRow } from './revoke-row.ts';
import { isSamePerson } from './rule.ts';
import type { ApprovalRow, StandingRow } from './schema.ts';
import type { ApprovalService } from './service.ts';
import { withDecision } from './state.ts';
import { untilProblems } from './valid-until.ts';

/*
 * A standing rule approves later calls like one that people approved: of the same agent, tool, definition of the tool and
 * rule, with the same parameters, a number of times. Each use is counted with a compare-and-set before the request is stored:
 * a crash may lose one, and never adds one.
 */

const MAX_USES = 10_000;
const STANDING_ID = /^std_[0-9a-f-]{36}$/;

/** For `Approvals.allow`. @experimental */
export interface NewStandingRule {
  /** A request that was approved, under a rule with `standing`. */
  readonly requestId: string;
  /** When it ends, by the store's clock: at most a year from now. */
  readonly until: Date;
  /** How many calls it approves, from 1 to 10,000. */
  readonly uses: number;
  /**
   * Parameters that may also be lower, from 0 to this number, which is at most that of the request. Every other parameter is
   * the same as in the request.
   */
  readonly atMost?: { readonly [parameter: string]: number } | undefined;
}

/** Calls that are approved because one like them was. @experimental */
export interface StandingRule {
  readonly standingId: string;
  readonly requestId: string;
  readonly agentTag: string;
  readonly tool: string;
  readonly parameters: ToolParameters;
  readonly atMost: { readonly [parameter: string]: number };
  /** The id of the person who made it. */
  readonly by: string;
  readonly uses: number;
  readonly used: number;
  /** ISO 8601, UTC. */
  readonly createdAt: string;
  /** ISO 8601, UTC. */
  readonly until: string;
  /** ISO 8601, UTC. */
  readonly revokedAt?: string;
}

const SHAPE: Shape = {
  properties: { requestId: 'string', until: 'any', uses: 'number', atMost: { map: 'number' } },
  required: ['requestId', 'until', 'uses'],
};

/**
 * Lets calls like one that was approved run without a decision of their own. Throws `value_invalid`, `token_invalid`,
 * `approval_unknown`, `decision_invalid` and `decision_refused`.
 */
export async function createStandingRule(
  service: ApprovalService,
  input: NewStandingRule,
  options: Pick<SignalOptions, 'token' | 'principal'>,
): Promise<StandingRule> {
  const now = await service.clock.readNow();
  const problems = inputProblems(input, now);
  if (problems.length > 0) throw invalid('value_invalid', problems.map(problemText).join(' '));
  const { requestId, until, uses, atMost = {} } = input;
  const { principal } = await deciderOf(service, options);
  const row = (await service.read(requestId))?.record;
  if (!row) throw unknownRequest({ requestId });
  const { agentTag, status, body } = row;
  if (status !== 'approved') throw invalid('decision_invalid', `The request is ${status}, and was not approved.`);
  const rule = ruleOf(row);
  const why = isVerified(principal) ? whyNoStandingRule(row, principal) : 'Nobody verified who allows it.';
  if (!rule || why !== undefined) throw invalid('decision_refused', why ?? 'No rule applies to the request.');
  if (hasSensitiveParameters(body)) throw invalid('decision_refused', 'The request has sensitive parameters.');
  const parameters = { ...effectiveParameters(body) };
  const tooWide = rangeProblems(atMost, parameters);
  if (tooWide.length > 0) throw invalid('value_invalid', tooWide.map(problemText).join(' '));
  const standing: StandingRow = {
    standingId: `std_${uuid()}`,
    state: 'active',
    call: keyOf(row, rule.version),
    createdAt: new Date(now),
    expiresAt: until,
    body: { requestId, agentTag, tool: body.tool, parameters, atMost, principal, uses, used: 0 },
  };
  await service.standingRules.insert(standing);
  return toStandingRule(standing);
}

function inputProblems(input: NewStandingRule, now: number): Problem[] {
  const problems = shapeProblems(input, SHAPE);
  if (problems.length > 0) return problems;
  const { until, uses } = input;
  problems.push(...untilProblems(until, now));
  if (!Number.isInteger(uses) || uses < 1 || uses > MAX_USES) {
    problems.push({ path: ['uses'], text: `is not a whole number from 1 to ${MAX_USES}` });
  }
  return problems;
}

function rangeProblems(atMost: NonNullable<NewStandingRule['atMost']>, parameters: ToolParameters): Problem[] {
  return Object.entries(atMost).flatMap(([name, most]): Problem[] => {
    const value = Object.hasOwn(parameters, name) ? parameters[name] : undefined;
    if (typeof value !== 'number') return [{ path: ['atMost', name], text: 'is not a number in the request' }];
    if (most >= 0 && most <= value) return [];
    return [{ path: ['atMost', name], text: `is not a number from 0 to ${value}, that of the request` }];
  });
}

/** The row of a new request, approved if a standing rule allows its call. */
export async function withStandingRule(service: ApprovalService, row: ApprovalRow): Promise<ApprovalRow> {
  const rule = ruleOf(row);
  if (row.status !== 'waiting' || !rule?.standing) return row;
  const query = { equals: { state: 'active' as const, call: keyOf(row, rule.version) }, limit: 100 };
  for await (const { record } of allRows(service.standingRules, 'byCall', query)) {
    if (!isWithin(row.body.parameters, record.body)) continue;
    const { principal } = record.body;
    if (whyNoStandingRule(row, principal) !== undefined) continue;
    const decision = { approved: true, actor: principal.id, principal, standing: record.standingId };
    if ((await whyRefused(service.hooks, row, decision)) !== undefined) continue;
    const now = await use(service, record.standingId);
    if (now === undefined) continue;
    const verdict = { approved: true, by: principal.id, principal, from: PROCESS_NAME, standing: record.standingId };
    return withDecision(row, verdict, now);
  }
  return row;
}

/** Counts a use. Returns when, or undefined if all were used. */
async function use({ standingRules, clock }: ApprovalService, standingId: string): Promise<number | undefined> {
  for (;;) {
    const found = await standingRules.get(standingId);
    const now = await clock.readNow();
    if (found?.record.state !== 'active') return undefined;
    const { record, version } = found;
    const { used, uses } = record.body;
    const isOver = now >= record.expiresAt.getTime() || used >= uses;
    const next: StandingRow = {
      ...record,
      state: isOver || used + 1 >= uses ? 'ended' : 'active',
      body: { ...record.body, used: isOver ? used : used + 1 },
    };
    if ((await standingRules.replace(standingId, version, next)) === 'replaced') return isOver ? undefined : now;
  }
}

/** Every standing rule, oldest first; those that have ended too. */
export async function* listStandingRules({ standingRules }: ApprovalService): AsyncGenerator<StandingRule> {
  for (const state of ['active', 'ended', 'revoked'] as const) {
    for await (const { record } of allRows(standingRules, 'byState', { equals: { state }, limit: 500 })) {
      yield toStandingRule(record);
    }
  }
}

/**
 * Ends a standing rule. Revoking it again changes nothing. `by`, if given, has made it, or may make it. Throws
 * `standing_unknown` and `decision_refused`.
 */
export async function revokeStandingRule(
  service: ApprovalService,
  standingId: string,
  by?: Principal,
): Promise<StandingRule> {
  const { standingRules, clock } = service;
  const isId = STANDING_ID.test(standingId);
  const found = isId && by && (await standingRules.get(standingId));
  if (found) await assertMayRevoke(service, found.record, by);
  const revoked = isId && (await revokeRow(standingRules, clock, standingId));
  if (revoked) return toStandingRule(revoked);
  throw new SvcError('standing_unknown', 'No standing rule has this id.', {
    state: 'Nothing was revoked.',
    next: ['svc approvals standing list    lists the standing rules'],
  });
}

async function assertMayRevoke(service: ApprovalService, { body }: StandingRow, by: Principal): Promise<void> {
  if (isSamePerson(body.principal.id, by.id)) return;
  const row = (await service.read(body.requestId))?.record;
  const why = row ? whyNoStandingRule(row, by) : 'Its request was removed: only the person who made it may revoke it.';
  if (why === undefined) return;
  throw new SvcError('decision_refused', 'The standing rule was not revoked.', {
    why,
    state: 'It approves such calls, as before.',
  });
}

/** What must be the same for a standing rule to apply, other than the parameters. */
function keyOf({ agentTag, body: { tool, toolDigest } }: ApprovalRow, ruleVersion: string): string {
  return jsonDigest([agentTag, tool, toolDigest, ruleVersion]);
}

function isWithin(parameters: ToolParameters, { parameters: allowed, atMost }: StandingRow['body']): boolean {
  const names = new Set([...Object.keys(parameters), ...Object.keys(allowed)]);
  return [...names].every((name) => {
    if (!Object.hasOwn(parameters, name) || !Object.hasOwn(allowed, name)) return false;
    const value = parameters[name];
    const most = Object.hasOwn(atMost, name) ? atMost[name] : undefined;
    if (most !== undefined) return typeof value === 'number' && value >= 0 && value <= most;
    return canonicalJson(value) === canonicalJson(allowed[name]);
  });
}

function toStandingRule({ standingId, createdAt, expiresAt, body }: StandingRow): StandingRule {
  const { requestId, agentTag, tool, parameters, atMost, principal, uses, used, revokedAt } = body;
  return {
    standingId,
    requestId,
    agentTag,
    tool,
    parameters,
    atMost,
    by: principal.id,
    uses,
    used,
    createdAt: createdAt.toISOString(),
    until: expiresAt.toISOString(),
    ...(revokedAt !== undefined && { revokedAt }),
  };
}

function invalid(code: 'value_invalid' | 'decision_invalid' | 'decision_refused', why: string): SvcError {
  return new SvcError(code, 'The standing rule cannot be created.', {
    why,
    state: 'Later calls need a decision, as before.',
  });
}
