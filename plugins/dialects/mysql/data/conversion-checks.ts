import { isSvcError, SvcError } from '../../../../core/errors.ts';
import { type ExecSql, rowsOf } from '../../sql/session.ts';
import { quoteIdentifier, quoteLiteral } from '../compile/literal.ts';
import type { AlterTable } from '../compile/statement.ts';
import { toSvcError } from '../connection/errors.ts';

const PROBE = quoteIdentifier('_svc_words');

/**
 * Inserts every value of an enum into a probe table with the new type: when the server converts the column itself, it is
 * a string already and its errors come too late.
 */
export async function assertWordsConvertible(
  exec: ExecSql,
  table: string,
  { column, lines }: NonNullable<AlterTable['convertWords']>,
): Promise<void> {
  const name = quoteIdentifier(column);
  const found = await rowsOf(
    exec,
    `SELECT CAST(${name} AS CHAR) AS word, COUNT(*) AS counted FROM ${quoteIdentifier(table)} WHERE ${name} IS NOT NULL GROUP BY ${name}`,
  );
  const drop = `DROP TABLE IF EXISTS ${PROBE}`;
  let rows = 0;
  try {
    // A process that died may have left one.
    await exec(`${drop}; CREATE TABLE ${PROBE} (_svc_n int AUTO_INCREMENT PRIMARY KEY, ${lines.join(', ')})`);
    for (const { word, counted } of found)
      if (!(await acceptsValue(exec, `INSERT INTO ${PROBE} (${name}) VALUES (${quoteLiteral(String(word))})`)))
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
export async function countRows(exec: ExecSql, from: string): Promise<number> {
  const [some] = await rowsOf(
    exec,
    `SELECT COUNT(*) AS counted FROM (SELECT 1 FROM ${from} LIMIT ${MAX_COUNTED + 1}) AS found`,
  );
  return Number(some?.counted);
}

export async function assertNoRows(
  exec: ExecSql,
  table: string,
  { condition, why }: NonNullable<AlterTable['rejectRows']>,
): Promise<void> {
  const found = await countRows(exec, `${quoteIdentifier(table)} WHERE ${condition}`);
  if (found > 0) throw violationError(table, found, why);
}

function violationError(table: string, rows: number, why: string): SvcError {
  const count = rows > MAX_COUNTED ? `more than ${MAX_COUNTED.toLocaleString('en')}` : rows.toLocaleString('en');
  return new SvcError('data_violates', 'Rows in the table do not allow the change.', {
    why: `${why} "${table}" has ${count} such ${rows === 1 ? 'row' : 'rows'}.`,
    next: ['Correct the rows in an earlier migration, or give a new field a default.'],
    details: { table, rows },
  });
}
