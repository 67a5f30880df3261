import type { PreflightFailure, PreflightReport, Statement } from '../../../../core/dialect.ts';
import { isSvcError } from '../../../../core/errors.ts';
import type { MigrationOperation } from '../../../../core/schema/operation.ts';
import { PresentNames } from '../present-names.ts';
import type { SqlServerStep } from './grammar.ts';
import type { Precondition } from './preconditions.ts';

export const preconditionsOf = (step: SqlServerStep): readonly Precondition[] =>
  (step.kind === 'sql' && step.preconditions) || [];

/**
 * The statements whose preconditions the rows violate before the first one has run. Those that read what an earlier statement
 * changes are left to the run, as is everything after a raw statement, which may change any row.
 */
export async function preflight(
  check: (query: string) => Promise<unknown>,
  statements: readonly Statement<SqlServerStep>[],
  operations: readonly MigrationOperation[],
): Promise<PreflightReport> {
  const failures: PreflightFailure[] = [];
  const names = new PresentNames();
  const isPresent = ({ table, columns }: Precondition['reads'][number]): boolean => {
    const present = names.table(table);
    return present?.name === table && columns.every((column) => present.unchangedColumn(column) === column);
  };
  for (const [at, operation] of operations.entries()) {
    const step = statements[at]?.run;
    if (operation.type === 'raw' || step === undefined) break;
    for (const { query, reads } of preconditionsOf(step)) {
      if (!reads.every(isPresent)) continue;
      const error = await check(query).then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      if (isSvcError(error) && error.code === 'data_violates') failures.push({ statement: at, error });
    }
    if (operation !== operations[at + 1]) names.follow(operation);
  }
  return { failures, copies: [] };
}
