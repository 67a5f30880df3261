import { shorten } from '../display/limit.ts';
import type { PlanPart } from './bound-plan.ts';
import { hiddenEffect, isOpaque } from './hidden-effects.ts';
import { lossesNotKept } from './kept.ts';
import { whyIrreversible } from './migration.ts';
import type { AskOptions, ShownPlan } from './plan-approver.ts';
import type { PlannedMigration } from './planned-migration.ts';
import { durationText, HOUR_MS, lockText, previewStatements, rowsOfCopy, rowsOfLoss } from './preview-statements.ts';
import { nameOfTag } from './tag.ts';
import type { Target } from './target.ts';

export function shownPlan({ env, database, dialect }: Target, action: string, parts: readonly PlanPart[]): ShownPlan {
  const [keep] = parts.flatMap(({ keeps = [] }) => keeps);
  return {
    environment: env,
    database,
    action,
    ...(keep && { keepHours: keep.ms / HOUR_MS }),
    migrations: parts.map((part) => {
      const { tag, direction, origin, statements } = part;
      const rollback = direction === 'up' ? { rollback: rollbackText(part, dialect.name) } : {};
      const texts = statements.map(({ text }) => text);
      return { tag: origin === 'api' ? nameOfTag(tag) : tag, direction, statements: texts, ...rollback };
    }),
  };
}

function rollbackText({ migration, operations = [], destructive = [], keeps = [] }: PlanPart, dialect: string): string {
  const { up, down } = migration;
  const lossy = lossesNotKept({ migration, keeps });
  const reason = whyIrreversible(migration, dialect);
  if (reason !== undefined) return `none: ${reason}`;
  if (down.length === 0 && up.length > 0) return 'none';
  if (operations.some(isOpaque)) return 'as its file says: svc does not know whether the data comes back';
  const [keep] = keeps;
  if (keep) {
    const comesBack = `what is kept comes back with its data, for ${durationText(keep.ms)} after the run`;
    return destructive.length > 0 || lossy.length > 0 ? `${comesBack}; the other data does not` : comesBack;
  }
  return lossy.length > 0 || destructive.length > 0
    ? 'the schema comes back, the data does not'
    : 'everything comes back';
}

/** Whatever the migration or a flag permits, and whatever a raw statement says of itself; also what is kept for a time. */
export const mayDestroy = ({ statements, operations = [] }: PlannedMigration): boolean =>
  statements.some(({ destructive, keptMs }) => destructive || keptMs !== undefined) ||
  operations.some((operation) => hiddenEffect(operation, operations) !== undefined);

/** What a migration of a plan loses, for people. */
export interface PlanLoss {
  readonly tag: string;
  /** A statement or a sentence. */
  readonly text: string;
  /** What is known of it: the rows, and how long it is kept. */
  readonly facts?: string;
  /** A sentence about what statements lose that are listed as well. */
  readonly isSentence?: boolean;
}

const lossText = ({ text, facts }: PlanLoss): string => (facts === undefined ? text : `${text} (${facts})`);

export const lossLine = (loss: PlanLoss): string => `${loss.tag}: ${lossText(loss)}`;

/** `migrate main (prd): DROP TABLE "orders" (orders has 30 rows), and 2 more` */
export function reasonOf({ database, env }: Target, action: string, losses: readonly PlanLoss[]): string {
  const statements = losses.filter(({ isSentence }) => isSentence !== true);
  const [loss, ...others] = statements.length > 0 ? statements : losses;
  const what = `${action} ${database} (${env})`;
  if (loss === undefined) return what;
  return `${what}: ${shorten(lossText(loss), 300).text}${others.length === 0 ? '' : `, and ${others.length} more`}`;
}

/** For people. */
export interface PlanEffects {
  readonly losses: readonly PlanLoss[];
  /** Statements that copy a table, or block others from it. */
  readonly blocks: readonly string[];
}

export async function effectsOf(
  target: Target,
  planned: readonly PlannedMigration[],
  options: AskOptions,
): Promise<PlanEffects> {
  const losses: PlanLoss[] = [];
  const blocks: string[] = [];
  for (const one of await previewStatements(target, planned, options)) {
    const { tag, direction, statements, operations = [] } = one;
    for (const [index, { text, destructive, keptMs, loss, copy, lock }] of statements.entries()) {
      const operation = operations[index];
      const rows = loss ? [`${loss.collection} has ${rowsOfLoss(loss)}`] : [];
      const kept = keptMs === undefined ? [] : [`kept for ${durationText(keptMs)}`];
      const facts = [...rows, ...kept].join(', ');
      if (destructive || keptMs !== undefined) losses.push({ tag, text, ...(facts !== '' && { facts }) });
      else {
        const hidden = operation && hiddenEffect(operation, operations);
        if (hidden !== undefined) losses.push({ tag, text, facts: hidden });
      }
      if (copy)
        blocks.push(`${tag}: ${text} blocks writes to ${copy.collection} while its ${rowsOfCopy(copy)} are copied`);
      else if (lock && lock.blocks !== 'nothing') blocks.push(`${tag}: ${lockText(lock)}: ${text}`);
    }
    if (direction === 'up') losses.push(...lossesNotKept(one).map((text) => ({ tag, text, isSentence: true })));
  }
  return { losses, blocks };
}
