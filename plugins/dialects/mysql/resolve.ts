import { SvcError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json.ts';
import { type Exec, rowsOf } from '../../sql/session.ts';
import type { Asked, AskedAlter } from './asked.ts';
import { readTable } from './catalog.ts';
import { completed, following, isQuestion } from './complete.ts';
import { refuseWords } from './convert.ts';
import { numberOf } from './errors.ts';
import { fill } from './fill.ts';
import { text as literal, quote } from './quote.ts';
import type { Traits } from './traits.ts';
import { isBefore, type Version } from './version.ts';
import { COUNTED, counted, refuseRows } from './violated.ts';

export interface Asking {
  readonly exec: Exec;
  readonly traits: Traits;
  readonly version: Version;
  /** A statement may rewrite a table, and nobody write to it meanwhile. */
  readonly allowCopy: boolean;
  /** The server tells no two tables apart by the case of their names. */
  readonly foldsTables: boolean;
}

/**
 * The statement as it most likely goes, where nothing has to be asked for it; undefined for others. `NOT_SO` is what the
 * server says where it does not go like that.
 */
export function quickText(run: Json): string | undefined {
  const ask = run as unknown as Asked;
  if ('fill' in ask || isQuestion(ask) || ask.refused || ask.words) return undefined;
  if (ask.clauses.some((clause) => COPIES.test(clause) || DESCENDING.test(clause))) return undefined;
  return `${alterText(ask.table, ask.clauses)}, ${ask.clauses.some((clause) => INDEXES.test(clause)) ? ONLINE : INSTANT}`;
}

/** Clauses that no server can carry out but by a copy of the table; and those that are never instant. */
export const COPIES = /^ADD CONSTRAINT .* (FOREIGN KEY|CHECK) \(/s;
const DESCENDING = / DESC[,)]/;
const INDEXES = /^(ADD (UNIQUE |CONSTRAINT |INDEX )|DROP PRIMARY KEY)/;

/** Both let others read and write, the second except for moments at its beginning and end. */
const INSTANT = 'ALGORITHM=INSTANT';
const ONLINE = 'ALGORITHM=INPLACE, LOCK=NONE';

export const alterText = (table: string, clauses: readonly string[]): string =>
  `ALTER TABLE ${quote(table)} ${clauses.join(', ')}`;

/** Runs a statement that only the catalog can complete, in the way that stands in nobody's way. */
export async function runAsked(asking: Asking, run: Json, sent: (text: string) => void): Promise<void> {
  const ask = run as unknown as Asked;
  if ('fill' in ask) await fill(asking.exec, asking.traits, ask);
  else await alter(asking, ask, sent);
}

async function alter(asking: Asking, ask: AskedAlter, sent: (text: string) => void): Promise<void> {
  const { exec } = asking;
  const { table, modify, refused, words } = ask;
  refuseOld(asking, ask);
  if (words) await refuseWords(exec, table, words);
  const clauses = await completed(exec, asking.traits, ask);
  const text = alterText(table, clauses);
  const behind = following(asking.traits, ask, clauses).map((clause) => alterText(table, [clause]));
  sent([text, ...behind].join('; '));
  const plainly = () => altered(asking, ask, text);
  const change = modify?.numbered ? () => keepingZero(exec, plainly) : plainly;
  await takingZeros(asking, table, async () => {
    if (!refused) return change();
    if (refused.online && (await doneOnline(exec, text))) return;
    await locked(exec, table, async () => {
      await refuseRows(exec, table, refused);
      await change();
    });
  });
  for (const one of behind) await exec(one);
}

/** A row 0 is no row without a number, which the server would give it the next one for. */
const keepingZero = (exec: Exec, work: () => Promise<void>): Promise<void> =>
  withMode(exec, "CONCAT(@@sql_mode, ',NO_AUTO_VALUE_ON_ZERO')", work);

/** A default of the moment zero, which some column has, is none to the sessions of ours: the whole table would stay as it is. */
export async function takingZeros<T>({ exec, traits }: Asking, table: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (numberOf(error) !== NO_DEFAULT) throw error;
    const { columns } = await readTable(exec, traits, table);
    const isZero = columns.some(({ default: found }) => found && 'literal' in found && ZERO.test(found.literal));
    if (!isZero) throw error;
    return withMode(exec, "REPLACE(REPLACE(@@sql_mode, 'NO_ZERO_IN_DATE', ''), 'NO_ZERO_DATE', '')", work);
  }
}

const ZERO = /^\d{4}-(00-\d\d|\d\d-00)/;

async function withMode<T>(exec: Exec, mode: string, work: () => Promise<T>): Promise<T> {
  const [row] = await rowsOf(exec, 'SELECT @@sql_mode AS mode');
  await exec(`SET SESSION sql_mode = ${mode}`);
  try {
    return await work();
  } finally {
    await exec(`SET SESSION sql_mode = ${literal(String(row?.mode))}`);
  }
}

const NO_DEFAULT = 1067;

/** An older server would take the words and do something else. */
export function refuseOld({ traits, version }: Asking, { table, clauses }: AskedAlter): void {
  const missing = traits.since.find(
    (one) => isBefore(version, one.version) && clauses.some((text) => one.clause.test(text)),
  );
  if (!missing) return;
  throw new SvcError('not_supported', `This ${traits.title} server cannot have ${missing.what}: "${table}".`, {
    why: `It has version ${version.join('.')}; that came with ${missing.version.join('.')}.`,
    next: ['Leave it out, or use a newer server.'],
  });
}

/** Nobody can write a row between the look at the rows and the change. */
async function locked(exec: Exec, table: string, work: () => Promise<void>): Promise<void> {
  try {
    await exec(`LOCK TABLES ${quote(table)} WRITE`);
  } catch (error) {
    // Not every user may: then it is looked at without.
    if (!FORBIDDEN.has(numberOf(error))) throw error;
  }
  try {
    await work();
  } finally {
    await exec('UNLOCK TABLES');
  }
}

const FORBIDDEN: ReadonlySet<number | undefined> = new Set([1044, 1142]);

/** False where the server could only do it by a copy of the table: nothing has happened then. */
export async function doneOnline(exec: Exec, text: string): Promise<boolean> {
  for (const how of [INSTANT, ONLINE]) {
    try {
      await exec(`${text}, ${how}`);
      return true;
    } catch (error) {
      if (!NOT_SO.has(numberOf(error))) throw error;
    }
  }
  return false;
}

async function altered({ exec, allowCopy }: Asking, ask: AskedAlter, text: string): Promise<void> {
  if (await doneOnline(exec, text)) return;
  if (!allowCopy) await refuseCopy(exec, ask, ask.table, text);
  await exec(text);
}

/** The server cannot do it in this way; nothing has happened. */
export const NOT_SO: ReadonlySet<number | undefined> = new Set([1845, 1846, 1800, 4092]);

/** What one more look at the catalog may help with. */
export const ASKS: ReadonlySet<number | undefined> = new Set([...NOT_SO, NO_DEFAULT]);

/** A table without rows is copied in no time. Where rows are looked at first, nobody comes between that and the copy. */
export async function refuseCopy(exec: Exec, { refused }: AskedAlter, table: string, text: string): Promise<void> {
  const found = await counted(exec, quote(table));
  if (found === 0) return;
  // Beyond what is counted an estimate does.
  const rows = found > COUNTED ? await estimate(exec, table) : found;
  const told = `${found > COUNTED ? 'about ' : ''}${rows.toLocaleString('en')} ${rows === 1 ? 'row' : 'rows'}`;
  throw new SvcError('copy_required', `The table "${table}" would have to be copied, with its ${told}.`, {
    why: `Nobody could ${refused ? 'read it or ' : ''}write to it until that is done: ${text}`,
    next: ['Where that is acceptable: --allow-copy', 'Else let a tool for online schema changes do it.'],
    details: { table, rows },
  });
}

async function estimate(exec: Exec, table: string): Promise<number> {
  const [row] = await rowsOf(exec, `EXPLAIN SELECT 1 FROM ${quote(table)}`);
  return Math.max(COUNTED, Number(row?.rows ?? 0));
}
