import type { Foreseen, Statement } from '../../../core/dialect.ts';
import { isSvcError, SvcError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json.ts';
import { type Exec, rowsOf } from '../../sql/session.ts';
import { isUsers } from '../../sql/text.ts';
import type { Asked, AskedAlter } from './asked.ts';
import { readTable } from './catalog.ts';
import { completed } from './complete.ts';
import { refuseWords } from './convert.ts';
import { numberOf } from './errors.ts';
import { type MadeKey, unjoined } from './joined.ts';
import { quote, text } from './quote.ts';
import { heldElsewhere } from './referenced.ts';
import { type Asking, alterText, COPIES, doneOnline, refuseCopy, refuseOld, takingZeros } from './resolve.ts';
import { refuseRows } from './violated.ts';
import type { Violating } from './violating.ts';

interface Change {
  readonly text: string;
  readonly statement: number;
  readonly ask: AskedAlter;
  /** Nothing before it in the run changes its columns or what is in them. */
  readonly untouched: boolean;
  /** What can be asked of the tables as they are. */
  readonly violating: readonly Violating[];
}

/**
 * What the server, its version and the tables as they are refuse, before a step of the run has changed anything. There
 * is no word in SQL that tells how an ALTER would go: it is tried on a copy of the table that has no rows.
 */
export async function foresee(asking: Asking, statements: readonly Statement[]): Promise<Foreseen | undefined> {
  const { exec, foldsTables } = asking;
  const [folded] = foldsTables ? foldedOf(statements) : [];
  if (folded) return folded;
  // A single one leaves nothing behind when it is refused as it runs.
  if (statements.length <= 1) return undefined;
  const { changes, dropped, keys } = changesOf(statements);
  const found = [...(await heldElsewhere(exec, dropped)), ...(await unjoined(exec, asking.traits, keys))];
  for (const table of await filled(exec, [...changes.keys()])) {
    const refused = await refusedOf(asking, table, changes.get(table) ?? []);
    if (refused) found.push(refused);
  }
  return found.sort((a, b) => a.statement - b.statement)[0];
}

/** Tables whose name the catalog would give back as another one. */
function foldedOf(statements: readonly Statement[]): Foreseen[] {
  return statements.flatMap(({ run }, statement) => {
    if (isUsers(run)) return [];
    const { table = tableOf(run), clauses = [] } = run as unknown as Partial<AskedAlter>;
    const name = [table, renamedTo(clauses)].find((one) => one !== undefined && one !== one.toLowerCase());
    if (name === undefined) return [];
    const error = new SvcError('name_invalid', `The name "${name}" cannot be used for a table on this server.`, {
      why: 'It tells no names of tables apart by their case (lower_case_table_names), and svc does.',
      next: ['Write it in lower case.'],
    });
    return [{ statement, error }];
  });
}

interface Changes {
  readonly changes: ReadonlyMap<string, readonly Change[]>;
  /** The statement that drops a table. */
  readonly dropped: ReadonlyMap<string, number>;
  /** Foreign keys that are made, at tables as they are at the start. */
  readonly keys: readonly MadeKey[];
}

/** By the name that a table has at the start, what is done to it up to where nobody can say how it looks. */
export function changesOf(statements: readonly Statement[]): Changes {
  const changes = new Map<string, Change[]>();
  const dropped = new Map<string, number>();
  const keys: MadeKey[] = [];
  /** Of tables that were made, dropped or renamed: the name at the start, if it was there. */
  const names = new Map<string, string | undefined>();
  const atStart = (name: string): string | undefined => (names.has(name) ? names.get(name) : name);
  /** Columns that are made, changed or dropped, of tables by their name at the start. */
  const touched = new Map<string, readonly string[]>();
  let byUser = false;
  const isUntouched = (table: string, columns: readonly string[]): boolean =>
    !byUser && !names.has(table) && !columns.some((column) => touched.get(table)?.includes(column));
  for (const [statement, { run, text }] of statements.entries()) {
    if (isUsers(run)) {
      byUser = true;
      if (MAY_EMPTY.test(text)) break;
      continue;
    }
    const whole = tableOf(run);
    if (whole !== undefined) {
      const there = atStart(whole);
      if (there !== undefined && text.startsWith('DROP TABLE ')) dropped.set(there, statement);
      names.set(whole, undefined);
      continue;
    }
    const ask = run as unknown as Asked;
    if ('fill' in ask) continue;
    const table = atStart(ask.table);
    const renamed = renamedTo(ask.clauses);
    if (renamed !== undefined) names.set(ask.table, undefined).set(renamed, table);
    for (const { joins } of ask.violating ?? []) {
      if (!joins || !isUntouched(joins.parent, joins.target)) continue;
      const there = isUntouched(ask.table, joins.columns);
      keys.push({ ...joins, statement, table: ask.table, there });
    }
    if (table === undefined) continue;
    const columns = touchedBy(ask);
    const violating = (ask.violating ?? []).filter(({ reads }) =>
      Object.entries(reads).every(([from, read]) => isUntouched(from, read)),
    );
    const change = { statement, ask, text, untouched: isUntouched(table, columns), violating };
    changes.set(table, [...(changes.get(table) ?? []), change]);
    touched.set(table, [...(touched.get(table) ?? []), ...columns]);
  }
  return { changes, dropped, keys };
}

function touchedBy({ clauses, modify }: AskedAlter): string[] {
  const named = clauses.flatMap((clause) => COLUMNS.exec(clause)?.slice(1) ?? []);
  const columns = named.flatMap((name?: string) => name?.replaceAll('``', '`') ?? []);
  return modify ? [...columns, modify.column] : columns;
}

const COLUMNS = /^(?:ADD|DROP|RENAME) COLUMN `((?:[^`]|``)*)`(?: TO `((?:[^`]|``)*)`)?/;

/** A text of a user behind which a table may be another one, or without rows. */
const MAY_EMPTY = /\b(alter|call|create|delete|drop|execute|load|rename|truncate)\b/i;
const renamedTo = (clauses: readonly string[]): string | undefined =>
  clauses.flatMap((clause) => RENAMED.exec(clause)?.[1]?.replaceAll('``', '`') ?? [])[0];
const RENAMED = /^RENAME TO `((?:[^`]|``)*)`$/;

/** The table that a text of ours creates or drops. */
function tableOf(run: Json): string | undefined {
  const [, behind] = Array.isArray(run) ? run : [];
  return /^`((?:[^`]|``)*)`/.exec(String(behind))?.[1]?.replaceAll('``', '`');
}

/** Those that are there and have rows. */
async function filled(exec: Exec, tables: readonly string[]): Promise<string[]> {
  if (tables.length === 0) return [];
  const there = await rowsOf(
    exec,
    `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE' AND table_name IN (${tables.map(text).join(', ')})`,
  );
  const found: string[] = [];
  for (const name of there.map((row) => String(row.name)).filter((name) => tables.includes(name))) {
    if ((await rowsOf(exec, `SELECT 1 FROM ${quote(name)} LIMIT 1`)).length > 0) found.push(name);
  }
  return found;
}

const REHEARSAL = '_svc_rehearsal';

/** The first of the changes that is refused. */
async function refusedOf(asking: Asking, table: string, changes: readonly Change[]): Promise<Foreseen | undefined> {
  const { exec, allowCopy } = asking;
  const drop = `DROP TABLE IF EXISTS ${quote(REHEARSAL)}`;
  let made = false;
  try {
    // One that was left by a process that died.
    await takingZeros(asking, table, () => exec(`${drop}; CREATE TABLE ${quote(REHEARSAL)} LIKE ${quote(table)}`));
    made = true;
    if (changes.some(({ ask }) => ask.clauses.some((clause) => CHECK_DROPPED.test(clause)))) await dropChecks(asking);
    for (const { statement, ask, text, untouched, violating } of changes) {
      try {
        refuseOld(asking, ask);
        // Other conditions are on columns that may be others by then.
        if (ask.refused && (untouched || ask.refused.rows === 'TRUE')) await refuseRows(exec, table, ask.refused);
        if (ask.words && untouched) await refuseWords(exec, table, ask.words);
        for (const one of violating) await refuseAsIs(exec, table, one);
        if (!allowCopy && !(await isOnline(asking, ask))) {
          await refuseCopy(exec, ask, table, text);
        }
      } catch (error) {
        if (isSvcError(error)) return { statement, error };
        throw error;
      }
    }
    return undefined;
  } catch (error) {
    // What the copy cannot show the step itself tells.
    if (numberOf(error) === undefined) throw error;
    return undefined;
  } finally {
    if (made) await exec(drop);
  }
}

/** What cannot be asked of the tables as they are the step itself tells. */
async function refuseAsIs(exec: Exec, table: string, violating: Violating): Promise<void> {
  try {
    await refuseRows(exec, table, violating);
  } catch (error) {
    if (numberOf(error) === undefined) throw error;
  }
}

const CHECK_DROPPED = /^DROP (CHECK|CONSTRAINT) /;

/** A run that drops one is tried without any: those of the copy have other names on MySQL, which hang on to their fields. */
async function dropChecks({ exec, traits }: Asking): Promise<void> {
  const { checks } = await readTable(exec, traits, REHEARSAL);
  const clauses = checks.filter(({ own }) => !own).map(({ name }) => `${traits.dropCheck} ${quote(name)}`);
  if (clauses.length > 0) await exec(alterText(REHEARSAL, clauses));
}

/** Clauses that the copy is spared: it keeps its name and has no foreign keys. */
const ABSENT: readonly RegExp[] = [RENAMED, CHECK_DROPPED, /^DROP FOREIGN KEY /];

/** Whether the server does it online to the copy of the table. */
async function isOnline(asking: Asking, ask: AskedAlter): Promise<boolean> {
  const { exec, traits } = asking;
  if (ask.clauses.some((clause) => COPIES.test(clause))) return false;
  const clauses = ask.clauses.filter((clause) => !ABSENT.some((one) => one.test(clause)));
  const rehearsed = await completed(exec, traits, { ...ask, clauses }, REHEARSAL);
  if (rehearsed.length === 0) return true;
  return takingZeros(asking, REHEARSAL, () => doneOnline(exec, alterText(REHEARSAL, rehearsed)));
}
