import { SvcError } from '../errors.ts';
import type { Registry } from '../registry.ts';
import { designRules } from './design-rules.ts';
import { rawRules } from './raw-rules.ts';
import { LINT_LEVELS, type LintRule, type LintRuleSet } from './rule.ts';
import { runningCodeRules } from './running-code-rules.ts';

/** For every dialect. */
const portableRules: readonly LintRule[] = [...runningCodeRules, ...designRules, ...rawRules];

/**
 * The portable rules and those that plugins register for a dialect, by id. Throws `plugin_invalid` for a rule of a plugin
 * that cannot be used.
 */
export async function rulesFor(
  sets: Pick<Registry<LintRuleSet>, 'list' | 'get'>,
  dialect: string,
): Promise<readonly LintRule[]> {
  const rules = new Map(portableRules.map((rule) => [rule.id, rule]));
  for (const { name, plugin } of sets.list()) {
    const { dialects, load } = sets.get(name);
    if (dialects !== undefined && !dialects.includes(dialect)) continue;
    for (const rule of await load()) {
      assertRule(rule, plugin, rules);
      rules.set(rule.id, rule);
    }
  }
  return [...rules.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}

function assertRule(rule: LintRule, plugin: string, rules: ReadonlyMap<string, LintRule>): void {
  const problem = ruleProblem(rule, rules);
  if (problem === undefined) return;
  throw new SvcError('plugin_invalid', `The plugin "${plugin}" has a lint rule that cannot be used.`, {
    why: problem,
    next: ['Fix the plugin, or remove it from svc.config.'],
  });
}

function ruleProblem(rule: LintRule, rules: ReadonlyMap<string, LintRule>): string | undefined {
  const { id, name, level, check } = rule;
  if (!/^[A-Z]+\d+$/.test(id)) return `The id "${id}" is not capital letters followed by digits.`;
  const texts = ['name', 'summary', 'impact', 'fix'] as const;
  for (const key of texts) if (typeof rule[key] !== 'string' || rule[key] === '') return `${id}: "${key}" is missing.`;
  if (!LINT_LEVELS.includes(level)) return `${id}: "level" must be one of ${LINT_LEVELS.join(', ')}.`;
  if (typeof check !== 'function') return `${id}: "check" is not a function.`;
  const other = rules.get(id) ?? [...rules.values()].find((one) => one.name === name);
  return other ? `The rule "${other.id}" (${other.name}) exists already.` : undefined;
}
