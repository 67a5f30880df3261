import { type Path, type Problem, type Shape, shapeProblems } from '../validate-shape.ts';

/**
 * What proves who a principal is: a token of `svc people token create`, the header of `approvals.proxy`, an ID token of
 * `approvals.oidc`, or the program that signals the decision. `nobody`: the id is what the caller claims.
 * @experimental
 */
export type Verification = 'token' | 'proxy' | 'oidc' | 'signal' | 'nobody';

/** Who decides. @experimental */
export interface Principal {
  readonly id: string;
  readonly groups: readonly string[];
  readonly verifiedBy: Verification;
  /** The person in whose place they decide, who has delegated that to them. */
  readonly for?: { readonly id: string; readonly groups: readonly string[] };
}

/** A person whom the program has authenticated itself, for example with the login of its own endpoint. @experimental */
export interface SignalPrincipal {
  /** The same text for the same person on every way to decide, such as an address. */
  readonly id: string;
  readonly groups?: readonly string[] | undefined;
}

const MAX_ID_LENGTH = 320;
const MAX_GROUPS = 200;
const MAX_GROUP_LENGTH = 200;

const PRINCIPAL: Shape = { properties: { id: 'string', groups: { list: 'string' } }, required: ['id'] };

/** What is wrong with a principal that a program or a command passes. Values are not quoted. */
export function principalProblems(value: unknown, path: Path = ['principal']): Problem[] {
  const problems = shapeProblems(value, PRINCIPAL, path);
  if (problems.length > 0) return problems;
  const { id, groups = [] } = value as SignalPrincipal;
  if (!isName(id, MAX_ID_LENGTH)) {
    problems.push({ path: [...path, 'id'], text: `is not a printable text of 1 to ${MAX_ID_LENGTH} characters` });
  }
  if (groups.length > MAX_GROUPS) {
    problems.push({ path: [...path, 'groups'], text: `has more than ${MAX_GROUPS} groups` });
  }
  for (const [index, group] of groups.entries()) {
    if (isName(group, MAX_GROUP_LENGTH)) continue;
    const text = `is not a printable text of 1 to ${MAX_GROUP_LENGTH} characters`;
    problems.push({ path: [...path, 'groups', index], text });
  }
  return problems;
}

/** No control or other invisible character, no space at an end: two ids that look the same are the same. */
function isName(text: string, maxLength: number): boolean {
  return text !== '' && text.length <= maxLength && text.trim() === text && !/[\p{C}\p{Zl}\p{Zp}]/u.test(text);
}

/** A principal with valid id and groups, as it is stored. */
export function createPrincipal({ id, groups = [] }: SignalPrincipal, verifiedBy: Verification): Principal {
  return { id, groups: [...new Set(groups)], verifiedBy };
}

/** A principal whom nobody has verified. */
export function unverifiedPrincipal(actor: string): Principal {
  return { id: actor, groups: [], verifiedBy: 'nobody' };
}

/** Whether a principal counts as a person: its id is more than a claim. */
export const isVerified = ({ verifiedBy }: Principal): boolean => verifiedBy !== 'nobody';
