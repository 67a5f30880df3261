import { type Exec, rowsOf } from '../../sql/session.ts';
import type { CatalogColumn, CatalogTable } from './catalog.ts';
import { behind } from './parentheses.ts';
import { quote } from './quote.ts';
import { lineOf } from './shown.ts';
import type { Traits } from './traits.ts';

/**
 * A table with the letters for which the catalog has question marks, as for all beyond the Basic Multilingual Plane, and
 * with the bytes of binary defaults.
 */
export async function unmarked(exec: Exec, traits: Traits, table: CatalogTable): Promise<CatalogTable> {
  const exact = await withLiterals(exec, traits, table);
  return traits.catalog.marksExpressions ? withExpressions(exec, traits, exact) : exact;
}

const isMarked = (value: string): boolean => value.includes('?');

/** The value of a default is what a row of columns like these gets. */
async function withLiterals(exec: Exec, { catalog }: Traits, table: CatalogTable): Promise<CatalogTable> {
  const isBytes = ({ type }: CatalogColumn) => catalog.marksExpressions && isBinary(type);
  const doubtful = table.columns.filter(
    (column) =>
      column.default &&
      'literal' in column.default &&
      (isBytes(column) || (column.charset !== null && isMarked(column.default.literal))),
  );
  if (doubtful.length === 0) return table;
  const names = doubtful.map(({ name }) => quote(name));
  const values = doubtful.map((column, index) => {
    const name = quote(column.name);
    return `${isBytes(column) ? inHex(name) : name} AS v${index}`;
  });
  const drop = `DROP TEMPORARY TABLE IF EXISTS ${ASKED}`;
  const [row] = await rowsOf(
    exec,
    `${drop}; CREATE TEMPORARY TABLE ${ASKED} (_svc_n int AUTO_INCREMENT PRIMARY KEY) SELECT ${names.join(', ')} FROM ${quote(table.name)} LIMIT 0;
INSERT INTO ${ASKED} () VALUES (); SELECT ${values.join(', ')} FROM ${ASKED}`,
  );
  await exec(drop);
  const literals = new Map(doubtful.map((column, index) => [column, String(row?.[`v${index}`])]));
  const columns = table.columns.map((column) => {
    const literal = literals.get(column);
    return literal === undefined ? column : { ...column, default: { literal } };
  });
  return { ...table, columns };
}

const isBinary = (type: string): boolean => /^(var)?binary|blob$/.test(type);

const ASKED = quote('_svc_asked');

/** A binary value as an expression that stands for it everywhere. */
export const inHex = (value: string): string => `CONCAT('0x', LOWER(HEX(${value})))`;

async function withExpressions(exec: Exec, { catalog }: Traits, table: CatalogTable): Promise<CatalogTable> {
  const isDoubtful = ({ default: found }: CatalogColumn) =>
    found !== undefined && 'expression' in found && isMarked(found.expression);
  if (!table.columns.some(isDoubtful) && !table.checks.some(({ expression }) => isMarked(expression))) return table;
  const [row] = await rowsOf(exec, `SHOW CREATE TABLE ${quote(table.name)}`);
  const shown = String(row?.['Create Table']);
  const lineOfColumn = (name: string) => lineOf(`${quote(name)} `, shown);
  return {
    ...table,
    columns: table.columns.map((column) => {
      const written = isDoubtful(column) ? behind(' DEFAULT ', lineOfColumn(column.name)) : undefined;
      const found = written === undefined ? undefined : catalog.shownDefault(written);
      return found ? { ...column, default: found } : column;
    }),
    checks: table.checks.map((check) => {
      if (!isMarked(check.expression)) return check;
      const expression = check.own
        ? behind(' CHECK ', lineOfColumn(check.name))
        : lineOf(`CONSTRAINT ${quote(check.name)} CHECK `, shown);
      return expression ? { ...check, expression } : check;
    }),
  };
}
