import type { PreflightFailure, Statement } from '../../../../core/dialect.ts';
import { isObjectOperation } from '../../../../core/schema/database-object.ts';
import type { MigrationOperation, Operation } from '../../../../core/schema/operation.ts';
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
function hasPresentFields(names: PresentNames, operation: Operation): boolean {
  const fields = checkedFields(operation);
  if (!fields || !('collection' in operation)) return false;
  const table = names.table(operation.collection);
  return table?.name === operation.collection && fields.every((field) => table.column(field) === field);
}

function checkedFields(operation: Operation): readonly string[] | undefined {
  if (operation.type === 'modifyField') return [operation.field];
  if (operation.type === 'addField' && operation.mirrors !== undefined) return [operation.mirrors];
  if (operation.type === 'dropField' && operation.mirrors !== undefined) return [operation.field, operation.mirrors];
  return operation.type === 'addConstraint' ? (operation.constraint.columns ?? []) : undefined;
}
