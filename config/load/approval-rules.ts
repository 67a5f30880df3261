import { createHash } from 'node:crypto';
import { principalProblems } from '../../core/approval/principal.ts';
import {
  type Condition,
  type Escalation,
  leavesSomebody,
  ruleAfter,
  type Scalar,
  type StoredRule,
  unsatisfiable,
} from '../../core/approval/rule.ts';
import { canonicalJson } from '../../core/json.ts';
import { nearest } from '../../core/nearest.ts';
import { LONGEST_WAIT_MS } from '../../core/tool/longest-wait.ts';
import { type Path, type Problem, type Shape, shapeProblems } from '../../core/validate-shape.ts';
import type { ApprovalRuleConfig, ApprovalsConfig } from '../define.ts';
import { matchesAll, neverHolds } from './rule-reach.ts';

const SCALAR: Shape = { either: ['string', { either: ['number', 'boolean'] }] };
const CONDITION: Shape = {
  properties: {
    eq: SCALAR,
    ne: SCALAR,
    in: { list: SCALAR },
    gt: 'number',
    gte: 'number',
    lt: 'number',
    lte: 'number',
    exists: 'boolean',
  },
};
const NAMES: Shape = { either: ['string', { list: 'string' }] };
const ROLES: Shape = { map: { list: 'string' } };
const RULES: Shape = {
  list: {
    properties: {
      match: {
        properties: { tool: NAMES, agent: NAMES, where: { map: { either: [SCALAR, CONDITION] } } },
      },
      approve: { list: { properties: { role: 'string', count: 'number' }, required: ['role'] } },
      deny: 'number',
      not: { list: 'string' },
      reason: { oneOf: ['approve', 'reject', 'always'] },
      unverified: 'boolean',
      expires: 'string',
      override: 'string',
      standing: 'string',
      remind: NAMES,
      escalate: { list: { properties: { after: 'string', to: 'string' }, required: ['after', 'to'] } },
    },
    required: ['approve'],
  },
};

const MAX_COUNT = 50;
/** Each is an event in the row of its request. */
const MAX_NOTICES = 20;
const VERSION_LENGTH = 12;
export const NOT_A_DURATION = 'is not a duration from 1s to 52w, such as 30m, 4h or 2d';
const MIN_TIMEOUT_MS = 1_000;
const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

type RulesConfig = { readonly [Key in 'roles' | 'rules']?: ApprovalsConfig[Key] | undefined };

interface CompiledRules {
  readonly rules: readonly StoredRule[];
  readonly problems: readonly Problem[];
}

/** The rules of a configuration as requests store them, and everything that is wrong with them. */
export function compileRules({ roles = {}, rules = [] }: RulesConfig): CompiledRules {
  const problems = [...shapeProblems(roles, ROLES, ['roles']), ...shapeProblems(rules, RULES, ['rules'])];
  if (problems.length > 0) return { rules: [], problems };
  for (const [role, members] of Object.entries(roles)) {
    if (members.length === 0) problems.push({ path: ['roles', role], text: 'has no members' });
    problems.push(...memberProblems(members, ['roles', role]));
  }
  const compiled = rules.map((rule, index) => compileRule(rule, roles, ['rules', index], problems));
  if (problems.length > 0) return { rules: [], problems };
  const versioned = compiled.map((rule): StoredRule => ({ version: versionOf(rule), ...rule }));
  for (const [index, rule] of versioned.entries()) {
    const why = unsatisfiable(ruleAfter(rule, rule.timeoutMs ?? Number.POSITIVE_INFINITY));
    if (why !== undefined)
      problems.push({ path: ['rules', index], text: `can never be satisfied. ${why.replace(/\.$/, '')}` });
    const before = versioned.slice(0, index).findIndex((one) => matchesAll(one, rule));
    if (before >= 0)
      problems.push({
        path: ['rules', index],
        text: `never applies: rules[${before}] matches every call that it matches`,
      });
  }
  return { rules: problems.length > 0 ? [] : versioned, problems };
}

/** What is wrong with a role that a setting other than a rule names. */
export function roleProblems(roles: ApprovalsConfig['roles'], role: string): string[] {
  const { problems } = compileRules({ roles, rules: [{ approve: [{ role }] }] });
  return problems.filter(({ path }) => path[0] === 'rules').map(({ text }) => text);
}

function versionOf(rule: Omit<StoredRule, 'version'>): string {
  return createHash('sha256').update(canonicalJson(rule)).digest('hex').slice(0, VERSION_LENGTH);
}

function compileRule(
  config: ApprovalRuleConfig,
  roles: Readonly<Record<string, readonly string[]>>,
  path: Path,
  problems: Problem[],
): Omit<StoredRule, 'version'> {
  const { match = {}, approve, deny = 1, not = [], reason, unverified, expires, override, standing } = config;
  const { remind = [], escalate = [] } = config;
  const add = (key: Path, text: string) => problems.push({ path: [...path, ...key], text });
  if (approve.length === 0) add(['approve'], 'is empty');
  const roleAt = (role: string, key: Path) => {
    const members = Object.hasOwn(roles, role) ? [...(roles[role] ?? [])] : undefined;
    const near = nearest(role, Object.keys(roles));
    if (!members) add(key, `is not a role; ${near ? `did you mean "${near}"?` : 'add it to approvals.roles'}`);
    else if (members.length > 0 && !leavesSomebody(not, members)) add(key, 'has only people that `not` excludes');
    return { role, members: members ?? [] };
  };
  const approvals = approve.map(({ role, count = 1 }, index) => ({
    ...roleAt(role, ['approve', index, 'role']),
    count,
  }));
  for (const [index, { role, count = 1 }] of approve.entries()) {
    if (approve.findIndex((one) => one.role === role) < index) add(['approve', index, 'role'], 'occurs twice');
    if (!isCount(count)) add(['approve', index, 'count'], `is not a whole number from 1 to ${MAX_COUNT}`);
  }
  if (!isCount(deny)) add(['deny'], `is not a whole number from 1 to ${MAX_COUNT}`);
  problems.push(
    ...memberProblems(
      not.filter((one) => one !== 'requester'),
      [...path, 'not'],
      ' or requester',
    ),
  );
  const tools = namesOf(match.tool);
  const agents = namesOf(match.agent);
  for (const [key, names] of Object.entries({ tool: tools, agent: agents })) {
    if (names?.length === 0 || names?.includes('')) add(['match', key], 'is empty');
  }
  const where = match.where && compileWhere(match.where, [...path, 'match', 'where'], problems);
  const timeoutMs = expires === undefined ? undefined : parseDuration(expires);
  if (expires !== undefined && timeoutMs === undefined) add(['expires'], NOT_A_DURATION);
  const delayOf = (text: string, key: Path): number => {
    const ms = parseDuration(text);
    if (ms === undefined) add(key, NOT_A_DURATION);
    else if (timeoutMs !== undefined && ms >= timeoutMs) add(key, 'is not before the request expires');
    return ms ?? 0;
  };
  const reminders = (namesOf(remind) ?? []).map((text, index) => delayOf(text, ['remind', index]));
  const escalations = escalate.map(({ after, to }, index): Escalation => {
    const path = ['escalate', index, 'to'];
    const { members } = roleAt(to, path);
    const isAdded = (member: string) => approvals.some((role) => !role.members.includes(member));
    if (escalate.findIndex((one) => one.to === to) < index) add(path, 'occurs twice');
    else if (members.length > 0 && !members.some(isAdded)) add(path, 'adds nobody');
    return { role: to, members, afterMs: delayOf(after, ['escalate', index, 'after']) };
  });
  for (const [key, list] of Object.entries({ remind: reminders, escalate: escalations })) {
    if (list.length > MAX_NOTICES) add([key], `has more than ${MAX_NOTICES}`);
    if (list.length > 0 && expires === undefined) add([key], 'needs expires, a time after all of these');
  }
  return {
    approve: approvals,
    deny,
    ...(tools && { tools }),
    ...(agents && { agents }),
    ...(where && { where }),
    ...(not.length > 0 && { not: [...not] }),
    ...(reason !== undefined && { reason }),
    ...(unverified === true && { unverified }),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(override !== undefined && { override: roleAt(override, ['override']) }),
    ...(standing !== undefined && { standing: roleAt(standing, ['standing']) }),
    ...(reminders.length > 0 && { remind: [...new Set(reminders)].sort((one, other) => one - other) }),
    ...(escalations.length > 0 && { escalate: escalations.sort((one, other) => one.afterMs - other.afterMs) }),
  };
}

function memberProblems(members: readonly string[], path: Path, or = ''): Problem[] {
  return [...members.entries()]
    .filter(([, member]) => !isMember(member))
    .map(([index]) => ({ path: [...path, index], text: `is not user:<id> or group:<name>${or}` }));
}

/** Whether a principal can have this id or group. */
function isMember(member: string): boolean {
  const [, kind, name = ''] = /^(user|group):(.*)$/su.exec(member) ?? [];
  if (kind === undefined) return false;
  const principal = kind === 'user' ? { id: name } : { id: 'anybody', groups: [name] };
  return principalProblems(principal).length === 0;
}

function compileWhere(
  where: NonNullable<NonNullable<ApprovalRuleConfig['match']>['where']>,
  path: Path,
  problems: Problem[],
): Readonly<Record<string, Condition>> | undefined {
  const conditions = Object.entries(where).map(([name, value]): [string, Condition] => {
    const condition: Condition = typeof value === 'object' ? value : { eq: value };
    const given = Object.entries(condition).filter(([, operand]) => operand !== undefined);
    const known = problems.length;
    if (given.length === 0) problems.push({ path: [...path, name], text: 'compares with nothing' });
    for (const [key, operand] of given) {
      const operands = (Array.isArray(operand) ? operand : [operand]) as readonly Scalar[];
      if (operands.length === 0) problems.push({ path: [...path, name, key], text: 'is empty' });
      if (operands.some((one) => typeof one === 'number' && !Number.isFinite(one)))
        problems.push({ path: [...path, name, key], text: 'is not a finite number' });
    }
    if (problems.length === known && neverHolds(condition))
      problems.push({ path: [...path, name], text: 'is true of no value' });
    return [name, Object.fromEntries(given)];
  });
  if (conditions.length === 0) problems.push({ path, text: 'is empty' });
  return Object.fromEntries(conditions);
}

const isCount = (count: number): boolean => Number.isInteger(count) && count >= 1 && count <= MAX_COUNT;

function namesOf(names: string | readonly string[] | undefined): readonly string[] | undefined {
  return typeof names === 'string' ? [names] : names;
}

/** Milliseconds of `30m`, `4h` or `2d`, from a second to a year. */
export function parseDuration(text: string): number | undefined {
  const [, count, unit = ''] = /^(\d{1,5})([smhdw])$/.exec(text) ?? [];
  const ms = Number(count) * (UNITS[unit] ?? Number.NaN);
  return ms >= MIN_TIMEOUT_MS && ms <= LONGEST_WAIT_MS ? ms : undefined;
}
