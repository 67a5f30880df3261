import type { PreflightFailure, Statement } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import { isObjectOperation } from '../../../../core/schema/database-object.ts';
import type { MigrationOperation, Operation } from '../../../../core/schema/operation.ts';
import { PresentNames } from '../../sql/present-names.ts';
import { type ExecSql, rowsOf } from '../../sql/session.ts';
import { quoteLiteral } from '../compile/literal.ts';
import { qualified } from '../compile/names.ts';
import type { PostgresqlStep } from '../compile/step.ts';
import { codeOf, statementError } from '../connection/errors.ts';

/**
 * Rows and rights that a change online of this run would be refused for: an earlier change would be committed by then. `schema` is
 * quoted, with its dot. Up to the first raw statement or object, which may change them.
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
    const denied = await denialOf(exec, schema, statement);
    if (denied) failures.push({ statement: index, error: denied });
    if (operation !== operations[index + 1]) names.follow(operation);
  }
  return failures;
}

/** What an owner of a table may lack: rights that it gave away, or rows that a policy hides from it. */
async function denialOf(
  exec: ExecSql,
  schema: string,
  { text, run, transactional }: Statement<PostgresqlStep>,
): Promise<SvcError | undefined> {
  if (run.kind === 'fill') {
    const table = `to_regclass(${quoteLiteral(qualified(run.table, schema))})`;
    const [found] = await rowsOf(
      exec,
      `SELECT row_security_active(${table}) AS hidden, NOT has_table_privilege(${table}, 'SELECT') OR NOT has_table_privilege(${table}, 'UPDATE') AS lacking`,
    );
    const because = (why: string, next: string) =>
      new SvcError('permission_denied', `The rows of "${run.table}" cannot be filled.`, { why, next: [next] });
    if (found?.hidden === true)
      return because(
        'A row-level security policy may hide rows from the user.',
        'Use a user with BYPASSRLS, or ALTER TABLE … NO FORCE ROW LEVEL SECURITY for its owner.',
      );
    if (found?.lacking === true)
      return because(
        'The user may not read or change them.',
        `GRANT SELECT, UPDATE ON ${qualified(run.table, '')} TO …`,
      );
  }
  if (!transactional && /^CREATE (?:UNIQUE )?INDEX /.test(text)) {
    const name = `to_regnamespace(${quoteLiteral(schema.slice(0, -1))})::oid`;
    const denied = await rowsOf(exec, `SELECT WHERE NOT has_schema_privilege(${name}, 'CREATE')`);
    if (denied.length > 0)
      return new SvcError('permission_denied', 'The database user may not create indexes.', {
        why: 'It lacks CREATE on the schema.',
        next: [`GRANT CREATE ON SCHEMA ${schema.slice(0, -1)} TO …`],
      });
  }
  return undefined;
}

/** Whether the fields that a check is about are those of the tables before the run. */
function hasPresentFields(names: PresentNames, operation: Operation): boolean {
  const arePresent = (name: string, fields: readonly string[]): boolean => {
    const table = names.table(name);
    return table?.name === name && fields.every((field) => table.column(field) === field);
  };
  switch (operation.type) {
    case 'modifyField':
      return arePresent(operation.collection, [operation.field]);
    case 'addField':
      return operation.mirrors !== undefined && arePresent(operation.collection, [operation.mirrors]);
    case 'dropField':
      return operation.mirrors !== undefined && arePresent(operation.collection, [operation.field, operation.mirrors]);
    case 'addConstraint': {
      const { collection, constraint } = operation;
      if (!arePresent(collection, constraint.columns ?? [])) return false;
      return constraint.type !== 'foreignKey' || arePresent(constraint.references.table, constraint.references.columns);
    }
    default:
      return false;
  }
}
