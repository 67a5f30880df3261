import { SvcError } from '../../../../core/errors.ts';
import { type ExecSql, rowsOf } from '../../sql/session.ts';
import { quoteIdentifier, quoteLiteral } from '../compile/literal.ts';
import type { ModifyColumn } from '../compile/step.ts';
import { parseLabels } from '../compile/types.ts';
import { acceptsValue } from '../data/conversion-checks.ts';
import type { Traits } from '../variant.ts';
import type { CatalogColumn, CatalogTable } from './catalog-table.ts';
import { lineOf, textAfter } from './show-create-table.ts';

const PROBE = quoteIdentifier('_svc_probe');

/**
 * The table with the exact definition of a column that a change has to repeat. The catalog returns question marks for
 * supplementary characters (beyond the Basic Multilingual Plane). A default is read back from a probe table; throws
 * `not_supported` for anything else that would be lost.
 */
export async function withExactColumn(exec: ExecSql, table: CatalogTable, modify: ModifyColumn): Promise<CatalogTable> {
  const column = table.columns.find(({ name }) => name === modify.column);
  if (!column) return table;
  await assertExpressionsPreserved(exec, table, column, modify);
  const labels = modify.type === undefined ? parseLabels(column.type).filter(mayHaveLost) : [];
  const found = modify.default === undefined ? column.default : undefined;
  const isInexact = found !== undefined && 'literal' in found && column.charset !== null && mayHaveLost(found.literal);
  if (labels.length === 0 && !isInexact) return table;
  const name = quoteIdentifier(column.name);
  const drop = `DROP TABLE IF EXISTS ${PROBE}`;
  try {
    // A dead process may have left one.
    await exec(
      `${drop}; CREATE TABLE ${PROBE} (_svc_n int AUTO_INCREMENT PRIMARY KEY) SELECT ${name} FROM ${quoteIdentifier(table.name)} LIMIT 0`,
    );
    for (const label of labels)
      if (!(await acceptsValue(exec, `INSERT INTO ${PROBE} (${name}) VALUES (${quoteLiteral(label)})`)))
        throw lostCharacters(column, 'A value of its type');
    if (!isInexact) return table;
    const [row] = await rowsOf(
      exec,
      `DELETE FROM ${PROBE}; INSERT INTO ${PROBE} () VALUES (); SELECT ${name} AS value FROM ${PROBE}`,
    );
    const exact = { ...column, default: { literal: String(row?.value) } };
    return { ...table, columns: table.columns.map((one) => (one === column ? exact : one)) };
  } finally {
    await exec(drop);
  }
}

/** The catalog may have replaced a character. */
const mayHaveLost = (value: string): boolean => value.includes('?');

/** An expression with a character beyond ASCII or a question mark must also be in SHOW CREATE TABLE. */
async function assertExpressionsPreserved(
  exec: ExecSql,
  table: CatalogTable,
  column: CatalogColumn,
  modify: ModifyColumn,
): Promise<void> {
  const found = modify.default === undefined ? column.default : undefined;
  const expressions = [
    found && 'expression' in found ? found.expression : '',
    column.generated,
    ...table.checks
      .filter(({ name, ofColumn }) => ofColumn && name === column.name)
      .map(({ expression }) => expression),
  ];
  const inexact = expressions.filter((expression) => /[?\u0080-\uffff]/.test(expression));
  if (inexact.length === 0) return;
  const [row] = await rowsOf(exec, `SHOW CREATE TABLE ${quoteIdentifier(table.name)}`);
  const shown = String(row?.['Create Table']);
  // In MySQL the catalog returns the character, and SHOW CREATE TABLE a question mark for each byte.
  const replaced = (expression: string) => expression.replace(/[\u{10000}-\u{10ffff}]/gu, '????');
  if (!inexact.every((expression) => shown.includes(expression) || shown.includes(replaced(expression))))
    throw lostCharacters(column, 'An expression in its definition');
}

function lostCharacters({ name }: CatalogColumn, what: string): SvcError {
  return new SvcError('not_supported', `The definition of "${name}" would not survive the change.`, {
    why: `${what} contains characters that the catalog does not return, and the change must repeat it.`,
    next: ['Change the field with a raw statement that contains its whole definition.'],
  });
}

/** The table with exact supplementary characters and binary defaults, for which the catalog has question marks, or the bytes before a zero. */
export async function withExactDefaults(exec: ExecSql, traits: Traits, table: CatalogTable): Promise<CatalogTable> {
  const exact = await withExactLiterals(exec, table);
  return traits.catalog.expressionsLoseCharacters ? withExactExpressions(exec, traits, exact) : exact;
}

/** Reads each default from a row of a probe table with the same columns. */
async function withExactLiterals(exec: ExecSql, table: CatalogTable): Promise<CatalogTable> {
  const isBytes = ({ type }: CatalogColumn) => isBinary(type);
  const inexact = table.columns.filter(
    (column) =>
      column.default &&
      'literal' in column.default &&
      (isBytes(column) || (column.charset !== null && mayHaveLost(column.default.literal))),
  );
  if (inexact.length === 0) return table;
  const names = inexact.map(({ name }) => quoteIdentifier(name));
  const values = inexact.map((column, index) => {
    const name = quoteIdentifier(column.name);
    return `${isBytes(column) ? hexSql(name) : name} AS v${index}`;
  });
  const drop = `DROP TEMPORARY TABLE IF EXISTS ${DEFAULTS_PROBE}`;
  const [row] = await rowsOf(
    exec,
    `${drop}; CREATE TEMPORARY TABLE ${DEFAULTS_PROBE} (_svc_n int AUTO_INCREMENT PRIMARY KEY) SELECT ${names.join(', ')} FROM ${quoteIdentifier(table.name)} LIMIT 0;
INSERT INTO ${DEFAULTS_PROBE} () VALUES (); SELECT ${values.join(', ')} FROM ${DEFAULTS_PROBE}`,
  );
  await exec(drop);
  const literals = new Map(inexact.map((column, index) => [column, String(row?.[`v${index}`])]));
  const columns = table.columns.map((column) => {
    const literal = literals.get(column);
    return literal === undefined ? column : { ...column, default: { literal } };
  });
  return { ...table, columns };
}

const isBinary = (type: string): boolean => /^(var)?binary|blob$/.test(type);

const DEFAULTS_PROBE = quoteIdentifier('_svc_defaults');

/** An expression that returns a binary value as a hexadecimal literal. */
export const hexSql = (value: string): string => `CONCAT('0x', LOWER(HEX(${value})))`;

async function withExactExpressions(exec: ExecSql, { catalog }: Traits, table: CatalogTable): Promise<CatalogTable> {
  const isInexact = ({ default: found }: CatalogColumn) =>
    found !== undefined && 'expression' in found && mayHaveLost(found.expression);
  if (!table.columns.some(isInexact) && !table.checks.some(({ expression }) => mayHaveLost(expression))) return table;
  const [row] = await rowsOf(exec, `SHOW CREATE TABLE ${quoteIdentifier(table.name)}`);
  const shown = String(row?.['Create Table']);
  const lineOfColumn = (name: string) => lineOf(`${quoteIdentifier(name)} `, shown);
  return {
    ...table,
    columns: table.columns.map((column) => {
      const written = isInexact(column) ? textAfter(' DEFAULT ', lineOfColumn(column.name)) : undefined;
      const found = written === undefined ? undefined : catalog.parseShownDefault(written);
      return found ? { ...column, default: found } : column;
    }),
    checks: table.checks.map((check) => {
      if (!mayHaveLost(check.expression)) return check;
      const expression = check.ofColumn
        ? textAfter(' CHECK ', lineOfColumn(check.name))
        : lineOf(`CONSTRAINT ${quoteIdentifier(check.name)} CHECK `, shown);
      return expression ? { ...check, expression } : check;
    }),
  };
}
