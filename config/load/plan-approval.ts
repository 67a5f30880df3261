import { APPROVAL_CONDITIONS, type ApprovalCondition, MIGRATION_TOOL } from '../../core/migration/plan-approver.ts';
import type { Config, MigrationApprovalConfig } from '../define.ts';
import { NOT_A_DURATION, parseDuration, roleProblems } from './approval-rules.ts';

const DEFAULT_TIMEOUT = '8h';

export interface PlanApprovalSettings {
  readonly when: ApprovalCondition;
  readonly timeoutMs: number;
}

/** The settings of an environment with `approval`, which `planApprovalProblems` has checked. */
export function planApprovalSettings({ when = 'destructive', timeout }: MigrationApprovalConfig): PlanApprovalSettings {
  return { when, timeoutMs: parseDuration(timeout ?? DEFAULT_TIMEOUT) ?? Number.NaN };
}

/** Who approves the plans of an environment: `user:<id>` and `group:<name>`. Undefined without `approval`. */
export function planApprovers({ environments, approvals }: Config, env: string): readonly string[] | undefined {
  const approval = environments?.[env]?.approval;
  return approval && (approvals?.roles?.[approval.role] ?? []);
}

/** The rule of the requests of an environment. It comes before all others, so that none of them weakens it. */
export function planApprovalRule({ role }: MigrationApprovalConfig) {
  return { match: { tool: MIGRATION_TOOL }, approve: [{ role }] };
}

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
  }
  return problems;
}

export const isApprovalCondition = (value: unknown): value is ApprovalCondition =>
  APPROVAL_CONDITIONS.some((one) => one === value);
