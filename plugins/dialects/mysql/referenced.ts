import type { Foreseen } from '../../../core/dialect.ts';
import { SvcError } from '../../../core/errors.ts';
import { type Exec, rowsOf } from '../../sql/session.ts';
import { quote, text } from './quote.ts';

/** Of tables and the statements that drop them: the ones that a foreign key of another database, which no model knows, keeps. */
export async function heldElsewhere(exec: Exec, dropped: ReadonlyMap<string, number>): Promise<Foreseen[]> {
  if (dropped.size === 0) return [];
  const rows = await rowsOf(
    exec,
    `SELECT DISTINCT k.referenced_table_name AS held, k.table_schema AS s, k.table_name AS t, k.constraint_name AS n
  FROM information_schema.key_column_usage k WHERE k.referenced_table_schema = DATABASE() AND k.table_schema <> DATABASE()
  AND k.referenced_table_name IN (${[...dropped.keys()].map(text).join(', ')})`,
  );
  return rows.flatMap((row): Foreseen[] => {
    const held = String(row.held);
    const statement = dropped.get(held);
    // The catalog compares names without case.
    if (statement === undefined) return [];
    const table = `${quote(String(row.s))}.${quote(String(row.t))}`;
    const error = new SvcError('collection_referenced', `The table "${held}" cannot be dropped.`, {
      why: `The foreign key ${quote(String(row.n))} of ${table}, in another database, points at it.`,
      next: [`Drop that first: ALTER TABLE ${table} DROP FOREIGN KEY ${quote(String(row.n))}`],
    });
    return [{ statement, error }];
  });
}
