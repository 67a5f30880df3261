import { isSvcError, SvcError } from '../errors.ts';
import { frozenClone } from '../tool/safe-json.ts';
import { readApprovalStore } from './approval-table.ts';
import { bindPlan, differenceOf, digestOf, historyDigest, type PlanPart } from './bound-plan.ts';
import { assertDatabaseOwner, History } from './history.ts';
import type { MigrationRun } from './journal.ts';
import {
  type AskOptions,
  type BoundPlan,
  OpenPlanReview,
  type PlanApprover,
  type PlanReview,
  type ReviewedPlan,
  type RunApproval,
} from './plan-approver.ts';
import { continuesClaim, readClaim, writeClaim } from './plan-claim.ts';
import { effectsOf, lossLine, mayDestroy, type PlanEffects, reasonOf, shownPlan } from './plan-description.ts';
import type { PlannedMigration } from './planned-migration.ts';
import type { Target } from './target.ts';

/*
 * An environment with `approval` runs a plan only after people approved it. Before the lock, the plan is described and a
 * request is stored (`reviewPlan`). Under the lock it is planned again, and must be the same plan (`runReviewed`). Then a
 * row in the database that changes claims the approval, before the first statement. A run that stopped halfway continues
 * under that claim, with exactly the rest of its plan.
 */

/**
 * Shows a plan to the taps of `migration:plan`, and asks for approval if it needs some. Undefined where nobody reviews
 * plans. Takes no lock. Throws what `PlanApprover.ask` throws, and `hook_refused`.
 */
export async function reviewPlan(
  target: Target,
  history: History,
  action: string,
  planned: readonly PlannedMigration[],
  options: AskOptions = {},
): Promise<ReviewedPlan | undefined> {
  const { approver, hooks } = target;
  const isHooked = hooks['migration:plan'].isUsed();
  const fresh = planned.filter(({ isInterrupted }) => !isInterrupted);
  for (const one of planned) if (one.isInterrupted) assertMayFinish(target, one);
  if (fresh.length === 0 || !(approver || isHooked)) return undefined;
  const bound = bindPlan(action, fresh, history);
  const effects = once(() => effectsOf(target, fresh, options));
  const isHookRequired =
    isHooked &&
    (await hooksRequireApproval(target, {
      ...shownPlan(target, action, fresh),
      losses: (await effects()).losses.map(lossLine),
    }));
  const isRequired = isHookRequired || (approver && (options.isRequired || needsApproval(approver, fresh)));
  if (!isRequired) return isHooked ? { bound } : undefined;
  return { bound, approval: await askFor({ target, history, parts: fresh, bound, effects }, options) };
}

/** Whether anybody reviews plans before they run. */
export const isPlanReviewed = ({ approver, hooks }: Target): boolean =>
  approver !== undefined || hooks['migration:plan'].isUsed();

/** As `reviewPlan`, for a plan of one migration that is made from the history. */
export async function reviewBeforeLock(
  target: Target,
  action: string,
  plan: (history: History) => Promise<PlannedMigration | undefined>,
): Promise<ReviewedPlan | undefined> {
  if (!isPlanReviewed(target)) return undefined;
  await assertDatabaseOwner(target);
  const planned = await plan(await History.readAsRecovered(target.connection));
  return planned && reviewPlan(target, await History.read(target.connection), action, [planned]);
}

/** As `reviewPlan`, for a decision about one migration that stopped halfway, which always needs approval. */
export async function reviewDecision(
  target: Target,
  action: string,
  read: () => Promise<{ readonly part: PlanPart }>,
  options: AskOptions = {},
): Promise<ReviewedPlan | undefined> {
  if (!target.approver) return undefined;
  await assertDatabaseOwner(target);
  const { part } = await read();
  const history = await History.read(target.connection);
  const bound = bindPlan(action, [part], history);
  const approval = await askFor({ target, history, parts: [part], bound, effects: noEffects }, options);
  return { bound, approval };
}

const noEffects = async (): Promise<PlanEffects> => ({ losses: [], blocks: [] });

/** The action that drops what was kept. */
export const PURGE = 'purge';

interface Question {
  readonly target: Target;
  readonly history: History;
  readonly parts: readonly PlanPart[];
  readonly bound: BoundPlan;
  readonly effects: () => Promise<PlanEffects>;
}

async function askFor({ target, history, parts, bound, effects }: Question, options: AskOptions): Promise<RunApproval> {
  const { approver } = target;
  if (!approver) throw nobodyToAsk(target);
  const digest = digestOf(target, bound);
  const store = await approver.store();
  const claim = await readClaim(target);
  if (claim && continuesClaim(claim, bound, history)) return { requestId: claim.requestId, approved: claim.digest };
  const remembered = await readApprovalStore(target.connection);
  if (remembered !== undefined && remembered !== store) throw otherStore(target);
  const before = (await history.completedMigrations(target.connection)).map(({ migration }) => migration);
  // What is purged is in no schema, and a decision that runs nothing may be about a migration that is applied.
  const linted = bound.action === PURGE ? [] : parts.filter(({ statements }) => statements.length > 0);
  const added = linted.flatMap(({ direction, migration }) => (direction === 'up' ? [migration] : []));
  const { losses, blocks } = await effects();
  const { warnings, ...context } = await approver.describe(target.connection, { before, added });
  const described = {
    ...shownPlan(target, bound.action, parts),
    losses: losses.map(lossLine),
    warnings: [...blocks, ...warnings],
    ...context,
    plan: digest,
    history: historyDigest(history),
  };
  const request = {
    plan: described,
    reason: reasonOf(target, bound.action, losses),
    readHistory: historyReader(target),
  };
  return { requestId: await approver.ask(request, options), approved: digest };
}

const historyReader =
  ({ connection }: Target) =>
  async (): Promise<string> =>
    historyDigest(await History.read(connection));

/** Whether a tap requires approval. Throws `hook_refused` if one denies the plan, or fails. */
async function hooksRequireApproval({ hooks }: Target, plan: PlanReview['plan']): Promise<boolean> {
  const review = new OpenPlanReview(frozenClone(plan));
  try {
    await hooks['migration:plan'].promise(review);
  } catch (error) {
    review.deny(error instanceof Error ? error.message : String(error));
  }
  const { denial } = review;
  if (denial === undefined) return review.needsApproval;
  throw new SvcError('hook_refused', 'A plugin denied the plan.', { why: denial, state: 'Nothing was changed.' });
}

/**
 * Runs a plan under the lock, and under its approval if it needs one. Throws `approval_stale` if it is not the plan that was
 * reviewed. Every change of a migration goes through here.
 */
export function runReviewed<T>(
  run: MigrationRun,
  planned: readonly PlannedMigration[],
  work: () => Promise<T>,
): Promise<T> {
  const { target } = run;
  const isRequired = target.approver !== undefined && needsApproval(target.approver, planned);
  if (planned.length === 0 || !(isRequired || run.plan)) return work();
  return runPart(run, planned, isRequired ? () => effectsOf(target, planned, {}) : undefined, work);
}

/** Throws if what is left of an interrupted run needs an approval, and the run began without one. */
export function assertMayFinish({ approver }: Target, left: PlannedMigration): void {
  if (!approver || left.approval !== undefined || left.steps.length === 0) return;
  const { tag, direction, migration, ran = migration[direction], statements } = left;
  if (!needsApproval(approver, [{ ...left, operations: ran }])) return;
  const name = direction === 'up' ? 'migration' : 'rollback of';
  throw new SvcError('migration_half_done', `The ${name} "${tag}" stopped half-way, and the rest needs approval.`, {
    why: 'It began without approval.',
    state: `Nothing was changed; ${statements.length} of its statements are left.`,
    next: [`svc db migrate resolve ${tag} --retry    requests approval, and then finishes it`],
    details: { tag },
  });
}

/** As `runReviewed`, for a decision about one migration. */
export function decideReviewed<T>(run: MigrationRun, part: PlanPart, work: () => Promise<T>): Promise<T> {
  return run.target.approver ? runPart(run, [part], noEffects, work) : work();
}

/** `effects` of a plan that needs approval, whatever was reviewed. */
async function runPart<T>(
  run: MigrationRun,
  parts: readonly PlanPart[],
  effects: Question['effects'] | undefined,
  work: () => Promise<T>,
): Promise<T> {
  const { target, plan, history } = run;
  if (!plan) throw staleError('It needs approval, and did not before it had the lock.');
  const { approval } = plan;
  const { approver } = target;
  const bound = bindPlan(plan.bound.action, parts, history);
  const difference = differenceOf(plan.bound, bound);
  if (difference !== undefined) {
    if (approval && approver)
      run.onStale?.(() =>
        askAgain(approver, approval, difference, effects && { target, history, parts, bound, effects }),
      );
    throw staleError(difference);
  }
  if (!approval) return work();
  if (!approver) throw nobodyToAsk(target);
  const claim = await readClaim(target);
  const isContinued = claim !== undefined && continuesClaim(claim, bound, history);
  if (!isContinued) await writeClaim(run, approval, bound);
  const result = await approver.use(approval, work, isContinued);
  await approver.withdrawStale(historyReader(target));
  return result;
}

/** After the lock: ends the approval of the plan as it was, and requests one of the plan as it is. Returns the error to throw. */
async function askAgain(
  approver: PlanApprover,
  { requestId }: RunApproval,
  difference: string,
  question: Question | undefined,
): Promise<SvcError> {
  await approver.withdraw(requestId, `The plan has changed: ${difference}`);
  try {
    if (question) await askFor(question, {});
  } catch (error) {
    if (isSvcError(error) && error.code === 'approval_pending')
      return staleError(difference, String(error.details.requestId));
    if (!isSvcError(error)) throw error;
  }
  return staleError(difference);
}

function needsApproval({ when }: PlanApprover, planned: readonly PlannedMigration[]): boolean {
  switch (when) {
    case 'always':
      return planned.length > 0;
    case 'lossy':
      return planned.some((one) => mayDestroy(one) || (one.direction === 'up' && hasLosses(one)));
    case 'destructive':
      return planned.some(mayDestroy);
  }
}

const hasLosses = ({ migration: { lossy = [] } }: PlannedMigration): boolean => lossy.length > 0;

function nobodyToAsk({ env }: Target): SvcError {
  return new SvcError('config_invalid', `Nobody is configured to approve plans of "${env}".`, {
    why: 'A plugin requires approval of this plan.',
    state: 'Nothing was changed.',
    next: [`Set environments.${env}.approval: { role: '…' }, and the role in approvals.roles.`],
  });
}

function otherStore({ database, env }: Target): SvcError {
  return new SvcError('approvers_changed', `Changes of "${database}" are approved in another approvals.store.`, {
    why: 'The database remembers the store, so that another configuration cannot name others who approve.',
    state: 'Nothing was changed.',
    next: [
      `Set approvals.store for "${env}" as it was.`,
      'If the store was moved, delete the row "store" of _svc_plan_approval in the database.',
    ],
  });
}

function staleError(why: string, requestId?: string): SvcError {
  return new SvcError('approval_stale', 'The plan is not the one that was reviewed.', {
    why,
    state: `Nothing was changed, and no approval was used.${requestId === undefined ? '' : ` The plan as it is now waits for approval: ${requestId}`}`,
    next:
      requestId === undefined
        ? ['Run the command again: it makes a new plan.']
        : [`svc approvals show ${requestId}    for those who decide`, 'Run the command again once it is approved.'],
    ...(requestId !== undefined && { details: { requestId } }),
  });
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
