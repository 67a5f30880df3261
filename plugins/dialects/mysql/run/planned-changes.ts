import { isSvcError } from '../../../../core/errors.ts';
import type { ExecSql } from '../../sql/session.ts';
import type { AlterClause, AlterTable, MysqlStatement } from '../compile/statement.ts';
import type { ForeignKeyColumns, Violation } from '../compile/violations.ts';
import { errorNumber } from '../connection/errors.ts';
import type { Traits } from '../variant.ts';
import { completeClauses, needsCatalog } from './complete-alter.ts';
import { completeSql } from './online-alter.ts';

/** The changes of a run to tables that exist at its start, as far as they are certain beforehand. */
export interface PlannedChanges {
  /** By the name of the table at the start. */
  readonly changes: ReadonlyMap<string, readonly TableChange[]>;
  /** The statement that drops a table, by the name of the table at the start. */
  readonly dropped: ReadonlyMap<string, number>;
  readonly foreignKeys: readonly AddedForeignKey[];
}

export interface TableChange {
  /** Its index. */
  readonly statement: number;
  readonly text: string;
  readonly alter: AlterTable;
  /** No earlier statement changes its columns or their values. */
  readonly columnsUnchanged: boolean;
  /** Only those that read no column which an earlier statement changes. */
  readonly violations: readonly Violation[];
}

/** A foreign key to a table that exists at the start of the run. */
export interface AddedForeignKey extends ForeignKeyColumns {
  readonly statement: number;
  readonly table: string;
  /** The referencing table exists at the start too. */
  readonly existsBefore: boolean;
}

/** Stops at a raw statement that may change or empty tables. */
export function planChanges(statements: readonly MysqlStatement[]): PlannedChanges {
  const changes = new Map<string, TableChange[]>();
  const dropped = new Map<string, number>();
  const foreignKeys: AddedForeignKey[] = [];
  /** The original name of each table that the run creates, drops or renames, if it existed at the start. */
  const originals = new Map<string, string | undefined>();
  const originalOf = (name: string): string | undefined => (originals.has(name) ? originals.get(name) : name);
  /** Columns that the run adds, changes or drops, by the name of their table at the start. */
  const changedColumns = new Map<string, readonly string[]>();
  let hasRaw = false;
  const isUnchanged = (table: string, columns: readonly string[]): boolean =>
    !hasRaw && !originals.has(table) && !columns.some((column) => changedColumns.get(table)?.includes(column));
  for (const [index, statement] of statements.entries()) {
    const plan = statement.run;
    if (plan.kind === 'raw') {
      hasRaw = true;
      if (MAY_CHANGE_TABLES.test(statement.text)) break;
      continue;
    }
    const table = originalOf(plan.table);
    if (plan.kind === 'fillColumn') continue;
    if (plan.kind !== 'alterTable') {
      if (plan.kind === 'dropTable' && table !== undefined) dropped.set(table, index);
      originals.set(plan.table, undefined);
      continue;
    }
    const newName = newNameIn(plan);
    if (newName !== undefined) originals.set(plan.table, undefined).set(newName, table);
    const found = plan.violations ?? [];
    for (const { foreignKey } of found) {
      if (!foreignKey || !isUnchanged(foreignKey.parent, foreignKey.target)) continue;
      const existsBefore = isUnchanged(plan.table, foreignKey.columns);
      foreignKeys.push({ ...foreignKey, statement: index, table: plan.table, existsBefore });
    }
    if (table === undefined) continue;
    const columns = plan.clauses.flatMap(columnsOf);
    const change = {
      statement: index,
      text: statement.text,
      alter: plan,
      columnsUnchanged: isUnchanged(table, columns),
      violations: found.filter(({ reads }) =>
        Object.entries(reads).every(([from, columns]) => isUnchanged(from, columns)),
      ),
    };
    changes.set(table, [...(changes.get(table) ?? []), change]);
    changedColumns.set(table, [...(changedColumns.get(table) ?? []), ...columns]);
  }
  return { changes, dropped, foreignKeys };
}

/** A raw statement that may replace or empty a table. */
const MAY_CHANGE_TABLES = /\b(alter|call|create|delete|drop|execute|load|rename|truncate)\b/i;

export const newNameIn = ({ clauses }: AlterTable): string | undefined =>
  clauses.find((clause) => clause.kind === 'renameTable')?.to;

function columnsOf(clause: AlterClause): readonly string[] {
  switch (clause.kind) {
    case 'addColumn':
    case 'modifyColumn':
    case 'dropColumn':
      return [clause.column];
    case 'renameColumn':
      return [clause.from, clause.to];
    default:
      return [];
  }
}

/** The SQL that will be sent; the planned text if an earlier statement changes the table or its columns. */
export async function previewSql(
  exec: ExecSql,
  traits: Traits,
  statements: readonly MysqlStatement[],
): Promise<string[]> {
  const texts = statements.map(({ text }) => text);
  for (const [table, changes] of planChanges(statements).changes) {
    for (const { statement, alter, columnsUnchanged } of changes) {
      if (!columnsUnchanged || !needsCatalog(traits, alter)) continue;
      try {
        texts[statement] = completeSql(traits, table, await completeClauses(exec, traits, alter)).join('; ');
      } catch (error) {
        // The run reports it.
        if (!isSvcError(error) && errorNumber(error) === undefined) throw error;
      }
    }
  }
  return texts;
}
