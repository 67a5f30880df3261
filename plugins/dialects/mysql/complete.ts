import { SvcError } from '../../../core/errors.ts';
import type { Exec } from '../../sql/session.ts';
import { asItIs } from './as-it-is.ts';
import type { AskedAlter } from './asked.ts';
import { isAutomaticIndex, serves } from './automatic-index.ts';
import { nameNow } from './carried.ts';
import { type CatalogTable, readTable } from './catalog.ts';
import { isArrayCheck, PRIMARY } from './introspect.ts';
import { mergedColumn } from './merge.ts';
import { quote } from './quote.ts';
import type { Traits } from './traits.ts';

/** Whether the catalog has something to add. */
export const isQuestion = (ask: AskedAlter): boolean => {
  const { clauses, modify, dropsIndexes, dropsForeignKey, dropsCheck, arrayCheck } = ask;
  return (
    modify !== undefined ||
    arrayCheck !== undefined ||
    dropsForeignKey !== undefined ||
    dropsCheck !== undefined ||
    (dropsIndexes ?? []).length > 0 ||
    clauses.some((clause) => clause === 'DROP PRIMARY KEY' || DROPPED.test(clause))
  );
};

const DROPPED = /^DROP COLUMN `((?:[^`]|``)*)`$/;

/** The clauses, with what the catalog adds to them; it is asked about another table `like` the one to change. */
export async function completed(exec: Exec, traits: Traits, ask: AskedAlter, like = ask.table): Promise<string[]> {
  const { modify, dropsIndexes, arrayCheck } = ask;
  if (!isQuestion(ask)) return [...ask.clauses];
  const drops = [...(dropsIndexes ?? []), ...(ask.clauses.includes('DROP PRIMARY KEY') ? [PRIMARY] : [])];
  const found = await readTable(exec, traits, like);
  const table = { ...(modify ? await asItIs(exec, found, modify) : found), name: ask.table };
  const { clauses, dropsForeignKey } = withNames(traits, table, ask);
  for (const clause of clauses) {
    const [, column] = DROPPED.exec(clause) ?? [];
    if (column !== undefined) refuseShrunk(table, column.replaceAll('``', '`'), drops);
  }
  return [
    ...(arrayCheck?.drop ? arrayCheckOf(traits, table, arrayCheck.column) : []),
    ...(modify ? [`MODIFY COLUMN ${mergedColumn(traits, table, modify)}`] : []),
    ...clauses,
    ...(arrayCheck && arrayCheck.add !== '' ? [`ADD ${arrayCheck.add}`] : []),
    ...replacements(table, drops),
    ...(dropsForeignKey === undefined ? [] : withoutAutomatic(table, dropsForeignKey)),
  ];
}

/** What has to follow the clauses at once: a default that the server makes up goes away in a statement of its own only. */
export function following({ inventsZero }: Traits, { modify }: AskedAlter, clauses: readonly string[]): string[] {
  if (!inventsZero || !modify) return [];
  const column = quote(modify.column);
  const invented = clauses.some(
    (clause) => clause.startsWith(`MODIFY COLUMN ${column} `) && / NOT NULL ON UPDATE /.test(clause),
  );
  return invented ? [`ALTER COLUMN ${column} DROP DEFAULT`] : [];
}

/** What is dropped, by the names that it has by now. */
function withNames(
  traits: Traits,
  table: CatalogTable,
  ask: AskedAlter,
): Pick<AskedAlter, 'clauses' | 'dropsForeignKey'> {
  const { clauses, dropsForeignKey, dropsCheck } = ask;
  const now = (type: 'check' | 'foreignKey', name: string) => ({ from: name, to: nameNow(traits, type, name, table) });
  const key = dropsForeignKey === undefined ? undefined : now('foreignKey', dropsForeignKey);
  const check = dropsCheck === undefined ? undefined : now('check', dropsCheck);
  const renamed = [
    ...(key ? [{ ...key, drop: 'DROP FOREIGN KEY' }] : []),
    ...(check ? [{ ...check, drop: traits.dropCheck }] : []),
  ];
  return {
    clauses: clauses.map((clause) => {
      const one = renamed.find(({ drop, from }) => clause === `${drop} ${quote(from)}`);
      return one ? `${one.drop} ${quote(one.to)}` : clause;
    }),
    ...(key && { dropsForeignKey: key.to }),
  };
}

/** The server would take the column out of the index, and what was unique over two columns would be so over one. */
function refuseShrunk({ name: table, indexes }: CatalogTable, column: string, dropped: readonly string[]): void {
  const index = indexes.find(
    ({ name, columns }) => columns.length > 1 && !dropped.includes(name) && columns.some((one) => one.name === column),
  );
  if (!index) return;
  throw new SvcError('field_in_use', `The field "${table}.${column}" cannot be dropped: something uses it.`, {
    why: `The index "${index.name}", which svc did not make, has it beside other fields.`,
    next: [`Drop the index first: raw, ALTER TABLE ${quote(table)} DROP INDEX ${quote(index.name)}`],
  });
}

function arrayCheckOf(traits: Traits, { checks }: CatalogTable, column: string): string[] {
  return checks
    .filter(({ own, expression }) => !own && isArrayCheck(traits, expression, column))
    .map(({ name }) => `${traits.dropCheck} ${quote(name)}`);
}

/** An index of its own for each foreign key that nothing would serve any more. */
function replacements({ indexes, foreignKeys }: CatalogTable, dropped: readonly string[]): string[] {
  if (dropped.length === 0) return [];
  const left = indexes.filter(({ name }) => !dropped.includes(name));
  return foreignKeys
    .filter(({ columns }) => !left.some((index) => serves(index, columns)))
    .map(({ name, columns }) => `ADD INDEX ${quote(name)} (${columns.map(quote).join(', ')})`);
}

/** The index that the server made for a foreign key, dropped or left to another one that needs it. */
function withoutAutomatic({ indexes, foreignKeys }: CatalogTable, dropped: string): string[] {
  const key = foreignKeys.find(({ name }) => name === dropped);
  const index = indexes.find((one) => key && isAutomaticIndex(one, [key]));
  if (!index) return [];
  const left = indexes.filter((one) => one !== index);
  const heir = foreignKeys.find(
    ({ name, columns }) => name !== dropped && serves(index, columns) && !left.some((other) => serves(other, columns)),
  );
  return [heir ? `RENAME INDEX ${quote(index.name)} TO ${quote(heir.name)}` : `DROP INDEX ${quote(index.name)}`];
}
