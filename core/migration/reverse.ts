import type { Adapter } from '../database/adapter.ts';
import { isSvcError, SvcError, sentences } from '../errors.ts';
import type { Draft } from '../schema/draft.ts';
import type { Operation } from '../schema/operation.ts';
import { HISTORY_VERSION, history } from './history.ts';
import { checkMeta, type LedgerRow } from './ledger.ts';
import type { Migration } from './migration.ts';
import { mayExist, type PlannedMigration, planMigration } from './plan.ts';
import { apart, retold } from './retelling.ts';
import { members, needs, touches } from './touches.ts';

/** A way back, without what it would drop though it was there before. */
export interface PlannedReverse extends PlannedMigration {
  readonly leftOut: ReadonlySet<Operation>;
}

/** The way back of one migration, from the model as it is. `completed` are all of them: what comes after it stays. */
export async function planReverse(
  adapter: Adapter,
  migration: Migration,
  row: Pick<LedgerRow, 'tag' | 'seq' | 'origin' | 'steps' | 'duration_ms'>,
  draft: Draft,
  completed: readonly Migration[] = [],
): Promise<PlannedReverse> {
  if (row.duration_ms === null) {
    throw new SvcError('irreversible', `The migration "${migration.tag}" was recorded by baseline and never run.`, {
      why: 'Its way back would destroy what svc did not make.',
      state: 'Nothing was changed.',
      next: [`svc db migrate resolve ${migration.tag} --forget    takes it out of the history and leaves the tables`],
    });
  }
  const hasNoWay = migration.down.length === 0 && row.steps > 0 && !migration.up.every(endsWithItsSession);
  if (migration.irreversible !== undefined || hasNoWay) {
    throw new SvcError('irreversible', `The migration "${migration.tag}" has no way back.`, {
      why: migration.irreversible ?? 'Its down is empty.',
      state: 'Nothing was changed.',
      next: ['Write a new migration that repairs what is wrong: svc db migrate create <name>'],
    });
  }
  const leftOut = await othersTables(adapter, migration, row);
  const later = completed.length - 1 - completed.findIndex(({ tag }) => tag === migration.tag);
  try {
    const planned = await planMigration(adapter, migration, 'down', row.origin, draft, { leftOut });
    const reverse = { ...planned, leftOut };
    const words = completed.length > 0 && later > 0 ? elsewhere([reverse], completed) : [];
    if (words.length === 0) return reverse;
    throw new SvcError('not_reversible_now', 'Its way back leads elsewhere than the history without it.', {
      why: words.join('; '),
    });
  } catch (error) {
    if (!isSvcError(error)) throw error;
    throw new SvcError('not_reversible_now', `"${migration.tag}" cannot be rolled back from the schema as it is now.`, {
      why: sentences(error),
      state: 'Nothing was changed.',
      next: [
        `Roll back the migrations after it first: svc db migrate rollback -n ${completed.length > 0 ? later : '<count>'}`,
      ],
      cause: error,
    });
  }
}

/**
 * In words, where a way back leads elsewhere than the history does without what it takes back: it may fit by names only,
 * which were taken anew, or was written for another order. Throws where there is no history without that.
 */
export function elsewhere(planned: readonly PlannedReverse[], completed: readonly Migration[]): readonly string[] {
  const tags = new Set(planned.map(({ tag }) => tag));
  const without = retold(completed.filter(({ tag }) => !tags.has(tag)));
  const back = retold(completed);
  const foreign = new Set(back.foreign);
  const down = planned.flatMap(({ migration, leftOut }) =>
    migration.down.filter((operation) => !leftOut.has(operation)),
  );
  for (const operation of down) back.tell(operation);
  for (const name of planned.flatMap(({ leftOut }) => [...leftOut].flatMap(touches))) {
    const stays = without.model.get(name);
    if (stays) back.model.set(name, stays);
    else back.model.delete(name);
  }
  // Of a table that svc did not make no more is known than what operations name.
  const named = new Set(down.filter((one) => needs(one).some((name) => foreign.has(name))).flatMap(members));
  const later = completed.slice(completed.findIndex(({ tag }) => tags.has(tag))).filter(({ tag }) => !tags.has(tag));
  const again = later.filter(({ up }) => up.flatMap(members).some((name) => named.has(name)));
  return [...apart(without, back), ...again.map(({ tag }) => `"${tag}" changes the same`)];
}

/** What the way back would drop though it was there before the migration, which was to create it if it was not. */
async function othersTables(
  adapter: Adapter,
  { tag, up, down }: Migration,
  row: Pick<LedgerRow, 'seq' | 'steps'>,
): Promise<ReadonlySet<Operation>> {
  const drops = down.filter((operation) => operation.type === 'dropCollection');
  const perhaps = up.filter(mayExist).filter(({ name }) => drops.some((drop) => drop.collection === name));
  if (perhaps.length === 0) return new Set();
  const names = perhaps.map(({ name }) => name);
  const found = (await recorded(adapter, row)) ?? (row.steps === 0 ? names : undefined);
  if (found) return new Set(drops.filter(({ collection }) => found.includes(collection)));
  if (up.length === 1) return new Set();
  throw new SvcError('irreversible', `It is not known whether "${tag}" made the table "${names.join('", "')}".`, {
    why: 'It was applied by a version of svc that did not record which tables were there already.',
    state: 'Nothing was changed.',
    next: [`svc db migrate resolve ${tag} --forget    takes it out of the history and leaves the tables`],
  });
}

/** What was found on the way up; nothing is known of a database that has not been written to by this version yet. */
async function recorded(adapter: Adapter, { seq }: Pick<LedgerRow, 'seq'>): Promise<readonly string[] | undefined> {
  if ((await checkMeta(adapter))?.record.version !== HISTORY_VERSION) return undefined;
  const query = { from: seq, to: seq, limit: 1, columns: ['found'] } as const;
  const [stored] = (await adapter.connection.records(history).page('bySeq', query)).records;
  return stored?.record.found ?? undefined;
}

/** A temporary table is gone already: nothing is left to take back. */
function endsWithItsSession(operation: Operation): boolean {
  return operation.type === 'createCollection' && operation.options?.sqlOptions?.temporary === true;
}
