import { type ExecSql, rowsOf } from '../../sql/session.ts';
import { quoteIdentifier, quoteLiteral } from '../compile/literal.ts';
import { countRows, estimateRows, MAX_COUNTED } from '../data/conversion-checks.ts';

export interface CopySize {
  readonly rows: number;
  readonly isEstimate: boolean;
  /** Copied without permission, because it takes less time than any online change of a large table. */
  readonly isSmall: boolean;
}

/** More bytes than this are not copied without permission, however few the rows. */
const SMALL_BYTES = 64 * 1024 * 1024;

export async function copySize(
  { exec, copyRows }: { readonly exec: ExecSql; readonly copyRows: number },
  table: string,
): Promise<CopySize> {
  const found = await countRows(exec, quoteIdentifier(table));
  const isEstimate = found > MAX_COUNTED;
  const rows = isEstimate ? Math.max(MAX_COUNTED, await estimateRows(exec, table)) : found;
  const isSmall = found === 0 || (found <= copyRows && (await tableBytes(exec, table)) <= SMALL_BYTES);
  return { rows, isEstimate, isSmall };
}

/** MySQL may return a value that is a day old. */
async function tableBytes(exec: ExecSql, table: string): Promise<number> {
  const [row] = await rowsOf(
    exec,
    `SELECT data_length AS bytes FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ${quoteLiteral(table)}`,
  );
  return Number(row?.bytes ?? 0);
}
