import { roleText } from '../display/role-text.ts';
import type { ToolParameters } from '../tool/parameters.ts';
import type { Tool } from '../tool/tool.ts';
import { isVerified, type Principal } from './principal.ts';

/*
 * Who may decide a request: a rule of `approvals.rules`. The first one that matches a call is stored with its request, with
 * the members of its roles, so that a later change of the configuration changes nothing for the request.
 */

/** A role with the number of people of that role. @experimental */
export interface RoleCount {
  readonly role: string;
  readonly count: number;
}

/** When a reason is required. @experimental */
export type ReasonRequired = 'approve' | 'reject' | 'always';

/** A rule of a request, for people. @experimental */
export interface ApprovalRule {
  /** The beginning of the digest of the rule: another text is another version. */
  readonly version: string;
  /** The approvals that are needed, each by another person. */
  readonly approve: readonly RoleCount[];
  /** The number of rejections that reject the request. */
  readonly deny: number;
  readonly not?: readonly string[];
  readonly reason?: ReasonRequired;
  /** Unverified people count, all of them together as one. */
  readonly unverified?: true;
  /** One person of this role may decide alone. */
  readonly override?: string;
  /** The role whose people may make a standing rule of an approved request. */
  readonly standing?: string;
  /** When channels are reminded of the request, in milliseconds after it was made. */
  readonly remind?: readonly number[];
  /** The roles whose members may decide too, `afterMs` after the request was made. */
  readonly escalate?: readonly { readonly role: string; readonly afterMs: number }[];
}

/** A rule as a request stores it. */
export interface StoredRule extends Omit<ApprovalRule, 'approve' | 'override' | 'standing' | 'escalate'> {
  readonly approve: readonly StoredRole[];
  readonly override?: Omit<StoredRole, 'count'>;
  readonly standing?: Omit<StoredRole, 'count'>;
  /** The earliest first. */
  readonly escalate?: readonly Escalation[];
  /** Absent: for every tool. */
  readonly tools?: readonly string[];
  readonly agents?: readonly string[];
  readonly where?: Conditions;
  /** The time to decide, in place of the agent's. */
  readonly timeoutMs?: number;
}

interface StoredRole extends RoleCount {
  /** `user:<id>` and `group:<name>`. */
  readonly members: readonly string[];
}

/** People who may decide too, in any role, once a request has waited so long. */
export interface Escalation extends Omit<StoredRole, 'count'> {
  readonly afterMs: number;
}

/** The rules that could apply to the tool and the agent of a request, and the first that matched its parameters. */
export interface StoredRules {
  readonly list: readonly StoredRule[];
  /** Index in the list; absent if the parameters match no rule. */
  readonly at?: number;
}

export type Scalar = string | number | boolean;

/** A comparison of a parameter. A value of another type is an error, never a rule that does not match. @experimental */
export interface Condition {
  readonly eq?: Scalar | undefined;
  readonly ne?: Scalar | undefined;
  readonly in?: readonly Scalar[] | undefined;
  readonly gt?: number | undefined;
  readonly gte?: number | undefined;
  readonly lt?: number | undefined;
  readonly lte?: number | undefined;
  /** Whether the call has the parameter. */
  readonly exists?: boolean | undefined;
}

type Conditions = Readonly<Record<string, Condition>>;

/** The rule that matched, if one did. */
export function matchedRule(rules: StoredRules | undefined): StoredRule | undefined {
  return rules?.at === undefined ? undefined : rules.list[rules.at];
}

/** The rules for a call, or why one of them cannot be applied to it. Undefined without a rule for its tool. */
export function rulesForCall(
  rules: readonly StoredRule[],
  {
    agentTag,
    tool,
    parameters,
  }: { readonly agentTag: string; readonly tool: Tool; readonly parameters: ToolParameters },
): StoredRules | { readonly problem: string } | undefined {
  const list: StoredRule[] = [];
  for (const rule of rules) {
    if (rule.tools && !rule.tools.includes(tool.tag)) continue;
    if (rule.agents && !rule.agents.includes(agentTag)) continue;
    const unknown = rule.tools && Object.keys(rule.where ?? {}).find((name) => !hasParameter(tool, name));
    if (unknown !== undefined) {
      return { problem: `The rule ${rule.version} compares "${unknown}", which the tool "${tool.tag}" does not have.` };
    }
    list.push(rule);
    // No later rule can be the first that matches.
    if (!rule.where) break;
  }
  if (list.length === 0) return undefined;
  const found = firstMatch(list, parameters);
  if ('problem' in found) return found;
  return { list, ...(found.at !== undefined && { at: found.at }) };
}

const COMPOSED = ['$ref', '$dynamicRef', 'allOf', 'anyOf', 'oneOf', 'if', 'patternProperties', 'dependentSchemas'];

function hasParameter({ schema }: Tool, name: string): boolean {
  // Such a schema may have parameters that it does not list.
  if (COMPOSED.some((keyword) => Object.hasOwn(schema, keyword))) return true;
  const { properties } = schema;
  const isListed = typeof properties === 'object' && properties !== null && Object.hasOwn(properties, name);
  return isListed || (schema.additionalProperties !== undefined && schema.additionalProperties !== false);
}

/** The index of the first rule that matches the parameters. */
export function firstMatch(
  list: readonly StoredRule[],
  parameters: ToolParameters,
): { readonly at: number | undefined } | { readonly problem: string } {
  for (const [at, { version, where = {} }] of list.entries()) {
    let matches = true;
    for (const [name, condition] of Object.entries(where)) {
      const value = Object.hasOwn(parameters, name) ? (parameters[name] ?? undefined) : undefined;
      const result = holds(condition, value);
      if (result === 'other type') {
        return { problem: `The rule ${version} compares "${name}" with a value of another type.` };
      }
      matches &&= result;
    }
    if (matches) return { at };
  }
  return { at: undefined };
}

/** Whether every comparison of a condition is true of a value; undefined is a parameter that is absent or null. */
export function holds(condition: Condition, value: unknown): boolean | 'other type' {
  let all = true;
  for (const [name, operand] of Object.entries(condition) as [keyof Condition, Scalar | readonly Scalar[]][]) {
    if (operand === undefined) continue;
    if (name === 'exists') {
      all &&= (value !== undefined) === operand;
    } else if (value === undefined) {
      all &&= name === 'ne';
    } else {
      const operands = Array.isArray(operand) ? (operand as readonly Scalar[]) : [operand as Scalar];
      if (operands.some((one) => typeof one !== typeof value)) return 'other type';
      all &&= COMPARE[name](value as never, operands as never);
    }
  }
  return all;
}

const COMPARE: Readonly<
  Record<Exclude<keyof Condition, 'exists'>, (value: never, operands: readonly never[]) => boolean>
> = {
  eq: (value, [operand]) => value === operand,
  ne: (value, [operand]) => value !== operand,
  in: (value, operands) => operands.includes(value),
  gt: (value: number, [operand]: readonly number[]) => value > (operand ?? Number.NaN),
  gte: (value: number, [operand]: readonly number[]) => value >= (operand ?? Number.NaN),
  lt: (value: number, [operand]: readonly number[]) => value < (operand ?? Number.NaN),
  lte: (value: number, [operand]: readonly number[]) => value <= (operand ?? Number.NaN),
};

/** A rule with the people that it has once a request has waited so long: escalation adds some, and removes none. */
export function ruleAfter(rule: StoredRule, waitedMs: number): StoredRule {
  const added = rule.escalate?.filter(({ afterMs }) => afterMs <= waitedMs).flatMap(({ members }) => members);
  if (!added?.length) return rule;
  return { ...rule, approve: rule.approve.map((role) => ({ ...role, members: [...role.members, ...added] })) };
}

/** The people of one request who never count. */
export interface Excluded {
  readonly agentTag: string;
  readonly requester?: string;
}

/** Why a person may not decide; undefined if they may. `rule`: by `ruleAfter`. */
export function whyNotAllowed(rule: StoredRule, excluded: Excluded, principal: Principal): string | undefined {
  if (!isVerified(principal) && !rule.unverified) return UNVERIFIED;
  const inPlaceOf = principal.for && whyExcluded(rule, excluded, authorityOf(principal));
  const why = whyExcluded(rule, excluded, principal) ?? inPlaceOf;
  if (why !== undefined) return why;
  if (rolesOf(rule, principal).length > 0) return undefined;
  const roles = rule.approve.map(({ role }) => role).join(', ');
  const later = rule.escalate?.map(({ role, afterMs }) => `, and ${role} ${durationText(afterMs)} after the request`);
  return `Its rule lets only ${roles} decide${later?.join('') ?? ''}.`;
}

/** Why a person may not decide alone, in place of the votes of the rule; undefined if they may. */
export function whyNoOverride(rule: StoredRule, excluded: Excluded, principal: Principal): string | undefined {
  if (!rule.override) return 'Its rule has no override.';
  return whyNotOf(rule.override, 'override it', rule, excluded, principal);
}

/** Why a person may not allow later calls like this one; undefined if they may. */
export function whyNoStanding(rule: StoredRule, excluded: Excluded, principal: Principal): string | undefined {
  if (!rule.standing) return 'Its rule has no standing rules.';
  return whyNotOf(rule.standing, 'allow later calls', rule, excluded, principal);
}

function whyNotOf(
  { role, members }: Omit<StoredRole, 'count'>,
  action: string,
  rule: StoredRule,
  excluded: Excluded,
  principal: Principal,
): string | undefined {
  if (!isVerified(principal)) return UNVERIFIED;
  const why = whyExcluded(rule, excluded, principal, action);
  if (why !== undefined) return why;
  return isListed(members, principal) ? undefined : `Its rule lets only ${role} ${action}.`;
}

/** Why a person whom nobody verified may not decide. */
export const UNVERIFIED = 'Its rule counts only people who were verified, and nobody verified who decides.';

/** Why a person never counts, whatever roles they have. `action`: what they may not do, other than decide. */
export function whyExcluded(
  rule: StoredRule | undefined,
  excluded: Excluded,
  principal: Principal,
  action?: string,
): string | undefined {
  const id = foldedId(principal.id);
  if (isAgentId(id) || id === foldedId(excluded.agentTag)) return `An agent cannot ${action ?? 'decide'}.`;
  if (excluded.requester !== undefined && id === foldedId(excluded.requester)) {
    return `The person who made the request cannot ${action ?? 'decide it'}.`;
  }
  return isExcluded(rule?.not, principal) ? 'Its rule excludes this person.' : undefined;
}

/** Whether an id says that it is an agent's, and no person's. */
export const isAgentId = (id: string): boolean => foldedId(id).startsWith('agent:');

/** The indexes of the roles that a person has, or the one in whose place they decide. Nobody knows those of an unverified one. */
function rolesOf({ approve }: StoredRule, principal: Principal): number[] {
  const authority = authorityOf(principal);
  return approve.flatMap(({ members }, at) => (!isVerified(principal) || isListed(members, authority) ? [at] : []));
}

/** The person in whose place somebody decides: they themselves, without a delegation. */
export function authorityOf(principal: Principal): Principal {
  return principal.for ? { ...principal.for, verifiedBy: principal.verifiedBy } : principal;
}

/** A principal with only the groups that a rule names: others would take room in every vote. */
export function withGroupsOf(
  { approve, not = [], override, standing, escalate = [] }: StoredRule,
  principal: Principal,
): Principal {
  const roles = [...approve, ...escalate, ...(override ? [override] : []), ...(standing ? [standing] : [])];
  const named = [...roles.flatMap(({ members }) => members), ...not].map(foldedId);
  const only = <T extends Pick<Principal, 'groups'>>(person: T): T => ({
    ...person,
    groups: person.groups.filter((group) => named.includes(foldedId(`group:${group}`))),
  });
  return only({ ...principal, ...(principal.for && { for: only(principal.for) }) });
}

/** Compares without regard to case: who is excluded must not come back with another spelling. */
function isExcluded(not: readonly string[] | undefined, { id, groups }: Principal): boolean {
  return [`user:${id}`, ...groups.map((group) => `group:${group}`)].some((name) => isNamed(not, name));
}

const isNamed = (not: readonly string[] = [], name: string): boolean => not.some((one) => isSamePerson(one, name));

/** Whether `not` leaves somebody of `user:<id>` and `group:<name>`. */
export function leavesSomebody(not: readonly string[] | undefined, members: readonly string[]): boolean {
  return members.some((member) => !isNamed(not, member));
}

/** Whether one person has a part in two votes, as who votes or in whose place: delegations may cross. */
export function sharePerson(one: Principal, other: Principal): boolean {
  const keys = [personKey(other), personKey(authorityOf(other))];
  return keys.includes(personKey(one)) || keys.includes(personKey(authorityOf(one)));
}

/** Whether a person is one of `user:<id>` and `group:<name>`. */
export function isListed(members: readonly string[], { id, groups }: Pick<Principal, 'id' | 'groups'>): boolean {
  return members.includes(`user:${id}`) || groups.some((group) => members.includes(`group:${group}`));
}

/**
 * Two principals with one key are one person. Ids that differ in case only are, or one person could
 * count twice. All unverified people are one.
 */
export function personKey(principal: Principal): string {
  return isVerified(principal) ? foldedId(principal.id) : '';
}

export const isSamePerson = (one: string, other: string): boolean => foldedId(one) === foldedId(other);

/** Upper case first, so that `ß` and `SS`, and both forms of a small sigma, are the same letters. */
const foldedId = (id: string): string => id.normalize('NFKC').toUpperCase().toLowerCase().normalize('NFKC');

/** The approvals that are missing if these people approve: each counts for one role, so that as many as possible count. */
export function missingRoles(rule: StoredRule, people: readonly Principal[]): RoleCount[] {
  return unfilled(
    rule,
    people.map((person) => rolesOf(rule, person)),
  );
}

/** A maximum matching of people to the places of the roles. */
function unfilled({ approve }: StoredRule, choices: readonly (readonly number[])[]): RoleCount[] {
  const placed = approve.map((): number[] => []);
  const place = (person: number, tried: Set<number>): boolean => {
    for (const role of choices[person] ?? []) {
      if (tried.has(role)) continue;
      tried.add(role);
      const inRole = placed[role] ?? [];
      if (inRole.length < (approve[role]?.count ?? 0)) {
        inRole.push(person);
        return true;
      }
      const moved = inRole.findIndex((other) => place(other, tried));
      if (moved < 0) continue;
      inRole[moved] = person;
      return true;
    }
    return false;
  };
  for (const person of choices.keys()) place(person, new Set());
  return approve.flatMap(({ role, count }, at) => {
    const left = count - (placed[at]?.length ?? 0);
    return left > 0 ? [{ role, count: left }] : [];
  });
}

/**
 * What is missing even if everybody decides whom the rule names. A group may have any number of members; people who are
 * named count once.
 */
export function unsatisfiable(rule: StoredRule, excluded?: Excluded): string | undefined {
  const none: Excluded = { agentTag: '' };
  const named = new Map<string, Principal>();
  for (const member of rule.approve.flatMap(({ members }) => members)) {
    if (!member.startsWith('user:')) continue;
    const person: Principal = { id: member.slice('user:'.length), groups: [], verifiedBy: 'token' };
    if (whyNotAllowed(rule, excluded ?? none, person) === undefined) named.set(personKey(person), person);
  }
  const people = [...named.values()];
  if (rule.unverified) people.push({ id: '', groups: [], verifiedBy: 'nobody' });
  const isOpen = (members: readonly string[]) =>
    members.some((member) => member.startsWith('group:') && !isNamed(rule.not, member));
  const open = rule.approve.flatMap(({ members }, at) => (isOpen(members) ? [at] : []));
  const choices = people.map((person) => rolesOf(rule, person));
  for (const at of open) choices.push(...Array.from({ length: rule.approve[at]?.count ?? 0 }, () => [at]));
  const missing = unfilled(rule, choices);
  if (missing.length > 0) return `No person is left for ${roleText(missing)}.`;
  if (open.length === 0 && people.length < rule.deny)
    return `${rule.deny} people must reject, and it names ${people.length}.`;
  return undefined;
}

const DURATION_UNITS: readonly (readonly [number, string])[] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'm'],
  [1_000, 's'],
];

/** `30m`, as a configuration has it. */
export function durationText(ms: number): string {
  const [size, unit] = DURATION_UNITS.find(([one]) => ms % one === 0) ?? [1, 'ms'];
  return `${ms / size}${unit}`;
}
