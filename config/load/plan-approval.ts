import type { Verification } from '../../core/approval/principal.ts';
import { canonicalJson } from '../../core/json.ts';
import {
  APPROVAL_CONDITIONS,
  type ApprovalCondition,
  MIGRATION_TOOL,
  type PlanApprover,
} from '../../core/migration/plan-approver.ts';
import type { ApprovalRuleConfig, ApprovalsConfig, Config, MigrationApprovalConfig } from '../define.ts';
import { compileRules, NOT_A_DURATION, parseDuration, roleProblems } from './approval-rules.ts';

const DEFAULT_TIMEOUT = '8h';

export interface PlanApprovalSettings {
  readonly when: ApprovalCondition;
  readonly timeoutMs: number;
}

/** The settings of an environment with `approval`, which `planApprovalProblems` has checked. */
export function planApprovalSettings({ when = 'destructive', timeout }: MigrationApprovalConfig): PlanApprovalSettings {
  return { when, timeoutMs: parseDuration(timeout ?? DEFAULT_TIMEOUT) ?? Number.NaN };
}

/** An approver that is loaded when a plan first needs one: most runs have nothing to approve. */
export function lazyApprover(settings: MigrationApprovalConfig, load: () => Promise<PlanApprover>): PlanApprover {
  let loading: Promise<PlanApprover> | undefined;
  const loaded = (): Promise<PlanApprover> => {
    loading ??= load();
    return loading;
  };
  return {
    when: planApprovalSettings(settings).when,
    store: async () => (await loaded()).store(),
    describe: async (connection, migrations) => (await loaded()).describe(connection, migrations),
    requestedKeep: async (tags) => (await loaded()).requestedKeep(tags),
    ask: async (request, options) => (await loaded()).ask(request, options),
    withdraw: async (requestId, reason) => (await loaded()).withdraw(requestId, reason),
    withdrawStale: async (readHistory) => (await loaded()).withdrawStale(readHistory),
    use: async (approval, work, isContinued) => (await loaded()).use(approval, work, isContinued),
    close: async () => (await loading)?.close(),
  };
}

/**
 * Who approves the plans of an environment, `user:<id>` and `group:<name>`, and who else than the store says who somebody is.
 * Undefined without `approval`.
 */
export function planApprovers({ environments, approvals = {} }: Config, env: string): readonly string[] | undefined {
  const approval = environments?.[env]?.approval;
  return approval && [...(approvals.roles?.[approval.role] ?? []), ...peopleSources(approvals).values()];
}

/** The provider and the proxy that say who somebody is, as the store remembers them: without their secrets. */
export function peopleSources({ oidc, proxy }: ApprovalsConfig): ReadonlyMap<Verification, string> {
  const sources = new Map<Verification, string>();
  if (oidc) sources.set('oidc', sourceText('oidc', { ...oidc, clientSecret: undefined, scopes: undefined }));
  if (proxy) {
    const known = 'peers' in proxy ? { ...proxy, secret: proxy.secret.header } : proxy;
    sources.set('proxy', sourceText('proxy', known));
  }
  return sources;
}

const sourceText = (kind: Verification, settings: object): string =>
  `${kind}:${canonicalJson(JSON.parse(JSON.stringify(settings)))}`;

/** The rules of an environment. That of its plans comes before all others, so that none of them weakens it. */
export const rulesOf = (
  { role }: MigrationApprovalConfig,
  rules: readonly ApprovalRuleConfig[],
): readonly ApprovalRuleConfig[] => [{ match: { tool: MIGRATION_TOOL }, approve: [{ role }] }, ...rules];

/** What is wrong with the `approval` of the environments, beyond its shape. */
export function planApprovalProblems({ environments = {}, approvals = {} }: Config): string[] {
  const problems: string[] = [];
  for (const [env, { approval }] of Object.entries(environments)) {
    if (!approval) continue;
    const path = `environments.${env}.approval`;
    if (approval.timeout !== undefined && parseDuration(approval.timeout) === undefined) {
      problems.push(`${path}.timeout: ${NOT_A_DURATION}.`);
    }
    if (approvals.store === undefined) {
      problems.push(`${path}: needs approvals.store, because a request outlives the command that makes it.`);
    }
    problems.push(...roleProblems(approvals.roles, approval.role).map((text) => `${path}.role: ${text}.`));
    const { roles, rules = [] } = approvals;
    const shadowed = compileRules({ roles, rules: rulesOf(approval, rules) }).problems.filter(
      ({ path: [, index], text }) => Number(index) > 0 && text.startsWith('never applies: rules[0]'),
    );
    const indexes = shadowed.map((problem) => Number(problem.path[1]) - 1);
    problems.push(
      ...indexes.map(
        (index) => `approvals.rules[${index}]: never applies, because ${path} says who approves migrations.`,
      ),
    );
  }
  return problems;
}

export const isApprovalCondition = (value: unknown): value is ApprovalCondition =>
  APPROVAL_CONDITIONS.some((one) => one === value);
