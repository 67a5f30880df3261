import type { PreflightFailure, Statement } from '../../../../core/dialect.ts';
import { isObjectOperation } from '../../../../core/schema/database-object.ts';
import type { MigrationOperation } from '../../../../core/schema/operation.ts';
import { PresentNames } from '../../sql/present-names.ts';
import type { ExecSql } from '../../sql/session.ts';
import type { PostgresqlStep } from '../compile/step.ts';
import { codeOf, statementError } from '../connection/errors.ts';

/**
 * Rows that a change online of this run would be refused for: an earlier change would be committed by then. `schema` is quoted,
 * with its dot. Up to the first raw statement or object, which may change rows.
 */
export async function findViolations(
  exec: ExecSql,
  schema: string,
  statements: readonly Statement<PostgresqlStep>[],
  operations: readonly MigrationOperation[],
): Promise<readonly PreflightFailure[]> {
  const failures: PreflightFailure[] = [];
  const names = new PresentNames();
  for (const [index, statement] of statements.entries()) {
    const operation = operations[index];
    if (!operation || operation.type === 'raw' || isObjectOperation(operation)) break;
    const { run } = statement;
    if (run.kind === 'sql' && run.onlyChecks && hasPresentFields(names, operation)) {
      try {
        await exec(run.parts.join(schema));
      } catch (error) {
        // Any other error is one of its own statement.
        if (codeOf(error)?.startsWith('23'))
          failures.push({ statement: index, error: statementError(statement, error) });
      }
    }
    if (operation !== operations[index + 1]) names.follow(operation);
  }
  return failures;
}

/** Whether the fields that a new rule is about are those of the table before the run. */
function hasPresentFields(names: PresentNames, operation: MigrationOperation): boolean {
  if (operation.type !== 'modifyField' && operation.type !== 'addConstraint') return false;
  const table = names.table(operation.collection);
  if (table?.name !== operation.collection) return false;
  const fields = operation.type === 'modifyField' ? [operation.field] : operation.constraint.columns;
  return (fields ?? []).every((field) => table.column(field) === field);
}
