import { SvcError } from '../../../core/errors.ts';

/** A statement that copies a table with rows. */
export interface CopyingStatement {
  /** The table's name at the start of the run. */
  readonly table: string;
  readonly rows: number;
  readonly isEstimate: boolean;
  readonly sql: string;
  /** Others cannot read the table either. */
  readonly blocksReads: boolean;
}

/** One error for all tables of a run, so that permission is given once. */
export function copyRequiredError(copies: readonly CopyingStatement[]): SvcError {
  const tables = [...new Map(copies.map((copy) => [copy.table, copy])).values()];
  const [first] = tables;
  if (!first) throw new Error('no table is copied');
  const { table, rows, isEstimate } = first;
  const message =
    tables.length === 1
      ? `The table "${table}" would have to be copied, with its ${rowsText(first)}.`
      : `${tables.length} tables would have to be copied: ${tables.map((one) => `"${one.table}" (${rowsText(one)})`).join(', ')}.`;
  const why = copies.map(
    ({ table, blocksReads, sql }) =>
      `${tables.length === 1 ? 'It' : `"${table}"`} cannot be ${blocksReads ? 'read or ' : ''}written until the copy is complete: ${sql}`,
  );
  return new SvcError('copy_required', message, {
    why: why.slice(0, 3).join('; '),
    next: COPY_REMEDIES,
    details: {
      table,
      rows,
      ...(isEstimate && { isEstimate }),
      tables: tables.map(({ table, rows }) => ({ table, rows })),
    },
  });
}

const COPY_REMEDIES = [
  'If that is acceptable: svc db migrate --allow-copy',
  'Or permit it in the migration: "allow": ["copy"]',
  'In code, the options of the database or of its connection: options: { allowCopy: true }',
  'Otherwise use a tool for online schema changes.',
];

const rowsText = ({ rows, isEstimate }: CopyingStatement): string =>
  `${isEstimate ? 'about ' : ''}${rows.toLocaleString('en')} ${rows === 1 ? 'row' : 'rows'}`;
