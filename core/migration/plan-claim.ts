import { canonicalJson } from '../json.ts';
import { anyDefinition, recordWrite } from '../records.ts';
import { approvalTable } from './approval-table.ts';
import { historyDigest } from './bound-plan.ts';
import { type History, stateOf } from './history.ts';
import type { MigrationRun } from './journal.ts';
import type { BoundPlan, RunApproval } from './plan-approver.ts';
import type { Target } from './target.ts';

/** The approval that was used last, and the plan that it was for. */
export interface Claim {
  readonly requestId: string;
  readonly digest: string;
  readonly plan: BoundPlan;
}

export async function readClaim({ connection }: Target): Promise<Claim | undefined> {
  const row = (await connection.records(approvalTable).get('last'))?.record;
  return row && { requestId: row.requestId, digest: row.digest, plan: row.plan as BoundPlan };
}

export async function writeClaim(
  { target: { connection }, epoch }: MigrationRun,
  { requestId, approved: digest }: RunApproval,
  plan: BoundPlan,
): Promise<void> {
  await connection.ensureTables([anyDefinition(approvalTable)]);
  const version = (await connection.records(approvalTable).get('last'))?.version;
  const write = recordWrite(approvalTable, { id: 'last', requestId, digest, plan }, version);
  const { failure } = await connection.run([{ transactional: true, statements: [], writes: [write] }], epoch);
  if (failure) throw failure.error;
}

/** Whether a plan is the rest of the one that a claim is for, of which the first migrations are done. */
export function continuesClaim({ plan }: Claim, rest: BoundPlan, history: History): boolean {
  const done = plan.migrations.slice(0, plan.migrations.length - rest.migrations.length);
  const left = plan.migrations.slice(done.length);
  return (
    done.length > 0 &&
    plan.action === rest.action &&
    canonicalJson(left) === canonicalJson(rest.migrations) &&
    done.every(({ tag, direction, was }) => {
      const state = stateOf(history, tag);
      return state !== was && state?.endsWith(direction === 'up' ? ' completed' : ' rolled_back');
    }) &&
    historyDigest(history, new Set(plan.migrations.map(({ tag }) => tag))) === plan.history
  );
}
