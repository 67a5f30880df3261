import type { PreflightFailure } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import { containsWord, escapeRegExp } from '../../../../core/match-text.ts';
import { type ExecSql, rowsOf } from '../../sql/session.ts';
import { quoteIdentifier } from '../compile/literal.ts';
import type { AlterClause } from '../compile/step.ts';
import type { ExistingTableChanges } from './existing-table-changes.ts';

/** A table or a column that a statement drops or renames. */
interface Removal {
  readonly statement: number;
  readonly table: string;
  readonly column?: string;
  readonly isRename: boolean;
}

/** A view or a trigger. */
interface Reader {
  readonly kind: 'view' | 'trigger';
  readonly name: string;
  /** Lower case and without string literals. */
  readonly text: string;
  /** The table of a trigger. */
  readonly table: string | undefined;
}

/** Dropped and renamed tables and columns that a view or a trigger reads: the server would keep it, unusable. */
export async function findReaders(
  exec: ExecSql,
  { changes, dropped, droppedObjects }: ExistingTableChanges,
): Promise<PreflightFailure[]> {
  const removals = [
    ...[...dropped].map(([table, statement]): Removal => ({ statement, table, isRename: false })),
    ...[...changes].flatMap(([table, list]) =>
      list.flatMap(({ statement, alter }) =>
        alter.clauses.flatMap((clause) => removalsOf(clause).map((one) => ({ ...one, statement, table }))),
      ),
    ),
  ];
  if (removals.length === 0) return [];
  const readers = (await readReaders(exec)).filter(({ kind, name }) => !droppedObjects.has(`${kind}/${name}`));
  return removals.flatMap((removal): PreflightFailure[] => {
    const reader = readers.find((one) => reads(one, removal));
    return reader ? [{ statement: removal.statement, error: unusableError(removal, reader) }] : [];
  });
}

function removalsOf(clause: AlterClause): readonly Pick<Removal, 'column' | 'isRename'>[] {
  switch (clause.kind) {
    case 'dropColumn':
      return [{ column: clause.column, isRename: false }];
    case 'renameColumn':
      return [{ column: clause.from, isRename: true }];
    case 'renameTable':
      return [{ isRename: true }];
    default:
      return [];
  }
}

async function readReaders(exec: ExecSql): Promise<readonly Reader[]> {
  const rows = await rowsOf(
    exec,
    `SELECT 'view' AS kind, v.table_name AS name, v.view_definition AS text, NULL AS t, DATABASE() AS db
  FROM information_schema.views v WHERE v.table_schema = DATABASE()
UNION ALL SELECT 'trigger', g.trigger_name, g.action_statement, g.event_object_table, DATABASE()
  FROM information_schema.triggers g WHERE g.trigger_schema = DATABASE() ORDER BY kind DESC, name`,
  );
  return rows.map(({ kind, name, text, t, db }) => ({
    kind: kind === 'view' ? 'view' : 'trigger',
    name: String(name),
    text: String(text ?? '')
      .toLowerCase()
      .replace(/'(?:[^'\\]|\\.|'')*'/gs, "''")
      // A view names its own database with every table.
      .replaceAll(`${quoteIdentifier(String(db)).toLowerCase()}.`, ''),
    table: t === null || t === undefined ? undefined : String(t),
  }));
}

function reads(reader: Reader, { table, column }: Removal): boolean {
  return reader.kind === 'view' ? viewReads(reader.text, table, column) : triggerReads(reader, table, column);
}

/** The server writes the names of a view in full: `table`.`column`, or `alias`.`column` after `table` `alias`. */
function viewReads(text: string, table: string, column: string | undefined): boolean {
  const source = quoteIdentifier(table.toLowerCase());
  const uses = [
    ...text.matchAll(new RegExp(`(?<![.\`])${escapeRegExp(source)}(?!\\.)(?: (\`(?:[^\`]|\`\`)*\`))?`, 'g')),
  ];
  if (uses.length === 0 || column === undefined) return uses.length > 0;
  const aliases = new Set([source, ...uses.flatMap(([, alias]) => alias ?? [])]);
  return [...aliases].some((alias) => text.includes(`${alias}.${quoteIdentifier(column.toLowerCase())}`));
}

/** The text of a trigger is as its author wrote it. One that names another table and the column is taken for a reader. */
function triggerReads({ text, table: own }: Reader, table: string, column: string | undefined): boolean {
  // Triggers are dropped with their table, and follow its name.
  if (own === table) {
    return (
      column !== undefined &&
      new RegExp(`\\b(new|old)\\s*\\.\\s*\`?${escapeRegExp(column.toLowerCase())}\`?(?![\\w$])`).test(text)
    );
  }
  return containsWord(text, table) && (column === undefined || containsWord(text, column));
}

function unusableError({ table, column, isRename }: Removal, { kind, name }: Reader): SvcError {
  const what = column === undefined ? `The table "${table}"` : `"${table}.${column}"`;
  return new SvcError(
    'collection_referenced',
    `${what} cannot be ${isRename ? 'renamed' : 'dropped'}: the ${kind} "${name}" reads it.`,
    {
      why: `The server would keep the ${kind} as it is, and ${kind === 'view' ? 'every query of it' : 'every statement that it runs for'} would fail.`,
      next: [
        `Drop it before in a raw statement of the same migration, and create it again after: DROP ${kind.toUpperCase()} ${quoteIdentifier(name)}`,
      ],
      details: { [kind]: name },
    },
  );
}
