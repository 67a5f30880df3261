import type { PreflightReport, Statement, TableCopy } from '../../../../core/dialect.ts';
import { copyRequiredError } from '../../sql/copy-required.ts';
import type { PostgresqlStep } from '../compile/step.ts';
import type { RowEstimates } from './row-estimates.ts';

/** The statements that block a table with many rows while they write or check all of them. */
export async function findCopies(
  estimates: RowEstimates,
  allowCopy: boolean,
  statements: readonly Statement<PostgresqlStep>[],
): Promise<PreflightReport> {
  const copies: TableCopy[] = [];
  for (const [index, { run, allowCopy: isAllowed = false }] of statements.entries()) {
    if (run.kind !== 'sql' || run.copies === undefined) continue;
    const rows = await estimates.of(run.copies);
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
