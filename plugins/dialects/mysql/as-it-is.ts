import { SvcError } from '../../../core/errors.ts';
import { type Exec, rowsOf } from '../../sql/session.ts';
import type { Modify } from './asked.ts';
import type { CatalogColumn, CatalogTable } from './catalog.ts';
import { isTaken } from './convert.ts';
import { quote, text } from './quote.ts';
import { labelsOf } from './types.ts';

const PROBE = quote('_svc_probe');

/**
 * The table with what the change of a column writes again as the server has it. The catalog's own character set ends
 * with the Basic Multilingual Plane, and there is a question mark for what lies beyond: a default is asked from a
 * column like it, and what nothing brings back is refused.
 */
export async function asItIs(exec: Exec, table: CatalogTable, modify: Modify): Promise<CatalogTable> {
  const column = table.columns.find(({ name }) => name === modify.column);
  if (!column) return table;
  await refuseLostExpressions(exec, table, column, modify);
  const labels = modify.type === undefined ? labelsOf(column.type).filter(isMarked) : [];
  const found = modify.default === undefined ? column.default : undefined;
  const isAsked = found !== undefined && 'literal' in found && column.charset !== null && isMarked(found.literal);
  if (labels.length === 0 && !isAsked) return table;
  const name = quote(column.name);
  const drop = `DROP TABLE IF EXISTS ${PROBE}`;
  try {
    // One that was left by a process that died.
    await exec(
      `${drop}; CREATE TABLE ${PROBE} (_svc_n int AUTO_INCREMENT PRIMARY KEY) SELECT ${name} FROM ${quote(table.name)} LIMIT 0`,
    );
    for (const label of labels)
      if (!(await isTaken(exec, `INSERT INTO ${PROBE} (${name}) VALUES (${text(label)})`)))
        throw lost(column, 'A word of its type');
    if (!isAsked) return table;
    const [row] = await rowsOf(
      exec,
      `DELETE FROM ${PROBE}; INSERT INTO ${PROBE} () VALUES (); SELECT ${name} AS value FROM ${PROBE}`,
    );
    const asked = { ...column, default: { literal: String(row?.value) } };
    return { ...table, columns: table.columns.map((one) => (one === column ? asked : one)) };
  } finally {
    await exec(drop);
  }
}

const isMarked = (value: string): boolean => value.includes('?');

/** An expression of letters beyond ASCII, or with a question mark, has to stand in SHOW CREATE TABLE as well. */
async function refuseLostExpressions(
  exec: Exec,
  table: CatalogTable,
  column: CatalogColumn,
  modify: Modify,
): Promise<void> {
  const found = modify.default === undefined ? column.default : undefined;
  const written = [
    found && 'expression' in found ? found.expression : '',
    column.generated,
    ...table.checks.filter(({ name, own }) => own && name === column.name).map(({ expression }) => expression),
  ];
  const doubtful = written.filter((expression) => /[?\u0080-\uffff]/.test(expression));
  if (doubtful.length === 0) return;
  const [row] = await rowsOf(exec, `SHOW CREATE TABLE ${quote(table.name)}`);
  const shown = String(row?.['Create Table']);
  // MySQL's catalog tells it and this does not: a question mark for each byte.
  const marked = (expression: string) => expression.replace(/[\u{10000}-\u{10ffff}]/gu, '????');
  if (!doubtful.every((expression) => shown.includes(expression) || shown.includes(marked(expression))))
    throw lost(column, 'An expression in its definition');
}

function lost({ name }: CatalogColumn, what: string): SvcError {
  return new SvcError('not_supported', `The definition of "${name}" would not survive the change.`, {
    why: `${what} has characters that the catalog cannot tell, and a change has to write it again.`,
    next: ['Change the field with a raw statement that has its whole definition.'],
  });
}
