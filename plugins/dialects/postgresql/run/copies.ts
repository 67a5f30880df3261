import type { PreflightReport, Statement, TableCopy } from '../../../../core/dialect.ts';
import { copyRequiredError } from '../../sql/copy-required.ts';
import { type ExecSql, rowsOf } from '../../sql/session.ts';
import { quoteIdentifier } from '../compile/grammar.ts';
import { quoteLiteral } from '../compile/literal.ts';
import type { PostgresqlStep } from '../compile/step.ts';

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

/** By the statistics; of a table that was never analyzed, by counting. 0 for a table that the run renames. */
export async function estimateRows(exec: ExecSql, table: string): Promise<number> {
  const [found] = await rowsOf(
    exec,
    `SELECT reltuples AS rows FROM pg_class WHERE oid = to_regclass(${quoteLiteral(table)})`,
  );
  if (!found || Number(found.rows) > 0) return Number(found?.rows ?? 0);
  const [counted] = await rowsOf(exec, `SELECT count(*) AS rows FROM ${table}`);
  return Number(counted?.rows);
}
