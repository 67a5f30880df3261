import { hash } from 'node:crypto';
import { SvcError } from '../errors.ts';
import { canonicalJson, type Json } from '../json.ts';
import { anyDefinition, recordWrite } from '../records.ts';
import type { MigrationOperation } from '../schema/operation.ts';
import { frozenClone } from '../tool/safe-json.ts';
import { approvalTable, readApprovalStore } from './approval-table.ts';
import { assertDatabaseOwner, History, isRollback } from './history.ts';
import type { MigrationRun } from './journal.ts';
import { whyIrreversible } from './migration.ts';
import type { PlannedMigration } from './plan.ts';
import {
  type AskOptions,
  type BoundPlan,
  type PlanApprover,
  PlanReview,
  type ReviewedPlan,
  type RunApproval,
  type ShownPlan,
} from './plan-approver.ts';
import { previewStatements, type TableLoss } from './preview-statements.ts';
import { nameOfTag } from './tag.ts';
import type { Target } from './target.ts';

/*
 * An environment with `approval` runs a plan only after people approved it. Before the lock, the plan is described and a
 * request is stored (`reviewPlan`). Under the lock it is planned again, and must be the same plan (`runReviewed`). Then a
 * row in the database that changes claims the approval, before the first statement. A run that stopped halfway continues
 * under that claim, with exactly the rest of its plan.
 */

/** The last approval that was used. */
interface Claim {
  readonly requestId: string;
  readonly digest: string;
  readonly plan: BoundPlan;
}

/** What binding and describing a plan need of its migrations. */
export interface PlanPart
  extends Pick<
    PlannedMigration,
    'tag' | 'direction' | 'origin' | 'checksum' | 'migration' | 'operations' | 'destructive'
  > {
  readonly statements: readonly { readonly text: string }[];
}

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
  // What was interrupted is only finished: it was approved when it began.
  const fresh = planned.filter(({ tag }) => history.records.get(tag)?.row.status !== 'applying');
  if (fresh.length === 0 || !(approver || isHooked)) return undefined;
  const bound = bind(action, fresh, history);
  const effects = once(() => effectsOf(target, fresh, options));
  const isHookRequired =
    isHooked &&
    (await hooksRequireApproval(target, { ...shown(target, action, fresh), losses: (await effects()).losses }));
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
  const bound = bind(action, [part], history);
  const effects = async () => ({ losses: [], copies: [] });
  const approval = await askFor({ target, history, parts: [part], bound, effects }, options);
  return { bound, approval };
}

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
  if (claim && continues(claim, bound, history)) return { requestId: claim.requestId, approved: claim.digest };
  const remembered = await readApprovalStore(target.connection);
  if (remembered !== undefined && remembered !== store) throw otherStore(target);
  const before = (await history.completedMigrations(target.connection)).map(({ migration }) => migration);
  const added = parts.flatMap(({ direction, migration }) => (direction === 'up' ? [migration] : []));
  const { losses, copies } = await effects();
  const { warnings, ...context } = await approver.describe(target.connection, { before, added });
  const described = {
    ...shown(target, bound.action, parts),
    losses,
    warnings: [...copies, ...warnings],
    ...context,
    plan: digest,
  };
  return { requestId: await approver.ask(described, options), approved: digest };
}

function shown({ env, database, dialect }: Target, action: string, parts: readonly PlanPart[]): ShownPlan {
  return {
    environment: env,
    database,
    action,
    migrations: parts.map((part) => {
      const { tag, direction, origin, statements } = part;
      const rollback = direction === 'up' ? { rollback: rollbackText(part, dialect.name) } : {};
      const texts = statements.map(({ text }) => text);
      return { tag: origin === 'api' ? nameOfTag(tag) : tag, direction, statements: texts, ...rollback };
    }),
  };
}

function rollbackText({ migration, operations = [], destructive = [] }: PlanPart, dialect: string): string {
  const { up, down, lossy = [] } = migration;
  const reason = whyIrreversible(migration, dialect);
  if (reason !== undefined) return `none: ${reason}`;
  if (down.length === 0 && up.length > 0) return 'none';
  if (operations.some(isOpaque)) return 'as its file says: svc does not know whether the data comes back';
  return lossy.length > 0 || destructive.length > 0
    ? 'the schema comes back, the data does not'
    : 'everything comes back';
}

/** Whether a tap requires approval. Throws `hook_refused` if one denies the plan, or fails. */
async function hooksRequireApproval({ hooks }: Target, plan: PlanReview['plan']): Promise<boolean> {
  const review = new PlanReview(frozenClone(plan));
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
  const { approver } = run.target;
  const isReviewed = run.plan !== undefined || (approver !== undefined && needsApproval(approver, planned));
  return isReviewed && planned.length > 0 ? runPart(run, planned, work) : work();
}

/** As `runReviewed`, for a decision about one migration. */
export function decideReviewed<T>(run: MigrationRun, part: PlanPart, work: () => Promise<T>): Promise<T> {
  return run.target.approver ? runPart(run, [part], work) : work();
}

async function runPart<T>(run: MigrationRun, parts: readonly PlanPart[], work: () => Promise<T>): Promise<T> {
  const { target, plan, history } = run;
  if (!plan) throw staleError('It needs approval, and did not before it had the lock.');
  const bound = bind(plan.bound.action, parts, history);
  const difference = differenceOf(plan.bound, bound);
  if (difference !== undefined) throw staleError(difference);
  const { approval } = plan;
  if (!approval) return work();
  if (!target.approver) throw nobodyToAsk(target);
  const claim = await readClaim(target);
  const isContinued = claim !== undefined && continues(claim, bound, history);
  if (!isContinued) await writeClaim(run, approval, bound);
  return target.approver.use(approval, work, isContinued);
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

/** Whatever the migration or a flag permits, and whatever a raw statement says of itself. */
export const mayDestroy = ({ statements, operations = [] }: PlannedMigration): boolean =>
  statements.some(({ destructive }) => destructive) || operations.some(isOpaque);

/** Only its text says what it does. */
const isOpaque = ({ type }: MigrationOperation): boolean =>
  type === 'raw' || type === 'createObject' || type === 'replaceObject';

const hasLosses = ({ migration: { lossy = [] } }: PlannedMigration): boolean => lossy.length > 0;

function bind(action: string, parts: readonly PlanPart[], history: History): BoundPlan {
  return {
    action,
    history: historyDigest(history, new Set(parts.map(({ tag }) => tag))),
    migrations: parts.map(({ tag, direction, origin, checksum, statements, migration }) => {
      const texts = statements.map(({ text }) => text);
      // The tag of a change by the API has the time of the call.
      return origin === 'api'
        ? { tag: nameOfTag(tag), direction, checksum: sha256(migration[direction]), was: null, statements: texts }
        : { tag, direction, checksum, was: stateOf(history, tag), statements: texts };
    }),
  };
}

/** The rows of the history but for some, as they are once interrupted migrations are finished. */
function historyDigest(history: History, without: ReadonlySet<string>): string {
  const rows = history.inOrder().filter(({ row: { tag } }) => !without.has(tag));
  return sha256(rows.map(({ row: { tag, checksum } }) => [tag, checksum, stateOf(history, tag)]));
}

function stateOf(history: History, tag: string): string | null {
  const row = history.records.get(tag)?.row;
  if (!row) return null;
  const finished = isRollback(row) ? 'rolled_back' : 'completed';
  return `${row.seq} ${row.status === 'applying' ? finished : row.status}`;
}

/** Whether a plan is the rest of the one that a claim is for, of which the first migrations are done. */
function continues({ plan }: Claim, rest: BoundPlan, history: History): boolean {
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

/** What has changed while the run waited for the lock. */
function differenceOf(reviewed: BoundPlan, now: BoundPlan): string | undefined {
  if (canonicalJson(reviewed) === canonicalJson(now)) return undefined;
  const tags = (plan: BoundPlan) => plan.migrations.map(({ tag }) => tag).join(', ');
  if (tags(reviewed) !== tags(now)) return `It had ${tags(reviewed)}, and now has ${tags(now) || 'nothing'}.`;
  const changed = now.migrations.find((one, index) => {
    const before = reviewed.migrations[index];
    return !before || canonicalJson(before) !== canonicalJson(one);
  });
  return changed
    ? `"${changed.tag}" is not what it was: its file, its statements or its row in the history.`
    : 'Another migration was applied or rolled back in the meantime.';
}

/** Product, environment and tag are also in the database, which no run changes that names others. */
function digestOf({ product, env, database, dialect }: Target, plan: BoundPlan): string {
  return sha256({ product, env, database, dialect: dialect.name, plan });
}

async function readClaim({ connection }: Target): Promise<Claim | undefined> {
  const row = (await connection.records(approvalTable).get('last'))?.record;
  return row && { requestId: row.requestId, digest: row.digest, plan: row.plan as BoundPlan };
}

async function writeClaim(
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

/** For people. */
interface PlanEffects {
  readonly losses: readonly string[];
  readonly copies: readonly string[];
}

async function effectsOf(
  target: Target,
  planned: readonly PlannedMigration[],
  options: AskOptions,
): Promise<PlanEffects> {
  const losses: string[] = [];
  const copies: string[] = [];
  for (const { tag, direction, statements, operations = [], migration } of await previewStatements(
    target,
    planned,
    options,
  )) {
    for (const [index, { text, destructive, loss, copy }] of statements.entries()) {
      const operation = operations[index];
      if (destructive) losses.push(`${tag}: ${text}${loss ? ` (${rowsText(loss)})` : ''}`);
      else if (operation && isOpaque(operation)) {
        losses.push(`${tag}: ${text} (${operation.type}: svc knows its text only)`);
      }
      if (copy) copies.push(`${tag}: ${text} blocks writes to ${copy.collection} while its ${rowsOf(copy)} are copied`);
    }
    if (direction === 'up') losses.push(...(migration.lossy ?? []).map((sentence) => `${tag}: ${sentence}`));
  }
  return { losses, copies };
}

const rowsOf = ({ rows, isEstimate }: { rows: number; isEstimate: boolean }): string =>
  `${isEstimate ? 'about ' : ''}${rows} ${rows === 1 ? 'row' : 'rows'}`;

function rowsText({ collection, rows, hasMore, values }: TableLoss): string {
  const counted = `${collection} has ${hasMore ? 'more than ' : ''}${rows} ${rows === 1 ? 'row' : 'rows'}`;
  return values === undefined ? counted : `${counted}, ${values} with a value`;
}

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

function staleError(why: string): SvcError {
  return new SvcError('approval_stale', 'The plan is not the one that was reviewed.', {
    why,
    state: 'Nothing was changed, and no approval was used.',
    next: ['Run the command again: it makes a new plan.'],
  });
}

const sha256 = (value: unknown): string => hash('sha256', canonicalJson(value as Json), 'base64url');

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
