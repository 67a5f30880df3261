import type { PreflightFailure, Statement } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import { isObjectOperation } from '../../../../core/schema/database-object.ts';
import { defineConstraint, defineField } from '../../../../core/schema/define.ts';
import { isExpression } from '../../../../core/schema/literal.ts';
import type { Field } from '../../../../core/schema/model.ts';
import type { MigrationOperation, Operation } from '../../../../core/schema/operation.ts';
import { defaultExpression } from '../../sql/column.ts';
import { PresentNames } from '../../sql/present-names.ts';
import { type ExecSql, rowsOf } from '../../sql/session.ts';
import { grammar } from '../compile/grammar.ts';
import { quoteLiteral } from '../compile/literal.ts';
import { qualified, quoteIdentifier } from '../compile/names.ts';
import { assertReference } from '../compile/online-steps.ts';
import type { PostgresqlStep } from '../compile/step.ts';
import { isSerial, nativeSource } from '../compile/types.ts';
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
  const created = new Set<string>();
  for (const [index, statement] of statements.entries()) {
    const operation = operations[index];
    if (!operation || operation.type === 'raw' || isObjectOperation(operation)) break;
    const check = onlyChecks(statement) ? checkBeforeRun(names, created, statement, operation) : undefined;
    if (check?.run.kind === 'sql') {
      try {
        await exec(check.run.parts.join(schema));
      } catch (error) {
        // Any other error is one of its own statement.
        if (codeOf(error)?.startsWith('23'))
          failures.push({ statement: index, error: statementError(statement, error) });
      }
    }
    const denied = await denialOf(exec, schema, statement);
    if (denied) failures.push({ statement: index, error: denied });
    if (operation !== operations[index + 1]) follow(names, created, operation);
  }
  return failures;
}

const onlyChecks = ({ run }: Statement<PostgresqlStep>): boolean => run.kind === 'sql' && run.onlyChecks === true;

/** The statement as it can run before the first one of the run; undefined if it is not certain which rows it will find. */
function checkBeforeRun(
  names: PresentNames,
  created: ReadonlySet<string>,
  statement: Statement<PostgresqlStep>,
  operation: Operation,
): Statement<PostgresqlStep> | undefined {
  if (hasPresentFields(names, operation)) return statement;
  if (operation.type !== 'addConstraint') return undefined;
  const { collection: table } = operation;
  const constraint = defineConstraint(operation.constraint, table);
  if (constraint.type !== 'foreignKey') return undefined;
  const { columns, references } = constraint;
  // Children do not inherit a foreign key.
  const rows = rowsNow(names, table, columns, 'ONLY ');
  if (rows === undefined) return undefined;
  if (created.has(references.table)) return assertReference(table, constraint, { rows, referenced: undefined });
  const referenced = rowsNow(names, references.table, references.columns);
  return referenced === undefined ? undefined : assertReference(table, constraint, { rows, referenced });
}

/** The rows of a table before the run, with the names that the columns will have. */
function rowsNow(names: PresentNames, table: string, columns: readonly string[], only = ''): string | undefined {
  const present = names.table(table);
  const sources = columns.map((column) => present?.source(column, quoteIdentifier));
  if (!present || sources.includes(undefined)) return undefined;
  const selected = new Set(sources.map((source, at) => `${source} AS ${quoteIdentifier(columns[at] ?? '')}`));
  return `(SELECT ${[...selected].join(', ')} FROM ${only}${qualified(present.name)})`;
}

function follow(names: PresentNames, created: Set<string>, operation: Operation): void {
  names.follow(operation);
  switch (operation.type) {
    case 'createCollection':
      created.add(operation.name);
      break;
    case 'dropCollection':
      created.delete(operation.collection);
      break;
    case 'renameCollection':
      if (created.delete(operation.collection)) created.add(operation.to);
      break;
    case 'addField': {
      const { name, ...definition } = operation.field;
      const field = defineField(name, definition, operation.collection);
      if (operation.mirrors === undefined)
        names.table(operation.collection)?.add(name, valueOfRows(field, operation.collection));
    }
  }
}

/** What all rows have in a new field. An expression may be another value in each, and a sequence must not count. */
function valueOfRows(field: Field, table: string): string | undefined {
  const { autoGenerate, default: value } = field;
  if (autoGenerate || nativeSource(field) !== '' || isSerial(field) || (value !== undefined && isExpression(value)))
    return undefined;
  return `CAST(${defaultExpression(grammar, field, table) ?? 'NULL'} AS ${grammar.columnType(field, table)})`;
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
