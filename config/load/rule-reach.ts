import { type Condition, holds, type Scalar, type StoredRule } from '../../core/approval/rule.ts';

// Which rules no call can reach: those after a rule that matches more, and those whose comparisons contradict each other.

/** Whether a rule surely matches every call that another one matches. */
export function matchesAll({ tools, agents, where = {} }: StoredRule, other: StoredRule): boolean {
  const includesAll = (names?: readonly string[], others?: readonly string[]) =>
    !names || others?.every((name) => names.includes(name)) === true;
  const isImplied = ([name, condition]: [string, Condition]) => follows(condition, other.where?.[name] ?? {});
  return includesAll(tools, other.tools) && includesAll(agents, other.agents) && Object.entries(where).every(isImplied);
}

/** Whether the comparisons of a parameter contradict each other. */
export function neverHolds(condition: Condition): boolean {
  const values = valuesOf(condition);
  if (values) return values.length === 0;
  const { gt, lt, exists } = condition;
  const [low, high] = limitsOf(condition);
  if (exists === false) return low > -Infinity || high < Infinity;
  return low > high || (low === high && (low === gt || high === lt));
}

/** Whether a condition surely holds wherever another one does. */
function follows(condition: Condition, from: Condition): boolean {
  const values = valuesOf(from);
  if (values) return values.every((value) => holds(condition, value) === true);
  const { eq, in: list, ne, gt, gte, lt, lte, exists } = condition;
  const [low, high] = limitsOf(from);
  const isNumber = low > -Infinity || high < Infinity;
  const isAbove = (limit: number) => low > limit || from.gt === limit;
  const isBelow = (limit: number) => high < limit || from.lt === limit;
  return (
    eq === undefined &&
    list === undefined &&
    (ne === undefined || from.ne === ne || (typeof ne === 'number' && (isAbove(ne) || isBelow(ne)))) &&
    (gt === undefined || isAbove(gt)) &&
    (gte === undefined || low >= gte) &&
    (lt === undefined || isBelow(lt)) &&
    (lte === undefined || high <= lte) &&
    (exists === undefined || from.exists === exists || (exists && isNumber))
  );
}

/** The values of which a condition is true, if it lists them. */
function valuesOf(condition: Condition): readonly Scalar[] | undefined {
  const { eq, in: list = eq === undefined ? undefined : [eq] } = condition;
  return list?.filter((value) => holds(condition, value) === true);
}

/** Between which numbers a value is. */
function limitsOf({ gt = -Infinity, gte = -Infinity, lt = Infinity, lte = Infinity }: Condition) {
  return [Math.max(gt, gte), Math.min(lt, lte)] as const;
}
