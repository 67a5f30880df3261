import type { PreflightFailure } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import { type ExecSql, rowsOf } from '../../sql/session.ts';
import { quoteLiteral } from '../compile/literal.ts';
import type { AlterClause } from '../compile/step.ts';
import type { TableChange } from './existing-table-changes.ts';

/** Columns to add that a table has already, and columns to change that it does not have: somebody changed it by hand. */
export async function findColumnConflicts(
  exec: ExecSql,
  changes: ReadonlyMap<string, readonly TableChange[]>,
): Promise<PreflightFailure[]> {
  if (changes.size === 0) return [];
  const rows = await rowsOf(
    exec,
    `SELECT table_name AS t, column_name AS c FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name IN (${[...changes.keys()].map(quoteLiteral).join(', ')})`,
  );
  return [...changes].flatMap(([table, tableChanges]): PreflightFailure[] => {
    // The catalog ignores the case of a table's name, and the server that of a column's.
    const columns = new Set(rows.filter((row) => row.t === table).map((row) => String(row.c).toLowerCase()));
    if (columns.size === 0) return [];
    for (const { statement, alter } of tableChanges) {
      const conflicts = alter.clauses.flatMap((clause) => applyClause(columns, table, clause) ?? []);
      // Later changes build on this one.
      if (conflicts[0]) return [{ statement, error: conflicts[0] }];
    }
    return [];
  });
}

/** Makes the change in the set of columns; returns why the server would reject it. */
function applyClause(columns: Set<string>, table: string, clause: AlterClause): SvcError | undefined {
  const add = (name: string): SvcError | undefined => {
    if (columns.has(name.toLowerCase())) return existsError(table, name);
    columns.add(name.toLowerCase());
    return undefined;
  };
  const has = (name: string) => columns.has(name.toLowerCase());
  switch (clause.kind) {
    case 'addColumn':
      return add(clause.column);
    case 'modifyColumn':
      return has(clause.column) ? undefined : missingError(table, clause.column);
    case 'dropColumn':
      return columns.delete(clause.column.toLowerCase()) ? undefined : missingError(table, clause.column);
    case 'renameColumn':
      return columns.delete(clause.from.toLowerCase()) ? add(clause.to) : missingError(table, clause.from);
    default:
      return undefined;
  }
}

function existsError(table: string, column: string): SvcError {
  return new SvcError('field_exists', `The field "${table}.${column}" already exists.`, {
    why: 'The table in the database has it, and no migration created it.',
    next: ['Drop or rename the existing field, or use another name.'],
  });
}

function missingError(table: string, column: string): SvcError {
  return new SvcError('field_unknown', `The table "${table}" in the database has no field "${column}".`, {
    why: 'It was dropped or renamed, but not by a migration.',
    next: ['Revert that change, or remove the step from the migration.'],
  });
}
