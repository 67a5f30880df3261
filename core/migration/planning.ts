import type { Adapter } from '../database/adapter.ts';
import { isSvcError, SvcError } from '../errors.ts';
import type { Draft } from '../schema/draft.ts';
import { checkMeta, checkOwner, Ledger, type LedgerEntry } from './ledger.ts';
import { type PlannedMigration, planMigration } from './plan.ts';
import { type Defined, reconcile, refuseTrouble } from './reconcile.ts';
import { draftFor } from './references.ts';
import { planReverse } from './reverse.ts';
import type { RollbackOptions, RunOptions } from './run-options.ts';

/** What `migrate` would run. Takes no lock and writes nothing. */
export async function plan(
  adapter: Adapter,
  defined: readonly Defined[],
  options: RunOptions = {},
): Promise<PlannedMigration[]> {
  return planUp(adapter, await readable(adapter, options), defined, options);
}

/** What `rollback` would run. Takes no lock and writes nothing. */
export async function planRollback(adapter: Adapter, options: RollbackOptions = {}): Promise<PlannedMigration[]> {
  return planDown(adapter, await readable(adapter, options), options);
}

export async function readable(adapter: Adapter, options: RunOptions): Promise<Ledger> {
  await (options.adopt ? checkMeta(adapter) : checkOwner(adapter));
  return Ledger.read(adapter.connection);
}

export async function planUp(
  adapter: Adapter,
  ledger: Ledger,
  defined: readonly Defined[],
  options: RunOptions,
): Promise<PlannedMigration[]> {
  const standing = reconcile(defined, ledger);
  refuseTrouble(standing);
  const pending = chosen(standing.pending, options.to).filter(
    ({ tag }) => ledger.entries.get(tag)?.row.status !== 'applying',
  );
  if (pending.length === 0) return [];
  const draft = await draftFor(
    adapter,
    ledger,
    pending.flatMap(({ migration }) => migration.up),
  );
  const planned: PlannedMigration[] = [];
  for (const { migration } of pending) planned.push(await planPending(adapter, migration, draft, ledger));
  if (!options.allowDestructive && !options.confirm) refuseDestructive(planned);
  return planned;
}

async function planPending(
  adapter: Adapter,
  migration: Defined['migration'],
  draft: Draft,
  ledger: Ledger,
): Promise<PlannedMigration> {
  if (migration.up.length === 0) {
    throw new SvcError('migration_invalid', `The migration "${migration.tag}" has no operations yet.`, {
      why: 'Applied as it is it could not be edited any more.',
      state: 'Nothing was changed.',
      next: ['Write its up and down, or remove the file.'],
    });
  }
  try {
    return await planMigration(adapter, migration, 'up', 'file', draft);
  } catch (error) {
    const maker = isSvcError(error) && error.code === 'collection_exists' ? makerOf(migration, ledger) : undefined;
    if (!maker) throw error;
    throw new SvcError(
      'origin_conflict',
      `"${migration.tag}" creates a table that already exists: "${maker.row.tag}" made it through the API.`,
      {
        state: 'Nothing was changed.',
        next: [
          `svc db migrate export    writes the API's migrations as files; then remove what ${migration.tag} repeats`,
        ],
        cause: error,
      },
    );
  }
}

/** The API's migration that made a table which a file wants to create. */
function makerOf(migration: Defined['migration'], ledger: Ledger): LedgerEntry | undefined {
  const wanted = new Set(
    migration.up.flatMap((operation) => (operation.type === 'createCollection' ? [operation.name] : [])),
  );
  return ledger
    .completed()
    .find(
      ({ row, migration: made }) =>
        row.origin !== 'file' &&
        made?.up.some((operation) => operation.type === 'createCollection' && wanted.has(operation.name)),
    );
}

export async function planDown(
  adapter: Adapter,
  ledger: Ledger,
  options: RollbackOptions,
): Promise<PlannedMigration[]> {
  const failed = reconcile([], ledger).failed;
  refuseTrouble({ pending: [], interrupted: [], edited: [], missing: [], failed });
  const completed = await ledger.migrations(adapter.connection);
  const back = options.to === undefined ? completed.slice(-(options.count ?? 1)) : after(completed, options.to);
  back.reverse();
  const draft = await draftFor(
    adapter,
    ledger,
    back.flatMap(({ migration }) => migration.down),
  );
  const planned: PlannedMigration[] = [];
  for (const { migration, row } of back) planned.push(await planReverse(adapter, migration, row, draft));
  return planned;
}

function after<T extends LedgerEntry>(completed: readonly T[], tag: string): T[] {
  const index = completed.findIndex(({ row }) => row.tag === tag);
  if (index < 0) throw unknownTag(tag, 'It is not among the completed migrations.');
  return completed.slice(index + 1);
}

export function chosen(pending: readonly Defined[], to: string | undefined): readonly Defined[] {
  return to === undefined ? pending : pending.filter(({ tag }) => tag <= to);
}

export function unknownTag(tag: string, why: string): SvcError {
  return new SvcError('migration_unknown', `There is no migration "${tag}" here.`, {
    why,
    state: 'Nothing was changed.',
    next: ['svc db migrate status'],
  });
}

export function tellOutOfOrder(planned: readonly PlannedMigration[], ledger: Ledger, { onEvent }: RunOptions): void {
  const files = ledger.completed().filter(({ row }) => row.origin === 'file');
  const newest =
    files
      .map(({ row }) => row.tag)
      .sort()
      .at(-1) ?? '';
  const older = planned.filter(({ tag }) => tag < newest).map(({ tag }) => tag);
  if (older.length === 0) return;
  const message = `Older than "${newest}", which is applied already, as after a branch merge: ${older.join(', ')}. The history keeps the order of application.`;
  onEvent?.({ type: 'notice', message });
}

function refuseDestructive(planned: readonly PlannedMigration[]): void {
  const lost = planned.flatMap(({ tag, statements }) =>
    statements.filter(({ destructive }) => destructive).map(({ text }) => `${tag}: ${text}`),
  );
  if (lost.length === 0) return;
  throw new SvcError(
    'destructive',
    `${lost.length} pending ${lost.length === 1 ? 'statement destroys' : 'statements destroy'} data.`,
    {
      why: lost.slice(0, 3).join('; '),
      state: 'Nothing was changed.',
      next: ['Look first: svc db migrate --dry-run', 'Then: svc db migrate --allow-destructive'],
      details: { statements: lost },
    },
  );
}

/** Between the question and the lock others may have applied some of it: less is fine, more was not agreed to. */
export function refuseUnseen(
  planned: readonly PlannedMigration[],
  confirmed: readonly PlannedMigration[] | undefined,
): void {
  if (!confirmed) return;
  const seen = new Map(confirmed.map(({ tag, checksum }) => [tag, checksum]));
  const unseen = planned.find(({ tag, checksum }) => seen.get(tag) !== checksum);
  if (!unseen) return;
  throw new SvcError('check_failed', `"${unseen.tag}" came in between: the plan is not the one that was shown.`, {
    state: 'Nothing was changed.',
    next: ['Run the command again.'],
  });
}
