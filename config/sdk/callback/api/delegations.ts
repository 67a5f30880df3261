import type { Delegation } from '../../../../core/approval/delegations.ts';
import { isPersonToken } from '../../../../core/approval/person-tokens.ts';
import type { Principal } from '../../../../core/approval/principal.ts';
import { isSamePerson } from '../../../../core/approval/rule.ts';
import type { ApprovalService } from '../../../../core/approval/service.ts';
import type { Shape } from '../../../../core/validate-shape.ts';
import { invalidQuery, refuseInput } from '../http-errors.ts';
import { readInput, readUntil } from './query.ts';

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
  const { to, until } = readInput<{ readonly to: string; readonly until: string }>(body, BODY);
  // The delegation ends with the token, and an ID token is valid for minutes.
  if (!isPersonToken(token)) throw invalidQuery('Only a token of svc people token create can delegate.');
  return delegations.create({ token, to, until: readUntil(until) }).catch(refuseInput);
}

/** Throws an `HttpError`. */
export function endDelegation(
  { delegations }: ApprovalService,
  delegationId: string,
  by: Principal,
): Promise<Delegation> {
  return delegations.revoke(delegationId, by).catch(refuseInput);
}
