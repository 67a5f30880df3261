import type { Adapter } from '../database/adapter.ts';
import { isSvcError, SvcError } from '../errors.ts';
import type { Origin } from './history.ts';
import { checkOwner, Ledger } from './ledger.ts';
import type { Migration } from './migration.ts';
import { apart, retold } from './retelling.ts';

/** One of a history: files run in the order of their tags on an empty database, the others are not run there. */
export interface Applied {
  readonly tag: string;
  readonly origin: Origin;
  readonly migration: Migration;
}

/** How many there are before the first file that is newer than one applied after it; all of them, usually. */
export function inTagOrder(applied: readonly Pick<Applied, 'tag' | 'origin'>[]): number {
  let count = applied.length;
  let oldest: string | undefined;
  for (const [index, { tag, origin }] of [...applied.entries()].reverse()) {
    if (origin !== 'file') continue;
    if (oldest !== undefined && tag > oldest) count = index;
    else oldest = tag;
  }
  return count;
}

/** In words, what the order of application made otherwise than the order of the tags does; why that is none, if so. */
export function disorder(applied: readonly Applied[]): readonly string[] {
  if (inTagOrder(applied) === applied.length) return [];
  const sorted: Applied[] = [];
  for (const one of applied) {
    const isLate = ({ tag, origin }: Applied): boolean => origin === 'file' && tag > one.tag;
    const at = one.origin === 'file' ? sorted.findIndex(isLate) : -1;
    sorted.splice(at < 0 ? sorted.length : at, 0, one);
  }
  try {
    const inOrder = retold(sorted.map(({ migration }) => migration));
    const told = retold(applied.map(({ migration }) => migration));
    const early = [...inOrder.found].filter((name) => !told.found.has(name));
    return [...early.map((name) => `table ${name} is changed before it is created`), ...apart(inOrder, told)];
  } catch (error) {
    if (!isSvcError(error)) throw error;
    return [`${error.where}: ${error.message}`];
  }
}

/** `disorder` of what is completed; the migrations themselves are read only where tags are out of order. */
export async function disorderOf(
  { connection }: Pick<Adapter, 'connection'>,
  ledger: Ledger,
): Promise<readonly string[]> {
  const rows = ledger.completed().map(({ row }) => row);
  return inTagOrder(rows) === rows.length ? [] : disorder(await applied(connection, ledger));
}

/** Takes no lock and writes nothing. */
export async function historyDisorder(adapter: Adapter): Promise<readonly string[]> {
  await checkOwner(adapter);
  return disorderOf(adapter, await Ledger.read(adapter.connection));
}

export async function applied(connection: Adapter['connection'], ledger: Ledger): Promise<Applied[]> {
  const completed = await ledger.migrations(connection);
  return completed.map(({ row, migration }) => ({ tag: row.tag, origin: row.origin, migration }));
}

/** Refuses files older than what is applied where they would make something else than they do on an empty database. */
export function refuseDisorder(completed: readonly Applied[], pending: readonly Migration[]): void {
  const newest = completed.reduce((last, { tag, origin }) => (origin === 'file' && tag > last ? tag : last), '');
  const older = pending.filter(({ tag }) => tag < newest).map(({ tag }) => tag);
  if (older.length === 0) return;
  const both = [
    ...completed,
    ...pending.map((migration) => ({ tag: migration.tag, origin: 'file' as const, migration })),
  ];
  const known = new Set(disorder(completed));
  const words = disorder(both).filter((line) => !known.has(line));
  if (words.length === 0) return;
  const names = older.map((tag) => `"${tag}"`).join(', ');
  throw new SvcError(
    'order_conflict',
    `Behind "${newest}", which is applied already, ${names} would make something else than before it.`,
    {
      why: `Where they run in the order of their tags it is not so: ${words.join('; ')}.`,
      state: 'Nothing was changed.',
      next: [
        ...settled(words),
        `Or, if nothing of it was applied anywhere else, give ${older.length === 1 ? 'it' : 'each'} a newer tag: the name of the file, and tag in it`,
        `Or apply all in order: svc db migrate rollback ${backTo(completed, inTagOrder(both))}, then svc db migrate`,
      ],
      details: { tags: older, differences: words },
    },
  );
}

/** What makes databases alike again that had another order. */
export function settled(words: readonly string[]): readonly string[] {
  const what = words.length === 1 ? 'it is' : 'they are';
  return [`svc db migrate create <name>    for a migration that says what ${what} to be, whatever came before`];
}

/** The option of a rollback after which so many are left. */
export function backTo(completed: readonly Pick<Applied, 'tag'>[], stays: number): string {
  const last = completed[stays - 1];
  return last ? `--to ${last.tag}` : `-n ${completed.length}`;
}
