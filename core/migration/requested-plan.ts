import { isPlainObject } from '../json.ts';
import { isPlanRequest, type PlanDescription, type ShownMigration } from './plan-approver.ts';

/** What people read of a plan before they decide. */
export type RequestedPlan = Pick<PlanDescription, 'losses' | 'warnings' | 'migrations'>;

interface Request {
  readonly agentTag: string;
  readonly tool: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** The plan that a request asks about; undefined for any other request, and for parameters that do not look like a plan's. */
export function requestedPlan(request: Request): RequestedPlan | undefined {
  const { losses, warnings, migrations }: Readonly<Record<string, unknown>> = request.parameters;
  if (!isPlanRequest(request) || !isTexts(losses) || !isTexts(warnings)) return undefined;
  return Array.isArray(migrations) && migrations.every(isMigration) ? { losses, warnings, migrations } : undefined;
}

const isTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string');

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
