import { PresentNames, type PresentTable } from '../../sql/present-names.ts';
import { quoteIdentifier } from '../compile/literal.ts';
import { type AlterClause, type AlterTable, type MysqlStatement, newNameIn } from '../compile/step.ts';
import type { ForeignKeyColumns, Violation } from '../compile/violations.ts';
import { type RawEffect, unknownEffect } from './raw-effects.ts';

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
  /** The names at the start of the columns that it changes or drops; absent for those that the run adds. */
  readonly presentColumns: ReadonlyMap<string, string>;
  /** How a query reads the table as the change finds it; undefined if an earlier statement changes its columns or values. */
  readonly source: ChangedSource | undefined;
  /** Only those that read no column which an earlier statement changes. */
  readonly violations: readonly (Violation & { readonly source: ChangedSource })[];
}

/** Tables under the names, and with the rows, that they will have: a WITH clause, or an empty text. */
interface ChangedSource {
  readonly withClause: string;
}

/** A foreign key to a table that exists at the start of the run. */
export interface AddedForeignKey extends ForeignKeyColumns {
  readonly statement: number;
  readonly table: string;
  /** The referencing table and its columns at the start, if they exist then. */
  readonly present: PresentColumns | undefined;
  readonly presentParent: PresentColumns;
}

interface PresentColumns {
  readonly table: string;
  readonly columns: readonly string[];
}

/** Stops at a raw statement that may change or empty any table. */
export function existingTableChanges(
  statements: readonly MysqlStatement[],
  database: string,
  rawEffects: ReadonlyMap<number, RawEffect> = new Map(),
): ExistingTableChanges {
  const changes = new Map<string, TableChange[]>();
  const dropped = new Map<string, number>();
  const droppedObjects = new Set<string>();
  const foreignKeys: AddedForeignKey[] = [];
  const names = new PresentNames();
  /** Tables that the run has created, and that have no rows. */
  const created = new Set<string>();
  /** Tables that a raw statement may have changed. */
  const altered = new Set<string>();
  /** The rows of any table may have changed. */
  let areRowsUnknown = false;
  const presentColumns = (table: string, columns: readonly string[]): PresentColumns | undefined => {
    const present = areRowsUnknown ? undefined : names.table(table);
    const found = columns.flatMap((column) => present?.unchangedColumn(column) ?? []);
    return present && found.length === columns.length ? { table: present.name, columns: found } : undefined;
  };
  const sourceOf = (reads: Violation['reads']): ChangedSource | undefined => {
    const renamed: string[] = [];
    for (const [table, columns] of Object.entries(reads)) {
      if (created.has(table) && !areRowsUnknown) {
        const selected = columns.map((column) => `NULL AS ${quoteIdentifier(column)}`);
        renamed.push(`${quoteIdentifier(table)} AS (SELECT ${selected.join(', ')} FROM DUAL WHERE FALSE)`);
        continue;
      }
      const present = areRowsUnknown ? undefined : names.table(table);
      if (!present || present.areRowsUnknown) return undefined;
      const sources = columns.map((column) => present.source(column, quoteIdentifier));
      if (sources.includes(undefined)) return undefined;
      if (present.name === table && sources.every((source, index) => source === quoteIdentifier(columns[index] ?? '')))
        continue;
      const selected = new Set(sources.map((source, index) => `${source} AS ${quoteIdentifier(columns[index] ?? '')}`));
      renamed.push(
        `${quoteIdentifier(table)} AS (SELECT ${[...selected].join(', ') || '1'} FROM ${quoteIdentifier(database)}.${quoteIdentifier(present.name)})`,
      );
    }
    return { withClause: renamed.length === 0 ? '' : `WITH ${renamed.join(', ')} ` };
  };
  /** Of a foreign key: no value finds its row in a table that the run has created, and a new field has its default. */
  const explained = (violation: Violation, { parent, columns }: ForeignKeyColumns, table: PresentTable): Violation => {
    const isNew = columns.some((column) => table.hasKnownValue(column));
    if (!created.has(parent)) return isNew ? { ...violation, next: INSERT_FIRST } : violation;
    return {
      ...violation,
      why: `${violation.why} The table "${parent}" is created first, without rows.`,
      next: isNew
        ? INSERT_FIRST
        : 'Set these values to NULL or delete the rows that have them, then run the command again.',
    };
  };
  for (const [index, statement] of statements.entries()) {
    const plan = statement.run;
    if (plan.kind === 'raw') {
      if (plan.drops !== undefined) droppedObjects.add(plan.drops);
      if (plan.inSchema) continue;
      const { tables, mayChangeTables } = rawEffects.get(index) ?? unknownEffect(statement.text);
      if (tables === undefined) {
        if (mayChangeTables) break;
        areRowsUnknown = true;
      }
      for (const name of tables ?? []) {
        created.delete(name);
        if (!mayChangeTables) names.table(name)?.changeRows();
        else {
          names.forget(name);
          altered.add(name);
        }
      }
      continue;
    }
    if (plan.kind === 'checkRows') continue;
    const table = names.table(plan.table);
    if (plan.kind === 'fillColumn') {
      if (table?.hasKnownValue(plan.column)) table.add(plan.column, plan.value);
      continue;
    }
    if (plan.kind !== 'alterTable') {
      if (plan.kind === 'dropTable' && table) dropped.set(table.name, index);
      if (plan.kind === 'createTable') created.add(plan.table);
      else created.delete(plan.table);
      altered.delete(plan.table);
      names.forget(plan.table);
    }
    if (plan.kind === 'dropTable') continue;
    const found = plan.violations ?? [];
    for (const { foreignKey } of found) {
      const presentParent = foreignKey && presentColumns(foreignKey.parent, foreignKey.target);
      if (!presentParent || altered.has(plan.table)) continue;
      const present = presentColumns(plan.table, foreignKey.columns);
      foreignKeys.push({ ...foreignKey, statement: index, table: plan.table, present, presentParent });
    }
    if (plan.kind === 'createTable') continue;
    if (table) {
      const columns = plan.clauses.flatMap(existingColumns);
      const change = {
        statement: index,
        text: statement.text,
        alter: plan,
        allowCopy: statement.allowCopy === true,
        presentColumns: new Map(
          columns.flatMap((column) => {
            const name = table.column(column);
            return name === undefined ? [] : [[column, name] as const];
          }),
        ),
        source: sourceOf({ [plan.table]: columns }),
        violations: found.flatMap((violation) => {
          const source = sourceOf(violation.reads);
          if (!source) return [];
          return [
            { ...(violation.foreignKey ? explained(violation, violation.foreignKey, table) : violation), source },
          ];
        }),
      };
      changes.set(table.name, [...(changes.get(table.name) ?? []), change]);
      for (const clause of plan.clauses) applyToNames(table, clause);
    }
    const newName = newNameIn(plan);
    if (newName === undefined) continue;
    names.rename(plan.table, newName);
    if (created.delete(plan.table)) created.add(newName);
  }
  return { changes, dropped, foreignKeys, droppedObjects };
}

function applyToNames(table: PresentTable, clause: AlterClause): void {
  if (clause.kind === 'addColumn') table.add(clause.column, clause.value);
  if (clause.kind === 'dropColumn') table.forget(clause.column);
  // A new column keeps its value under another default.
  if (clause.kind === 'modifyColumn' && !(clause.type === undefined && table.hasKnownValue(clause.column)))
    table.change(clause.column);
  if (clause.kind === 'renameColumn') table.rename(clause.from, clause.to);
}

const INSERT_FIRST =
  'Insert the rows that it references in a raw statement before the constraint, or add the field without a default.';

/** The columns that the clause needs. */
function existingColumns(clause: AlterClause): readonly string[] {
  switch (clause.kind) {
    case 'modifyColumn':
    case 'dropColumn':
      return [clause.column];
    case 'renameColumn':
      return [clause.from];
    default:
      return [];
  }
}
