import { limitSql, type RecordGrammar } from './record-values.ts';

/** The number of rows, up to `limit`; with a field, of those in which it is not null. Names are quoted. */
export async function countRows(
  query: (text: string) => Promise<readonly Record<string, unknown>[]>,
  { table, field, limit }: { readonly table: string; readonly field?: string; readonly limit: number },
  grammar: Pick<RecordGrammar, 'limit'> = {},
): Promise<number> {
  const where = field === undefined ? '' : ` WHERE ${field} IS NOT NULL`;
  const [row] = await query(
    `SELECT count(*) AS svc_count FROM (SELECT 1 AS svc_one FROM ${table}${where} ${limitSql(grammar, limit)}) AS svc_rows`,
  );
  // By position, because some servers return the names of columns in upper case.
  return Number(Object.values(row ?? {})[0]);
}
