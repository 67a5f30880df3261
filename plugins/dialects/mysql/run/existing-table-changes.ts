import type { AlterClause, AlterTable, MysqlStatement } from '../compile/step.ts';
import type { ForeignKeyColumns, Violation } from '../compile/violations.ts';

/** The changes of a run to tables that exist at its start, as far as they are certain beforehand. */
export interface ExistingTableChanges {
  /** By the name of the table at the start. */
  readonly changes: ReadonlyMap<string, readonly TableChange[]>;
  /** The statement that drops a table, by the name of the table at the start. */
  readonly dropped: ReadonlyMap<string, number>;
  readonly foreignKeys: readonly AddedForeignKey[];
  /** As `kind/name`. Core drops what reads a table before it changes that. */
  readonly droppedObjects: ReadonlySet<string>;
}

export interface TableChange {
  /** Its index. */
  readonly statement: number;
  readonly text: string;
  readonly alter: AlterTable;
  /** Its migration permits copying the table. */
  readonly allowCopy: boolean;
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
export function existingTableChanges(statements: readonly MysqlStatement[]): ExistingTableChanges {
  const changes = new Map<string, TableChange[]>();
  const dropped = new Map<string, number>();
  const droppedObjects = new Set<string>();
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
      if (plan.drops !== undefined) droppedObjects.add(plan.drops);
      if (plan.inSchema) continue;
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
      allowCopy: statement.allowCopy === true,
      columnsUnchanged: isUnchanged(table, columns),
      violations: found.filter(({ reads }) =>
        Object.entries(reads).every(([from, columns]) => isUnchanged(from, columns)),
      ),
    };
    changes.set(table, [...(changes.get(table) ?? []), change]);
    changedColumns.set(table, [...(changedColumns.get(table) ?? []), ...columns]);
  }
  return { changes, dropped, foreignKeys, droppedObjects };
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
