import { canonicalJson, jsonDigest } from '../json.ts';
import { type History, stateOf } from './history.ts';
import type { BoundPlan } from './plan-approver.ts';
import type { PlannedMigration } from './planned-migration.ts';
import { nameOfTag } from './tag.ts';
import type { Target } from './target.ts';

/** What a binding and a description need of a migration of a plan. */
export interface PlanPart
  extends Pick<
    PlannedMigration,
    'tag' | 'direction' | 'origin' | 'checksum' | 'migration' | 'operations' | 'destructive' | 'keeps'
  > {
  readonly statements: readonly { readonly text: string }[];
}

export function bindPlan(action: string, parts: readonly PlanPart[], history: History): BoundPlan {
  return {
    action,
    history: historyDigest(history, new Set(parts.map(({ tag }) => tag))),
    migrations: parts.map(({ tag, direction, origin, checksum, statements, migration, keeps = [] }) => {
      const texts = statements.map(({ text }) => text);
      // The tag of a change by the API has the time of the call.
      const identity =
        origin === 'api'
          ? { tag: nameOfTag(tag), checksum: jsonDigest(migration[direction]), was: null }
          : { tag, checksum, was: stateOf(history, tag) };
      return { ...identity, direction, statements: texts, ...(keeps[0] && { keptMs: keeps[0].ms }) };
    }),
  };
}

/** The rows of the history but for some, as they are once interrupted migrations are finished. */
export function historyDigest(history: History, without: ReadonlySet<string> = new Set()): string {
  const rows = history.inOrder().filter(({ row: { tag } }) => !without.has(tag));
  return jsonDigest(rows.map(({ row: { tag, checksum } }) => [tag, checksum, stateOf(history, tag)]));
}

/** What has changed while the run waited for the lock. */
export function differenceOf(reviewed: BoundPlan, now: BoundPlan): string | undefined {
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
export function digestOf({ product, env, database, dialect }: Target, plan: BoundPlan): string {
  return jsonDigest({ product, env, database, dialect: dialect.name, plan });
}
