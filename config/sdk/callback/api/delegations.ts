import type { Delegation } from '../../../../core/approval/delegations.ts';
import { parseDecision } from '../../../../core/approval/parse-decision.ts';
import { isPersonToken } from '../../../../core/approval/person-tokens.ts';
import type { Principal } from '../../../../core/approval/principal.ts';
import { isSamePerson } from '../../../../core/approval/rule.ts';
import type { ApprovalService } from '../../../../core/approval/service.ts';
import { problemText, type Shape, shapeProblems } from '../../../../core/validate-shape.ts';
import { invalidQuery, refuseInput } from '../http-errors.ts';
import { parseMoment } from './query.ts';

// Who decides in whose place, for the person who delegates: nobody sees or ends what others have made.

const BODY: Shape = { properties: { to: 'string', until: 'string' }, required: ['to', 'until'] };

/** Those that a person has made, and those that are to them. */
export async function ownDelegations({ delegations }: ApprovalService, { id }: Principal): Promise<Delegation[]> {
  const own: Delegation[] = [];
  for await (const one of delegations.list()) {
    if (isSamePerson(one.from, id) || isSamePerson(one.to, id)) own.push(one);
  }
  return own;
}

/** Throws an `HttpError`. */
export async function delegate({ delegations }: ApprovalService, token: string, body: Uint8Array): Promise<Delegation> {
  const input = parseDecision(body);
  const problems = shapeProblems(input, BODY);
  if (problems.length > 0) throw invalidQuery(problems.map(problemText).join(' '));
  // The delegation ends with the token, and an ID token is valid for minutes.
  if (!isPersonToken(token)) throw invalidQuery('Only a token of svc people token create can delegate.');
  const { to, until } = input as { readonly to: string; readonly until: string };
  const end = parseMoment(until);
  if (!end) throw invalidQuery('until is not a date and time in ISO 8601.');
  return delegations.create({ token, to, until: end }).catch(refuseInput);
}

/** Throws an `HttpError`. */
export function endDelegation(
  { delegations }: ApprovalService,
  delegationId: string,
  by: Principal,
): Promise<Delegation> {
  return delegations.revoke(delegationId, by).catch(refuseInput);
}
