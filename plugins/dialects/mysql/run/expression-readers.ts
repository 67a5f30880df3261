import type { PreflightFailure } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import type { ExecSql } from '../../sql/session.ts';
import type { CatalogTable } from '../catalog/catalog-table.ts';
import { readCatalog } from '../catalog/read-catalog.ts';
import { renamedName } from '../catalog/renamed-constraints.ts';
import { quoteIdentifier } from '../compile/literal.ts';
import type { AlterClause } from '../compile/step.ts';
import type { Traits } from '../variant.ts';
import { dropArrayChecks } from './complete-alter.ts';
import type { ExistingTableChanges, TableChange } from './existing-table-changes.ts';

/** A generated field or a check of the catalog that reads a column. */
interface ExpressionReader {
  readonly what: string;
  readonly drop: string;
}

/** Dropped and renamed columns that a generated field or a check of the catalog reads: the server rejects the change. */
export async function findExpressionReaders(
  exec: ExecSql,
  traits: Traits,
  { changes }: ExistingTableChanges,
): Promise<PreflightFailure[]> {
  const removes = ({ alter }: TableChange) =>
    alter.clauses.some((clause) => removedColumn(traits, clause) !== undefined);
  const tables = [...changes].flatMap(([table, list]) => (list.some(removes) ? [table] : []));
  if (tables.length === 0) return [];
  const failures: PreflightFailure[] = [];
  for (const table of await readCatalog(exec, traits, tables)) {
    const list = changes.get(table.name) ?? [];
    for (const [index, change] of list.entries()) {
      for (const clause of change.alter.clauses) {
        const column = change.presentColumns.get(removedColumn(traits, clause) ?? '');
        if (column === undefined) continue;
        const isRename = clause.kind === 'renameColumn';
        const reader = findReader(traits, table, column, isRename, list.slice(0, index + 1));
        if (reader)
          failures.push({ statement: change.statement, error: readError(table.name, column, isRename, reader) });
      }
    }
  }
  return failures;
}

function removedColumn({ followsRenames }: Traits, clause: AlterClause): string | undefined {
  if (clause.kind === 'dropColumn') return clause.column;
  return clause.kind === 'renameColumn' && !followsRenames ? clause.from : undefined;
}

/** `changes` are those up to the one that removes the column. */
function findReader(
  traits: Traits,
  table: CatalogTable,
  column: string,
  isRename: boolean,
  changes: readonly TableChange[],
): ExpressionReader | undefined {
  const reads = (expression: string, name = column) =>
    expression.toLowerCase().includes(quoteIdentifier(name).toLowerCase());
  const alterTable = `ALTER TABLE ${quoteIdentifier(table.name)}`;
  const generated = table.columns.find(
    ({ name, generated }) => name !== column && reads(generated) && !changes.some((one) => changesColumn(one, name)),
  );
  if (generated) {
    const drop = `${alterTable} DROP COLUMN ${quoteIdentifier(generated.name)}`;
    return { what: `generated field "${generated.name}"`, drop };
  }
  const arrayChecks = dropArrayChecks(traits, table, column).map(({ name }) => name);
  const check = table.checks.find(({ name, expression, ofColumn }) => {
    if (!reads(expression) || arrayChecks.includes(name) || changes.some((one) => dropsCheck(traits, one, table, name)))
      return false;
    // The server drops a check with the only column that it reads.
    const isOwn = ofColumn
      ? name === column
      : !table.columns.some((one) => one.name !== column && reads(expression, one.name));
    return isRename || !isOwn;
  });
  return (
    check && { what: `check "${check.name}"`, drop: `${alterTable} ${traits.dropCheck} ${quoteIdentifier(check.name)}` }
  );
}

const changesColumn = ({ alter, presentColumns }: TableChange, column: string): boolean =>
  alter.clauses.some(
    (clause) =>
      (clause.kind === 'dropColumn' || clause.kind === 'modifyColumn') && presentColumns.get(clause.column) === column,
  );

const dropsCheck = (traits: Traits, { alter }: TableChange, { name: table }: CatalogTable, check: string): boolean =>
  alter.clauses.some(
    (clause) =>
      clause.kind === 'dropCheck' &&
      (clause.name === check || renamedName(traits, 'check', clause.name, table) === check),
  );

function readError(table: string, column: string, isRename: boolean, { what, drop }: ExpressionReader): SvcError {
  return new SvcError(
    'field_in_use',
    `"${table}.${column}" cannot be ${isRename ? 'renamed' : 'dropped'}: the ${what} reads it.`,
    {
      why: 'The table in the database has it, no migration drops it before, and the server rejects the change.',
      next: [`Drop it before in a raw statement, and create it again after: ${drop}`],
    },
  );
}
