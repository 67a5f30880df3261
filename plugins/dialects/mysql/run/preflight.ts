import type { PreflightFailure } from '../../../../core/dialect.ts';
import { isSvcError, SvcError } from '../../../../core/errors.ts';
import { type ExecSql, rowsOf } from '../../sql/session.ts';
import { readCatalog, readTable } from '../catalog/read-catalog.ts';
import { quoteIdentifier, quoteLiteral } from '../compile/literal.ts';
import { type AlterTable, alterSql, type MysqlStatement, type PlainClause } from '../compile/step.ts';
import type { Violation } from '../compile/violations.ts';
import { errorNumber } from '../connection/errors.ts';
import { assertEnumConvertible, assertNoRows } from '../data/conversion-checks.ts';
import type { Traits } from '../variant.ts';
import { completeClauses } from './complete-alter.ts';
import { type AddedForeignKey, existingTableChanges, newNameIn, type TableChange } from './existing-table-changes.ts';
import {
  type AlterContext,
  allowingZeroDates,
  assertCopyAllowed,
  assertServerSupports,
  requiresCopy,
  tryOnline,
} from './online-alter.ts';

/**
 * The first failure that the server, its version and the current tables are sure to cause, before any step has run. SQL
 * cannot ask how an ALTER would run, so it is tried on a copy of the table without rows.
 */
export async function preflight(
  context: AlterContext,
  statements: readonly MysqlStatement[],
): Promise<PreflightFailure | undefined> {
  const { exec, traits, foldsTableNames } = context;
  const [uppercaseName] = foldsTableNames ? findNamesWithUppercase(statements) : [];
  if (uppercaseName) return uppercaseName;
  // A single statement has no effect when it fails.
  if (statements.length <= 1) return undefined;
  const { changes, dropped, foreignKeys } = existingTableChanges(statements);
  const failures = [
    ...(await findOutsideReferences(exec, dropped)),
    ...(await findIncompatibleKeys(exec, traits, foreignKeys)),
  ];
  for (const table of await tablesWithRows(exec, [...changes.keys()])) {
    const failure = await findFailingChange(context, table, changes.get(table) ?? []);
    if (failure) failures.push(failure);
  }
  return failures.sort((a, b) => a.statement - b.statement)[0];
}

/** Tables whose name the catalog would return in lower case. */
function findNamesWithUppercase(statements: readonly MysqlStatement[]): PreflightFailure[] {
  return statements.flatMap(({ run }, statement) => {
    if (run.kind === 'raw') return [];
    const newName = run.kind === 'alterTable' ? newNameIn(run) : undefined;
    const name = [run.table, newName].find((one) => one !== undefined && one !== one.toLowerCase());
    if (name === undefined) return [];
    const error = new SvcError('name_invalid', `The name "${name}" cannot be used for a table on this server.`, {
      why: 'The server ignores the case of table names (lower_case_table_names), and svc does not.',
      next: ['Use lower case.'],
    });
    return [{ statement, error }];
  });
}

/** Dropped tables that a foreign key of another database references: no model contains such a key. */
async function findOutsideReferences(exec: ExecSql, dropped: ReadonlyMap<string, number>): Promise<PreflightFailure[]> {
  if (dropped.size === 0) return [];
  const rows = await rowsOf(
    exec,
    `SELECT DISTINCT k.referenced_table_name AS referenced, k.table_schema AS s, k.table_name AS t, k.constraint_name AS n
  FROM information_schema.key_column_usage k WHERE k.referenced_table_schema = DATABASE() AND k.table_schema <> DATABASE()
  AND k.referenced_table_name IN (${[...dropped.keys()].map(quoteLiteral).join(', ')})`,
  );
  return rows.flatMap((row): PreflightFailure[] => {
    const referenced = String(row.referenced);
    const statement = dropped.get(referenced);
    // The catalog ignores the case of names.
    if (statement === undefined) return [];
    const table = `${quoteIdentifier(String(row.s))}.${quoteIdentifier(String(row.t))}`;
    const key = quoteIdentifier(String(row.n));
    const error = new SvcError('collection_referenced', `The table "${referenced}" cannot be dropped.`, {
      why: `The foreign key ${key} of ${table}, in another database, references it.`,
      next: [`Drop it first: ALTER TABLE ${table} DROP FOREIGN KEY ${key}`],
    });
    return [{ statement, error }];
  });
}

/** Foreign keys with column types that the model does not know: unsigned numbers, and MariaDB's own uuid. */
async function findIncompatibleKeys(
  exec: ExecSql,
  traits: Traits,
  keys: readonly AddedForeignKey[],
): Promise<PreflightFailure[]> {
  const tables = keys.flatMap(({ table, existsBefore, parent }) => (existsBefore ? [table, parent] : [parent]));
  const catalog = await readCatalog(exec, traits, [...new Set(tables)]);
  const typeOf = (table: string, column: string | undefined) =>
    catalog.find(({ name }) => name === table)?.columns.find(({ name }) => name === column)?.type;
  return keys.flatMap(({ statement, table, existsBefore, columns, types, parent, target }) =>
    columns.flatMap((column, index): PreflightFailure[] => {
      const ownType = (existsBefore ? typeOf(table, column) : undefined) ?? types[index] ?? '';
      const otherType = typeOf(parent, target[index]);
      if (otherType === undefined || strictKeyType(ownType) === strictKeyType(otherType)) return [];
      const error = new SvcError('constraint_invalid', `"${table}.${column}" cannot reference "${parent}".`, {
        why: `It is of type ${ownType}, "${parent}.${target[index]}" of type ${otherType}, and the server requires the same type for both.`,
        next: [
          `Change its type in a raw statement before the constraint: ALTER TABLE ${quoteIdentifier(table)} MODIFY ${quoteIdentifier(column)} ${otherType}`,
        ],
      });
      return [{ statement, error }];
    }),
  );
}

/** The part of a type that must be identical in both columns; other types only have to be comparable. */
const strictKeyType = (type: string): string => STRICT_KEY_TYPES.exec(type.replace(/\(\d+\)/, ''))?.[0] ?? '';
const STRICT_KEY_TYPES = /^((tiny|small|medium|big)?int( unsigned)?|uuid)\b/;

async function tablesWithRows(exec: ExecSql, tables: readonly string[]): Promise<string[]> {
  if (tables.length === 0) return [];
  const existing = await rowsOf(
    exec,
    `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE' AND table_name IN (${tables.map(quoteLiteral).join(', ')})`,
  );
  const found: string[] = [];
  for (const name of existing.map((row) => String(row.name)).filter((name) => tables.includes(name))) {
    if ((await rowsOf(exec, `SELECT 1 FROM ${quoteIdentifier(name)} LIMIT 1`)).length > 0) found.push(name);
  }
  return found;
}

const DRY_RUN_TABLE = '_svc_dry_run';

async function findFailingChange(
  context: AlterContext,
  table: string,
  changes: readonly TableChange[],
): Promise<PreflightFailure | undefined> {
  const { exec } = context;
  const drop = `DROP TABLE IF EXISTS ${quoteIdentifier(DRY_RUN_TABLE)}`;
  let isCreated = false;
  try {
    // A dead process may have left one.
    await allowingZeroDates(context, table, () =>
      exec(`${drop}; CREATE TABLE ${quoteIdentifier(DRY_RUN_TABLE)} LIKE ${quoteIdentifier(table)}`),
    );
    isCreated = true;
    if (changes.some(({ alter }) => alter.clauses.some(({ kind }) => kind === 'dropCheck'))) await dropChecks(context);
    for (const change of changes) {
      try {
        await assertChange(context, table, change);
      } catch (error) {
        if (isSvcError(error)) return { statement: change.statement, error };
        throw error;
      }
    }
    return undefined;
  } catch (error) {
    // An error that only the copy causes is ignored: the real step reports its own.
    if (errorNumber(error) === undefined) throw error;
    return undefined;
  } finally {
    if (isCreated) await exec(drop);
  }
}

async function assertChange(context: AlterContext, table: string, change: TableChange): Promise<void> {
  const { exec, allowCopy } = context;
  const { alter, text, columnsUnchanged, violations } = change;
  const { rejectRows, convertEnum } = alter;
  assertServerSupports(context, alter);
  // Other conditions may read columns that an earlier statement changes.
  if (rejectRows && (columnsUnchanged || rejectRows.condition === 'TRUE')) await assertNoRows(exec, table, rejectRows);
  if (convertEnum && columnsUnchanged) await assertEnumConvertible(exec, table, convertEnum);
  for (const violation of violations) await assertNoViolation(exec, table, violation);
  if (!allowCopy && !(await isOnline(context, alter))) await assertCopyAllowed(exec, alter, table, text);
}

/** Ignores a condition that the server cannot evaluate yet: the step itself reports a violation. */
async function assertNoViolation(exec: ExecSql, table: string, violation: Violation): Promise<void> {
  try {
    await assertNoRows(exec, table, violation);
  } catch (error) {
    if (errorNumber(error) === undefined) throw error;
  }
}

/** A plan that drops a check is tried on a copy without checks: on MySQL, those of a copy have other names. */
async function dropChecks({ exec, traits }: AlterContext): Promise<void> {
  const { checks } = await readTable(exec, traits, DRY_RUN_TABLE);
  const clauses = checks
    .filter(({ ofColumn }) => !ofColumn)
    .map(({ name }): PlainClause => ({ kind: 'dropCheck', name }));
  if (clauses.length > 0) await exec(alterSql(traits, DRY_RUN_TABLE, clauses));
}

/** Clauses that are not tried on the copy: it keeps its name and has no foreign keys. */
const NOT_TRIED: ReadonlySet<string> = new Set(['renameTable', 'dropCheck', 'dropForeignKey']);

/** Tries the change on the copy. */
async function isOnline(context: AlterContext, alter: AlterTable): Promise<boolean> {
  const { exec, traits } = context;
  if (alter.clauses.some(requiresCopy)) return false;
  const clauses = alter.clauses.filter(({ kind }) => !NOT_TRIED.has(kind));
  const tried = await completeClauses(exec, traits, { ...alter, clauses }, DRY_RUN_TABLE);
  if (tried.length === 0) return true;
  return allowingZeroDates(context, DRY_RUN_TABLE, () => tryOnline(exec, alterSql(traits, DRY_RUN_TABLE, tried)));
}
