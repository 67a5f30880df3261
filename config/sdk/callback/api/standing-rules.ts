import { parseDecision } from '../../../../core/approval/parse-decision.ts';
import type { Principal } from '../../../../core/approval/principal.ts';
import type { ApprovalService } from '../../../../core/approval/service.ts';
import {
  createStandingRule,
  listStandingRules,
  type NewStandingRule,
  revokeStandingRule,
  type StandingRule,
} from '../../../../core/approval/standing-rules.ts';
import { problemText, type Shape, shapeProblems } from '../../../../core/validate-shape.ts';
import { invalidQuery, refuseInput } from '../http-errors.ts';
import { parseMoment } from './query.ts';

// Standing rules for people with a token. Who may make one is decided where every other way decides it.

const BODY: Shape = {
  properties: { requestId: 'string', uses: 'number', until: 'string', atMost: { map: 'number' } },
  required: ['requestId', 'uses', 'until'],
};

export async function allStandingRules(service: ApprovalService): Promise<StandingRule[]> {
  const all: StandingRule[] = [];
  for await (const one of listStandingRules(service)) all.push(one);
  return all;
}

/** Throws an `HttpError`, or what `createStandingRule` throws. */
export async function allow(service: ApprovalService, token: string, body: Uint8Array): Promise<StandingRule> {
  const input = parseDecision(body);
  const problems = shapeProblems(input, BODY);
  if (problems.length > 0) throw invalidQuery(problems.map(problemText).join(' '));
  const { until, ...rest } = input as Omit<NewStandingRule, 'until'> & { readonly until: string };
  const end = parseMoment(until);
  if (!end) throw invalidQuery('until is not a date and time in ISO 8601.');
  return createStandingRule(service, { ...rest, until: end }, { token }).catch(refuseInput);
}

/** Throws an `HttpError`, or what `revokeStandingRule` throws. */
export function endStandingRule(service: ApprovalService, standingId: string, by: Principal): Promise<StandingRule> {
  return revokeStandingRule(service, standingId, by).catch(refuseInput);
}
