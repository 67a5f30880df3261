import { SvcError } from '../../../core/errors.ts';
import { type Exec, rowsOf } from '../../sql/session.ts';
import type { AskedAlter } from './asked.ts';
import { quote } from './quote.ts';

/** Rows that are counted one by one. */
export const COUNTED = 100_000;

/** As many as there are, or one more than are counted. */
export async function counted(exec: Exec, from: string): Promise<number> {
  const [some] = await rowsOf(
    exec,
    `SELECT COUNT(*) AS counted FROM (SELECT 1 FROM ${from} LIMIT ${COUNTED + 1}) AS found`,
  );
  return Number(some?.counted);
}

export async function refuseRows(
  exec: Exec,
  table: string,
  { rows, why }: NonNullable<AskedAlter['refused']>,
): Promise<void> {
  const found = await counted(exec, `${quote(table)} WHERE ${rows}`);
  if (found > 0) throw violated(table, found, why);
}

export function violated(table: string, rows: number, why: string): SvcError {
  const many = rows > COUNTED ? `more than ${COUNTED.toLocaleString('en')}` : rows.toLocaleString('en');
  return new SvcError('data_violates', 'Rows in the table do not allow the change.', {
    why: `${why} "${table}" has ${many} such ${rows === 1 ? 'row' : 'rows'}.`,
    next: ['Correct the rows in a migration before it, or give a new field a default.'],
    details: { table, rows },
  });
}
