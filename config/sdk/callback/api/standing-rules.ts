import type { Principal } from '../../../../core/approval/principal.ts';
import type { ApprovalService } from '../../../../core/approval/service.ts';
import {
  createStandingRule,
  listStandingRules,
  type NewStandingRule,
  revokeStandingRule,
  type StandingRule,
} from '../../../../core/approval/standing-rules.ts';
import type { Shape } from '../../../../core/validate-shape.ts';
import { refuseInput } from '../http-errors.ts';
import { readInput, readUntil } from './query.ts';

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
  const { until, ...rest } = readInput<Omit<NewStandingRule, 'until'> & { readonly until: string }>(body, BODY);
  return createStandingRule(service, { ...rest, until: readUntil(until) }, { token }).catch(refuseInput);
}

/** Throws an `HttpError`, or what `revokeStandingRule` throws. */
export function endStandingRule(service: ApprovalService, standingId: string, by: Principal): Promise<StandingRule> {
  return revokeStandingRule(service, standingId, by).catch(refuseInput);
}
