import { isSvcError } from '../../../core/errors.ts';
import { type Exec, rowsOf } from '../../sql/session.ts';
import type { AskedAlter } from './asked.ts';
import { refusal } from './errors.ts';
import { quote, text } from './quote.ts';
import { violated } from './violated.ts';

const WORDS = quote('_svc_words');

/**
 * Refuses an enum of which rows have words that the new type does not take: the server is asked with one row for each,
 * because by the time that it converts the column itself it is a text already.
 */
export async function refuseWords(
  exec: Exec,
  table: string,
  { column, lines }: NonNullable<AskedAlter['words']>,
): Promise<void> {
  const name = quote(column);
  const found = await rowsOf(
    exec,
    `SELECT CAST(${name} AS CHAR) AS word, COUNT(*) AS counted FROM ${quote(table)} WHERE ${name} IS NOT NULL GROUP BY ${name}`,
  );
  const drop = `DROP TABLE IF EXISTS ${WORDS}`;
  let rows = 0;
  try {
    // One that was left by a process that died.
    await exec(`${drop}; CREATE TABLE ${WORDS} (_svc_n int AUTO_INCREMENT PRIMARY KEY, ${lines.join(', ')})`);
    for (const { word, counted } of found)
      if (!(await isTaken(exec, `INSERT INTO ${WORDS} (${name}) VALUES (${text(String(word))})`)))
        rows += Number(counted);
  } finally {
    await exec(drop);
  }
  if (rows > 0) throw violated(table, rows, `Words of ${column} are no values of its new type.`);
}

/** False where the server has no such value in the type of the column. */
export async function isTaken(exec: Exec, insert: string): Promise<boolean> {
  try {
    await exec(insert);
    return true;
  } catch (error) {
    const told = refusal(error);
    if (isSvcError(told) && told.code === 'data_violates') return false;
    throw error;
  }
}
