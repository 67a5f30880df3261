import type { PreflightFailure } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import { type ExecSql, type Result, rowsOf } from '../../sql/session.ts';
import { PRIMARY_KEY, serves } from '../catalog/catalog-table.ts';
import { readTable } from '../catalog/read-catalog.ts';
import { renamedName } from '../catalog/renamed-constraints.ts';
import { quoteIdentifier, quoteLiteral } from '../compile/literal.ts';
import type { AlterClause } from '../compile/step.ts';
import type { Traits } from '../variant.ts';
import type { ExistingTableChanges, TableChange } from './existing-table-changes.ts';

/** A foreign key of the catalog: no model needs to contain it. */
interface ForeignKeyFact {
  readonly schema: string;
  readonly table: string;
  readonly name: string;
  readonly columns: readonly string[];
  readonly referenced: string;
  readonly target: readonly string[];
  readonly isOutside: boolean;
}

/** Dropped keys and columns that a foreign key of the catalog needs, and which the run does not drop before. */
export async function findNeededKeys(
  exec: ExecSql,
  traits: Traits,
  all: ExistingTableChanges,
): Promise<PreflightFailure[]> {
  const changes = [...all.changes].filter(([, list]) => list.some(({ alter }) => alter.clauses.some(dropsKeyOrColumn)));
  if (changes.length === 0) return [];
  const foreignKeys = await readForeignKeys(
    exec,
    changes.map(([table]) => table),
  );
  const failures: PreflightFailure[] = [];
  for (const [table, list] of changes) {
    for (const change of list) {
      const left = foreignKeys.filter((key) => !isDroppedBefore(traits, all, key, change.statement));
      const error =
        neededColumnError(table, change, left) ?? (await neededIndexError(exec, traits, table, list, change, left));
      if (error) failures.push({ statement: change.statement, error });
    }
  }
  return failures;
}

const dropsKeyOrColumn = ({ kind }: AlterClause): boolean => dropsIndex(kind) || kind === 'dropColumn';
const dropsIndex = (kind: AlterClause['kind']): boolean => kind === 'dropIndex' || kind === 'dropPrimaryKey';

async function readForeignKeys(exec: ExecSql, tables: readonly string[]): Promise<ForeignKeyFact[]> {
  const names = tables.map(quoteLiteral).join(', ');
  const rows = await rowsOf(
    exec,
    `SELECT k.table_schema AS s, k.table_name AS t, k.constraint_name AS n, k.column_name AS c, k.referenced_table_name AS rt,
  k.referenced_column_name AS rc, k.table_schema <> DATABASE() AS outside FROM information_schema.key_column_usage k
  WHERE k.referenced_table_schema = DATABASE() AND (k.referenced_table_name IN (${names})
  OR (k.table_schema = DATABASE() AND k.table_name IN (${names}))) ORDER BY k.table_schema, k.table_name, k.constraint_name, k.ordinal_position`,
  );
  return [...groupRows(rows).values()].flatMap((parts): ForeignKeyFact[] => {
    const [first] = parts;
    if (!first) return [];
    return [
      {
        schema: String(first.s),
        table: String(first.t),
        name: String(first.n),
        columns: parts.map(({ c }) => String(c)),
        referenced: String(first.rt),
        target: parts.map(({ rc }) => String(rc)),
        isOutside: Number(first.outside) === 1,
      },
    ];
  });
}

/** Whether an earlier statement, or the same one, drops the key or its table. */
function isDroppedBefore(
  traits: Traits,
  { changes, dropped }: ExistingTableChanges,
  { table, name, isOutside }: ForeignKeyFact,
  statement: number,
): boolean {
  if (isOutside) return false;
  if ((dropped.get(table) ?? Infinity) < statement) return true;
  return (changes.get(table) ?? []).some(
    (change) =>
      change.statement <= statement &&
      change.alter.clauses.some(
        (clause) =>
          clause.kind === 'dropForeignKey' &&
          (clause.name === name || renamedName(traits, 'foreignKey', clause.name, table) === name),
      ),
  );
}

function neededColumnError(
  table: string,
  { alter, presentColumns }: TableChange,
  foreignKeys: readonly ForeignKeyFact[],
): SvcError | undefined {
  for (const clause of alter.clauses) {
    const column = clause.kind === 'dropColumn' ? presentColumns.get(clause.column) : undefined;
    if (column === undefined) continue;
    const key = foreignKeys.find(
      (one) =>
        (one.referenced === table && one.target.includes(column)) ||
        (!one.isOutside && one.table === table && one.columns.includes(column)),
    );
    if (key) return neededError('field_in_use', `The field "${table}.${column}" cannot be dropped.`, key);
  }
  return undefined;
}

async function neededIndexError(
  exec: ExecSql,
  traits: Traits,
  table: string,
  changes: readonly TableChange[],
  { alter, statement }: TableChange,
  foreignKeys: readonly ForeignKeyFact[],
): Promise<SvcError | undefined> {
  const referencing = foreignKeys.filter(({ referenced }) => referenced === table);
  const names = alter.clauses.flatMap((clause) => {
    if (clause.kind === 'dropPrimaryKey') return [PRIMARY_KEY];
    return clause.kind === 'dropIndex' ? [clause.name] : [];
  });
  if (referencing.length === 0 || names.length === 0) return undefined;
  // An index that the run adds may serve the foreign key.
  const addsIndex = changes.some((one) => one.statement <= statement && one.alter.clauses.some(addsAnIndex));
  if (addsIndex) return undefined;
  const { indexes } = await readTable(exec, traits, table);
  const remaining = indexes.filter(({ name }) => !names.includes(name));
  const key = referencing.find(
    ({ target }) => indexes.some((index) => serves(index, target)) && !remaining.some((index) => serves(index, target)),
  );
  const what = names.includes(PRIMARY_KEY) ? 'primary key' : `key "${names[0]}"`;
  return key && neededError('key_in_use', `The ${what} of "${table}" cannot be dropped.`, key);
}

const addsAnIndex = ({ kind }: AlterClause): boolean => kind === 'addIndex' || kind === 'addConstraint';

function neededError(code: 'field_in_use' | 'key_in_use', message: string, key: ForeignKeyFact): SvcError {
  const name = quoteIdentifier(key.name);
  const table = `${key.isOutside ? `${quoteIdentifier(key.schema)}.` : ''}${quoteIdentifier(key.table)}`;
  return new SvcError(code, message, {
    why: `The foreign key ${name} of ${table}, which no migration drops before, needs it.`,
    next: [`Drop it first: raw, ALTER TABLE ${table} DROP FOREIGN KEY ${name}`],
    details: { table: key.table, foreignKey: key.name },
  });
}

const keyOf = (row: Result['rows'][number]): string => JSON.stringify([row.s, row.t, row.n]);

function groupRows(rows: Result['rows']): ReadonlyMap<string, Result['rows'][number][]> {
  const groups = new Map<string, Result['rows'][number][]>();
  for (const row of rows) groups.set(keyOf(row), [...(groups.get(keyOf(row)) ?? []), row]);
  return groups;
}
