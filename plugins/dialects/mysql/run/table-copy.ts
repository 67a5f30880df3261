import { SvcError } from '../../../../core/errors.ts';
import { type ExecSql, rowsOf } from '../../sql/session.ts';
import { quoteIdentifier, quoteLiteral } from '../compile/literal.ts';
import type { AlterTable } from '../compile/step.ts';
import { countRows, estimateRows, MAX_COUNTED } from '../data/conversion-checks.ts';

/** An ALTER that copies its table. */
export interface RequiredCopy {
  /** The table's name at the start of the run. */
  readonly table: string;
  readonly sql: string;
  readonly alter: AlterTable;
  readonly size: CopySize;
}

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

/** One error for all tables of a run, so that permission is given once. */
export function copyRequiredError(copies: readonly RequiredCopy[]): SvcError {
  const tables = [...new Map(copies.map((copy) => [copy.table, copy])).values()];
  const [first] = tables;
  if (!first) throw new Error('no table is copied');
  const { rows, isEstimate } = first.size;
  const message =
    tables.length === 1
      ? `The table "${first.table}" would have to be copied, with its ${rowsText(first.size)}.`
      : `${tables.length} tables would have to be copied: ${tables.map(({ table, size }) => `"${table}" (${rowsText(size)})`).join(', ')}.`;
  // With `rejectRows`, the table is locked for reads as well.
  const why = copies.map(
    ({ table, alter, sql }) =>
      `${tables.length === 1 ? 'It' : `"${table}"`} cannot be ${alter.rejectRows ? 'read or ' : ''}written until the copy is complete: ${sql}`,
  );
  return new SvcError('copy_required', message, {
    why: why.slice(0, 3).join('; '),
    next: COPY_REMEDIES,
    details: {
      table: first.table,
      rows,
      ...(isEstimate && { isEstimate }),
      tables: tables.map(({ table, size }) => ({ table, rows: size.rows })),
    },
  });
}

const COPY_REMEDIES = [
  'If that is acceptable: svc db migrate --allow-copy',
  'Or permit it in the migration: "allow": ["copy"]',
  'In code, the options of the database or of its connection: options: { allowCopy: true }',
  'Otherwise use a tool for online schema changes.',
];

const rowsText = ({ rows, isEstimate }: CopySize): string =>
  `${isEstimate ? 'about ' : ''}${rows.toLocaleString('en')} ${rows === 1 ? 'row' : 'rows'}`;
