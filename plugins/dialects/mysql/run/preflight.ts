import type { PreflightFailure, PreflightReport, TableCopy } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import type { MigrationOperation } from '../../../../core/schema/operation.ts';
import { type CopyingStatement, copyRequiredError } from '../../sql/copy-required.ts';
import { type ExecSql, rowsOf } from '../../sql/session.ts';
import { readCatalog } from '../catalog/read-catalog.ts';
import { quoteIdentifier, quoteLiteral } from '../compile/literal.ts';
import { type AlterTable, type MysqlStatement, newNameIn } from '../compile/step.ts';
import type { Traits } from '../variant.ts';
import { findColumnConflicts } from './column-conflicts.ts';
import { completeClauses } from './complete-alter.ts';
import { tryChanges } from './dry-run-table.ts';
import { type AddedForeignKey, existingTableChanges } from './existing-table-changes.ts';
import { findExpressionReaders } from './expression-readers.ts';
import { findNeededKeys } from './needed-keys.ts';
import type { AlterContext } from './online-alter.ts';
import { readRawEffects } from './raw-effects.ts';
import { findReaders } from './readers.ts';

/** What the server, its version and the current tables are certain to do with the statements, before the first one runs. */
export async function preflight(
  context: AlterContext,
  statements: readonly MysqlStatement[],
  operations: readonly MigrationOperation[] = [],
  isPreview = false,
): Promise<PreflightReport> {
  const { exec, traits, foldsTableNames } = context;
  const uppercaseNames = foldsTableNames ? findNamesWithUppercase(statements) : [];
  if (uppercaseNames.length > 0) return { failures: uppercaseNames, copies: [] };
  const all = existingTableChanges(statements, context.database, await readRawEffects(exec, statements));
  const { changes, dropped, foreignKeys } = all;
  const failures = [
    ...(await findOutsideReferences(exec, dropped)),
    ...(await findNeededKeys(exec, traits, all)),
    ...(await findReaders(exec, all, operations)),
    ...(await findExpressionReaders(exec, traits, all)),
    ...(await findIncompatibleKeys(exec, traits, foreignKeys)),
  ];
  // A single statement has no effect when it fails.
  if (statements.length <= 1 && !isPreview) return { failures, copies: [] };
  const conflicts = await findColumnConflicts(exec, changes);
  if (conflicts.length > 0) return { failures: [...failures, ...conflicts].sort(byStatement), copies: [] };
  const copies: TableCopy[] = [];
  const unpermitted: (CopyingStatement & { readonly statement: number })[] = [];
  const withRows = await tablesWithRows(exec, [...changes.keys()]);
  const withKeys = [...changes.keys()].filter((table) => changes.get(table)?.some(({ alter }) => changesKey(alter)));
  for (const table of new Set([...withRows, ...withKeys])) {
    const tried = await tryChanges(context, table, changes.get(table) ?? []);
    if (tried.failed) failures.push({ statement: tried.failed.change.statement, error: tried.failed.error });
    for (const { change, size } of withRows.includes(table) ? tried.copies : []) {
      const { statement, text: sql, alter } = change;
      const isPermitted = context.allowCopy || change.allowCopy || size.isSmall;
      const { rows, isEstimate } = size;
      copies.push({ statement, collection: table, rows, isEstimate, isPermitted });
      if (!isPermitted)
        unpermitted.push({ statement, table, sql, rows, isEstimate, blocksReads: alter.rejectRows !== undefined });
    }
  }
  const [firstCopy] = unpermitted.sort(byStatement);
  if (firstCopy) failures.push({ statement: firstCopy.statement, error: copyRequiredError(unpermitted) });
  return { failures: failures.sort(byStatement), copies: copies.sort(byStatement) };
}

/** The server rejects some changes of a primary key in an empty table too. */
const changesKey = ({ clauses }: AlterTable): boolean =>
  clauses.some(
    (clause) => clause.kind === 'dropPrimaryKey' || (clause.kind === 'addConstraint' && clause.type === 'primaryKey'),
  );

const byStatement = (a: { readonly statement: number }, b: { readonly statement: number }): number =>
  a.statement - b.statement;

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
  const tables = keys.flatMap(({ present, presentParent }) => [
    ...(present ? [present.table] : []),
    presentParent.table,
  ]);
  const catalog = await readCatalog(exec, traits, [...new Set(tables)]);
  const typeOf = (table: string, column: string | undefined) =>
    catalog.find(({ name }) => name === table)?.columns.find(({ name }) => name === column)?.type;
  const failures: PreflightFailure[] = [];
  for (const { statement, table, present, columns, types, attributes, parent, presentParent, target } of keys) {
    for (const [index, column] of columns.entries()) {
      const presentColumn = present?.columns[index];
      const ownType = (present && typeOf(present.table, presentColumn)) ?? types[index] ?? '';
      const otherType = typeOf(presentParent.table, presentParent.columns[index]);
      if (otherType === undefined || strictKeyType(ownType) === strictKeyType(otherType)) continue;
      const definition =
        present?.table === table && presentColumn === column
          ? await completeDefinition(exec, traits, table, column, otherType)
          : `${quoteIdentifier(column)} ${otherType}${attributes[index] ?? ''}`;
      const error = new SvcError('constraint_invalid', `"${table}.${column}" cannot reference "${parent}".`, {
        why: `It is of type ${ownType}, "${parent}.${target[index]}" of type ${otherType}, and the server requires the same type for both.`,
        next: [
          `Change its type in a raw statement before the constraint: ALTER TABLE ${quoteIdentifier(table)} MODIFY ${definition}`,
        ],
      });
      failures.push({ statement, error });
    }
  }
  return failures;
}

/** The definition of a column with another type: MODIFY would drop every attribute that it does not repeat. */
async function completeDefinition(
  exec: ExecSql,
  traits: Traits,
  table: string,
  column: string,
  type: string,
): Promise<string> {
  const alter: AlterTable = { kind: 'alterTable', table, clauses: [{ kind: 'modifyColumn', column, type }] };
  const [clause] = await completeClauses(exec, traits, alter);
  return clause?.kind === 'redefineColumn' ? clause.definition : `${quoteIdentifier(column)} ${type}`;
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
