import { isPlainObject } from '../json.ts';
import { isPlanRequest, type PlanDescription, type ShownMigration } from './plan-approver.ts';

/** What people read of a plan before they decide. */
export type RequestedPlan = Pick<
  PlanDescription,
  'environment' | 'database' | 'action' | 'requestedBy' | 'commit' | 'losses' | 'warnings' | 'migrations'
>;

interface Request {
  readonly agentTag: string;
  readonly tool: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** The plan that a request asks about; undefined for any other request, and for parameters that do not look like a plan's. */
export function requestedPlan(request: Request): RequestedPlan | undefined {
  const { environment, database, action, requestedBy, commit, losses, warnings, migrations } = request.parameters;
  if (!isPlanRequest(request) || !isTexts(losses) || !isTexts(warnings)) return undefined;
  if (!isText(environment) || !isText(database) || !isText(action) || !isText(requestedBy)) return undefined;
  if (!(commit === undefined || isText(commit)) || !Array.isArray(migrations) || !migrations.every(isMigration))
    return undefined;
  const plan = { environment, database, action, requestedBy, losses, warnings, migrations };
  return commit === undefined ? plan : { ...plan, commit };
}

/** `migrate main (prd), requested by ann@laptop from commit 3f2a91c04d17` */
export function planTitle({ action, database, environment, requestedBy, commit }: RequestedPlan): string {
  const from = commit === undefined ? '' : ` from commit ${commit}`;
  return `${action} ${database} (${environment}), requested by ${requestedBy}${from}`;
}

const isText = (value: unknown): value is string => typeof value === 'string';

const isTexts = (value: unknown): value is readonly string[] => Array.isArray(value) && value.every(isText);

const isMigration = (value: unknown): value is ShownMigration =>
  isPlainObject(value) &&
  typeof value.tag === 'string' &&
  (value.direction === 'up' || value.direction === 'down') &&
  isTexts(value.statements) &&
  (value.rollback === undefined || typeof value.rollback === 'string');

/** `20260102_orders`, or `20260102_orders, its rollback` */
export const migrationTitle = ({ tag, direction }: ShownMigration): string =>
  `${tag}${direction === 'down' ? ', its rollback' : ''}`;

/** Actions of which a database has one plan at a time. Others are about the migrations that they name. */
const WHOLE: readonly string[] = ['migrate', 'contract', 'rollback', 'purge'];

type Kind = Pick<PlanDescription, 'action' | 'migrations'>;

/** Whether one plan of a database is in place of the other. */
export function isOfSameKind(one: Kind, other: Kind): boolean {
  const tags = ({ migrations }: Kind): string => JSON.stringify(migrations.map(({ tag }) => tag));
  return one.action === other.action && (WHOLE.includes(one.action) || tags(one) === tags(other));
}

/** Whether a plan has the first migrations of another one, and not all of them. */
export function isPartOf(one: Kind, whole: Kind): boolean {
  const texts = ({ migrations }: Kind) => migrations.map(({ tag, statements }) => JSON.stringify([tag, statements]));
  const all = texts(whole);
  return one.migrations.length < all.length && texts(one).every((text, index) => text === all[index]);
}
