import type { Adapter } from '../database/adapter.ts';
import { isSvcError, SvcError } from '../errors.ts';
import type { Draft } from '../schema/draft.ts';
import type { Operation } from '../schema/operation.ts';
import { HISTORY_VERSION, history } from './history.ts';
import { checkMeta, type LedgerRow } from './ledger.ts';
import type { Migration } from './migration.ts';
import { mayExist, type PlannedMigration, planMigration } from './plan.ts';
import { apart, retold } from './retelling.ts';
import { members, needs, touches } from './touches.ts';

/** The way back of one migration, from the model as it is. `completed` are all of them: what comes after it stays. */
export async function planReverse(
  adapter: Adapter,
  migration: Migration,
  row: Pick<LedgerRow, 'tag' | 'seq' | 'origin' | 'steps' | 'duration_ms'>,
  draft: Draft,
  completed: readonly Migration[] = [],
): Promise<PlannedMigration> {
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
  const left = await othersTables(adapter, migration, row);
  const later = completed.slice(completed.findIndex(({ tag }) => tag === migration.tag) + 1);
  try {
    const planned = await planMigration(adapter, migration, 'down', row.origin, draft, { leftOut: left });
    if (later.length > 0) refuseElsewhere(migration, completed, later, left);
    return planned;
  } catch (error) {
    if (!isSvcError(error)) throw error;
    const after = later.length > 0 ? ` -n ${later.length}` : ' -n <count>';
    throw new SvcError('not_reversible_now', `"${migration.tag}" cannot be rolled back from the schema as it is now.`, {
      why: [error.message, error.why].filter(Boolean).join(' '),
      state: 'Nothing was changed.',
      next: [`Roll back the migrations after it first: svc db migrate rollback${after}`],
      cause: error,
    });
  }
}

/** Names are taken anew: a way back that fits by name only ends elsewhere than the history does without it. */
function refuseElsewhere(
  migration: Migration,
  completed: readonly Migration[],
  later: readonly Migration[],
  leftOut: ReadonlySet<Operation>,
): void {
  const without = retold(completed.filter(({ tag }) => tag !== migration.tag));
  const back = retold(completed);
  const foreign = new Set(back.foreign);
  for (const operation of migration.down) if (!leftOut.has(operation)) back.tell(operation);
  for (const name of [...leftOut].flatMap(touches)) {
    const stays = without.model.get(name);
    if (stays) back.model.set(name, stays);
    else back.model.delete(name);
  }
  const elsewhere = apart(without, back);
  // Of a table that svc did not make no more is known than what operations name.
  const named = new Set(
    migration.down.filter((operation) => needs(operation).some((name) => foreign.has(name))).flatMap(members),
  );
  const again = later.filter(({ up }) => up.flatMap(members).some((name) => named.has(name))).map(({ tag }) => tag);
  if (elsewhere.length === 0 && again.length === 0) return;
  throw new SvcError('not_reversible_now', 'Its way back leads elsewhere than the history without it.', {
    why: [...elsewhere, ...again.map((tag) => `"${tag}" changes the same`)].join('; '),
  });
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
