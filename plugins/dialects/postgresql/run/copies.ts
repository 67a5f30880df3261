import type { PreflightReport, Statement, TableCopy } from '../../../../core/dialect.ts';
import { copyRequiredError } from '../../sql/copy-required.ts';
import type { ExecSql } from '../../sql/session.ts';
import { quoteIdentifier } from '../compile/grammar.ts';
import type { PostgresqlStep } from '../compile/step.ts';
import { estimateRows } from './row-count.ts';

/** The statements that block a table with many rows while they write or check all of them. `schema` is quoted, with its dot. */
export async function findCopies(
  exec: ExecSql,
  schema: string,
  allowCopy: boolean,
  statements: readonly Statement<PostgresqlStep>[],
): Promise<PreflightReport> {
  const copies: TableCopy[] = [];
  for (const [index, { run, allowCopy: isAllowed = false }] of statements.entries()) {
    if (run.kind !== 'sql' || run.copies === undefined) continue;
    const rows = await estimateRows(exec, `${schema}${quoteIdentifier(run.copies)}`);
    copies.push({
      statement: index,
      collection: run.copies,
      rows,
      isEstimate: true,
      isPermitted: allowCopy || isAllowed,
    });
  }
  const refused = copies.filter(({ isPermitted }) => !isPermitted);
  const [first] = refused;
  if (!first) return { failures: [], copies };
  const error = copyRequiredError(
    refused.map(({ statement, collection, rows, isEstimate }) => ({
      ...{ table: collection, rows, isEstimate, blocksReads: true },
      sql: statements[statement]?.text ?? '',
    })),
  );
  return { failures: [{ statement: first.statement, error }], copies };
}
