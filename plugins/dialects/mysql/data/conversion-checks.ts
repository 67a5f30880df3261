import { isSvcError, SvcError } from '../../../../core/errors.ts';
import { type ExecSql, rowsOf } from '../../sql/session.ts';
import { quoteIdentifier, quoteLiteral } from '../compile/literal.ts';
import type { AlterTable, RejectedRows } from '../compile/step.ts';
import { errorNumber, toSvcError } from '../connection/errors.ts';

const PROBE = quoteIdentifier('_svc_enum_values');

/**
 * Inserts every value of an enum into a probe table with the new type. When the server converts the column itself, it is
 * already a string, and an error would come too late.
 */
export async function assertEnumConvertible(
  exec: ExecSql,
  table: string,
  { column, lines }: NonNullable<AlterTable['convertEnum']>,
  withClause = '',
): Promise<void> {
  const name = quoteIdentifier(column);
  const found = await rowsOf(
    exec,
    `${withClause}SELECT CAST(${name} AS CHAR) AS label, COUNT(*) AS counted FROM ${quoteIdentifier(table)} WHERE ${name} IS NOT NULL GROUP BY ${name}`,
  );
  const drop = `DROP TABLE IF EXISTS ${PROBE}`;
  let rows = 0;
  try {
    // A dead process may have left one.
    await exec(`${drop}; CREATE TABLE ${PROBE} (_svc_n int AUTO_INCREMENT PRIMARY KEY, ${lines.join(', ')})`);
    for (const { label, counted } of found)
      if (!(await acceptsValue(exec, `INSERT INTO ${PROBE} (${name}) VALUES (${quoteLiteral(String(label))})`)))
        rows += Number(counted);
  } finally {
    await exec(drop);
  }
  if (rows > 0) throw violationError(table, rows, `Values of ${column} are not values of its new type.`);
}

/** False if the server rejects the value for the type of the column. */
export async function acceptsValue(exec: ExecSql, insert: string): Promise<boolean> {
  try {
    await exec(insert);
    return true;
  } catch (error) {
    const mapped = toSvcError(error);
    if (isSvcError(mapped) && mapped.code === 'data_violates') return false;
    throw error;
  }
}

/** Beyond this, the number of rows is an estimate. */
export const MAX_COUNTED = 100_000;

/** The number of rows, at most one more than `MAX_COUNTED`. */
export async function countRows(exec: ExecSql, from: string, withClause = ''): Promise<number> {
  const [row] = await rowsOf(
    exec,
    `${withClause}SELECT COUNT(*) AS counted FROM (SELECT 1 FROM ${from} LIMIT ${MAX_COUNTED + 1}) AS found`,
  );
  return Number(row?.counted);
}

/** From the statistics of the server; 0 of a table that does not exist. */
export async function estimateRows(exec: ExecSql, table: string): Promise<number> {
  try {
    const [row] = await rowsOf(exec, `EXPLAIN FORMAT=TRADITIONAL SELECT 1 FROM ${quoteIdentifier(table)}`);
    return Number(row?.rows ?? 0);
  } catch (error) {
    if (errorNumber(error) === NO_SUCH_TABLE) return 0;
    throw error;
  }
}

const NO_SUCH_TABLE = 1146;

export async function assertNoRows(
  exec: ExecSql,
  table: string,
  { condition, why, next }: RejectedRows,
  withClause = '',
): Promise<void> {
  const found = await countRows(exec, `${quoteIdentifier(table)} WHERE ${condition}`, withClause);
  if (found > 0) throw violationError(table, found, why, next);
}

function violationError(
  table: string,
  rows: number,
  why: string,
  next = 'Correct the rows in an earlier migration, or give a new field a default.',
): SvcError {
  const count = rows > MAX_COUNTED ? `more than ${MAX_COUNTED.toLocaleString('en')}` : rows.toLocaleString('en');
  return new SvcError('data_violates', 'Rows in the table do not allow the change.', {
    why: `${why} "${table}" has ${count} such ${rows === 1 ? 'row' : 'rows'}.`,
    next: [next],
    details: { table, rows },
  });
}
