import { countRows } from '../../sql/count-rows.ts';
import { type ExecSql, rowsOf } from '../../sql/session.ts';
import { quoteLiteral } from '../compile/literal.ts';
import { codeOf, INSUFFICIENT_PRIVILEGE } from '../connection/errors.ts';

/** The smallest that the server stores: where rows cannot be counted, rather too many are assumed than too few. */
const BYTES_PER_ROW = 28;

/** Up to `limit`. Of a table with rows that the user may not read, or that a policy hides, an estimate. `table` is quoted. */
export async function countTable(exec: ExecSql, table: string, limit: number): Promise<number> {
  const query = (text: string) => rowsOf(exec, withHiddenRows(text));
  const count = () => countRows(query, { table, limit });
  return unlessForbidden(count, async () => Math.min(limit, await estimateRows(exec, table)));
}

/** By the statistics; of a table that was never analyzed, by counting. 0 for a table that the run renames. */
export async function estimateRows(exec: ExecSql, table: string): Promise<number> {
  const [found] = await rowsOf(
    exec,
    `SELECT reltuples AS rows, pg_relation_size(oid) AS bytes FROM pg_class WHERE oid = to_regclass(${quoteLiteral(table)})`,
  );
  if (!found || Number(found.rows) > 0) return Number(found?.rows ?? 0);
  const count = async () => {
    const [counted] = await rowsOf(exec, withHiddenRows(`SELECT count(*) AS rows FROM ${table}`));
    return Number(counted?.rows);
  };
  return unlessForbidden(count, async () => Math.ceil(Number(found.bytes) / BYTES_PER_ROW));
}

/** Fails where a policy would hide rows. The two statements are one transaction. */
const withHiddenRows = (query: string): string => `SET LOCAL row_security = off; ${query}`;

async function unlessForbidden<T>(work: () => Promise<T>, otherwise: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (codeOf(error) !== INSUFFICIENT_PRIVILEGE) throw error;
    return otherwise();
  }
}
