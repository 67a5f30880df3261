import type { Adapter } from '../database/adapter.ts';
import { isSvcError, SvcError } from '../errors.ts';
import type { Draft } from '../schema/draft.ts';
import { countedBefore, isWayBack, underway } from './half-done.ts';
import { checkMeta, checkOwner, Ledger, type LedgerEntry } from './ledger.ts';
import { Made } from './made.ts';
import { type Applied, applied, backTo, disorder, inTagOrder, refuseDisorder } from './order.ts';
import { type PlannedMigration, planMigration } from './plan.ts';
import { type Defined, reconcile, refuseTrouble } from './reconcile.ts';
import { draftFor } from './references.ts';
import { rest } from './resume.ts';
import { elsewhere, type PlannedReverse, planReverse } from './reverse.ts';
import type { RollbackOptions, RunOptions } from './run-options.ts';

/** What `migrate` would run, the rest of what was interrupted first. Takes no lock and writes nothing. */
export async function plan(
  adapter: Adapter,
  defined: readonly Defined[],
  options: RunOptions = {},
): Promise<PlannedMigration[]> {
  return asSent(adapter, await planAll(adapter, await readable(adapter, options), defined, options));
}

/** What `rollback` would run, the rest of what was interrupted first. Takes no lock and writes nothing. */
export async function planRollback(adapter: Adapter, options: RollbackOptions = {}): Promise<PlannedMigration[]> {
  const ledger = await readable(adapter, options);
  return asSent(adapter, await planAllDown(adapter, ledger, staying(ledger, options)));
}

/** With the texts that the engine will be sent, where only its catalog tells all of them. */
async function asSent({ connection }: Adapter, planned: readonly PlannedMigration[]): Promise<PlannedMigration[]> {
  const texts = (await connection.texts?.(planned.flatMap(({ statements }) => statements)))?.values();
  return planned.map((one) => ({
    ...one,
    statements: one.statements.map((statement) => ({ ...statement, text: texts?.next().value ?? statement.text })),
  }));
}

/** `planUp` before the lock, on the history as it will be. */
export async function planAll(
  adapter: Adapter,
  ledger: Ledger,
  defined: readonly Defined[],
  options: RunOptions,
): Promise<PlannedMigration[]> {
  const { first, behind } = await settling(adapter, ledger);
  const back = new Set(first.flatMap(({ tag, direction }) => (direction === 'down' ? [tag] : [])));
  return [...first, ...(await planUp(adapter, behind, defined, options, back))];
}

/** `planDown` before the lock, on the history as it will be. */
export async function planAllDown(
  adapter: Adapter,
  ledger: Ledger,
  stays: LedgerEntry | undefined,
): Promise<PlannedMigration[]> {
  const { first, behind } = await settling(adapter, ledger);
  return [...first, ...(await planDown(adapter, behind, stays))];
}

/** What a run does first, which is to finish what was interrupted, and the history as it is behind that. */
async function settling(
  adapter: Adapter,
  ledger: Ledger,
): Promise<{ readonly first: readonly PlannedMigration[]; readonly behind: Ledger }> {
  const { interrupted } = reconcile([], ledger);
  if (interrupted.length === 0) return { first: [], behind: ledger };
  const first: PlannedMigration[] = [];
  for (const entry of interrupted) first.push(await rest(adapter, entry));
  return { first, behind: await Ledger.settled(adapter.connection) };
}

export async function readable(adapter: Adapter, options: RunOptions): Promise<Ledger> {
  await (options.adopt ? checkMeta(adapter) : checkOwner(adapter));
  return Ledger.read(adapter.connection);
}

/** Those in `back` were on their way back when they were interrupted: neither they nor what comes after them is applied by the same run. */
export async function planUp(
  adapter: Adapter,
  ledger: Ledger,
  defined: readonly Defined[],
  options: RunOptions,
  back: ReadonlySet<string>,
): Promise<PlannedMigration[]> {
  const standing = reconcile(defined, ledger);
  refuseTrouble(standing);
  const wanted = chosen(standing.pending, options.to);
  const held = wanted.findIndex(({ tag }) => back.has(tag));
  const pending = held < 0 ? wanted : wanted.slice(0, held);
  if (pending.length === 0) return [];
  const completed = await applied(adapter.connection, ledger);
  const draft = await draftFor(
    adapter,
    ledger,
    pending.flatMap(({ migration }) => migration.up),
  );
  const made = new Made();
  const planned: PlannedMigration[] = [];
  for (const { migration } of pending) planned.push(await planPending(adapter, migration, draft, made, ledger));
  refuseDisorder(
    completed,
    pending.map(({ migration }) => migration),
  );
  if (!options.allowDestructive && !options.confirm) refuseDestructive(planned);
  return planned;
}

async function planPending(
  adapter: Adapter,
  migration: Defined['migration'],
  draft: Draft,
  made: Made,
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
    return await planMigration(adapter, migration, 'up', 'file', draft, { made });
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

/**
 * The last migration that stays, from which on a rollback means the same however often it is run; none where all go.
 * One whose rollback was interrupted is the first that is counted.
 */
export function staying(ledger: Ledger, { to, count = 1 }: RollbackOptions): LedgerEntry | undefined {
  const { failed, interrupted } = reconcile([], ledger);
  refuseTrouble({ pending: [], interrupted: [], edited: [], missing: [], failed });
  refuseUnderway(ledger);
  const completed = ledger.completed();
  const [begun] = interrupted;
  if (to === undefined) {
    if (!begun) return completed.at(-1 - count);
    if (count > 1) throw countedBefore(begun);
    return completed.at(-1);
  }
  const stays = completed.find(({ row }) => row.tag === to);
  if (!stays) throw unknownTag(to, 'It is not among the completed migrations.');
  return stays;
}

/** Refuses a rollback beside a migration that is on its way up: to go on with it is not to go back. */
export function refuseUnderway(ledger: Ledger): void {
  const up = reconcile([], ledger).interrupted.find(({ row }) => !isWayBack(row));
  if (up) throw underway(up);
}

/** The way back to it. */
export async function planDown(
  adapter: Adapter,
  ledger: Ledger,
  stays: LedgerEntry | undefined,
): Promise<PlannedMigration[]> {
  const completed = await ledger.migrations(adapter.connection);
  const back = completed.filter(({ row }) => row.seq > (stays?.row.seq ?? 0)).reverse();
  const draft = await draftFor(
    adapter,
    ledger,
    back.flatMap(({ migration }) => migration.down),
  );
  const planned: PlannedReverse[] = [];
  for (const { migration, row } of back) planned.push(await planReverse(adapter, migration, row, draft));
  refuseMisled(planned, await applied(adapter.connection, ledger));
  return planned;
}

/** The way back of a file was written for what comes before it in the order of the tags, not of application. */
function refuseMisled(planned: readonly PlannedReverse[], completed: readonly Applied[]): void {
  const staying = completed.slice(0, completed.length - planned.length);
  const isNewer = (tag: string): boolean => staying.some((one) => one.origin === 'file' && one.tag > tag);
  const misled = planned.find(({ tag, origin }) => origin === 'file' && isNewer(tag)) ?? planned.at(-1);
  if (!misled || (!isNewer(misled.tag) && disorder(staying).length === 0)) return;
  const words = elsewhere(
    planned,
    completed.map(({ migration }) => migration),
  );
  if (words.length === 0) return;
  throw new SvcError('not_reversible_now', `The way back of "${misled.tag}" leads elsewhere than what was before it.`, {
    why: `It was applied behind a newer one, which its way back does not know: ${words.join('; ')}.`,
    state: 'Nothing was changed.',
    next: [
      `Take that back as well: svc db migrate rollback ${backTo(completed, inTagOrder(completed))}`,
      `Or undo it by hand, then: svc db migrate resolve ${misled.tag} --rolled-back`,
    ],
    details: { tag: misled.tag, differences: words },
  });
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
  const lost = planned.flatMap((one) => losses(one).map((text) => `${one.tag}: ${text}`));
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

const losses = ({ statements }: PlannedMigration): readonly string[] =>
  statements.filter(({ destructive }) => destructive).map(({ text }) => text);

/**
 * Between the question and the lock others may have applied some of it: less is fine, more was not agreed to. What they
 * have made holds their data by now.
 */
export function refuseUnseen(
  planned: readonly PlannedMigration[],
  confirmed: readonly PlannedMigration[] | undefined,
): void {
  if (!confirmed) return;
  const seen = new Map(confirmed.map((one) => [one.tag, one]));
  const unseen = planned.find((one) => {
    const shown = seen.get(one.tag);
    return shown?.checksum !== one.checksum || losses(one).length > losses(shown).length;
  });
  if (!unseen) return;
  throw new SvcError('check_failed', `"${unseen.tag}" came in between: the plan is not the one that was shown.`, {
    state: 'Nothing was changed.',
    next: ['Run the command again.'],
  });
}
