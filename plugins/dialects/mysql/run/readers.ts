import type { PreflightFailure } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import { escapeRegExp, lowerCaseContainsWord } from '../../../../core/match-text.ts';
import { nameInTable } from '../../../../core/schema/database-object.ts';
import type { MigrationOperation } from '../../../../core/schema/operation.ts';
import type { ExecSql } from '../../sql/session.ts';
import { quoteIdentifier } from '../compile/literal.ts';
import type { AlterClause } from '../compile/step.ts';
import type { ExistingTableChanges } from './existing-table-changes.ts';
import { type Reader, type ReaderKind, readReaders } from './read-readers.ts';

/** A table or a column that a statement drops or renames. */
interface Removal {
  readonly statement: number;
  readonly table: string;
  readonly column?: string;
  readonly isRename: boolean;
}

/** Dropped and renamed tables and columns that a view, a trigger or a routine reads: the server would keep it, unusable. */
export async function findReaders(
  exec: ExecSql,
  { changes, dropped, droppedObjects }: ExistingTableChanges,
  operations: readonly MigrationOperation[],
): Promise<PreflightFailure[]> {
  const removals = [
    ...[...dropped].map(([table, statement]): Removal => ({ statement, table, isRename: false })),
    ...[...changes].flatMap(([table, list]) =>
      list.flatMap(({ statement, alter, presentColumns }) =>
        alter.clauses.flatMap((clause) =>
          removalsOf(clause, presentColumns).map((one) => ({ ...one, statement, table })),
        ),
      ),
    ),
  ];
  if (removals.length === 0) return [];
  // The server never checks the text of a routine, so it may be replaced after the change too.
  const replaced = new Set(
    operations.flatMap((one) =>
      one.type === 'replaceObject' || one.type === 'dropObject' ? [`${one.kind}/${nameInTable(one)}`] : [],
    ),
  );
  const all = await readReaders(exec);
  const readers = all.filter(
    ({ kind, name }) => !droppedObjects.has(`${kind}/${name}`) && !(kind !== 'view' && replaced.has(`${kind}/${name}`)),
  );
  const createdAgain = unchangedCreations(operations);
  const texts = replacedViews(operations);
  return removals.flatMap((removal): PreflightFailure[] => {
    const reader = readers.find((one) => reads(one, removal) && !isReadNoMore(texts.get(one.name), removal));
    const invalid = all.flatMap((one): PreflightFailure[] => {
      const again = createdAgain.get(`${one.kind}/${one.name}`) ?? [];
      const statement = again.find(
        (two) => two.dropped < removal.statement && removal.statement < two.created,
      )?.created;
      const isCertain = one.kind === 'view' || one.table === removal.table;
      return statement !== undefined && isCertain && reads(one, removal)
        ? [{ statement, error: invalidTextError(removal, one) }]
        : [];
    });
    return [...(reader ? [{ statement: removal.statement, error: unusableError(removal, reader) }] : []), ...invalid];
  });
}

/** The statements that drop an object, and create it again with the text that it had before. */
interface CreatedAgain {
  readonly dropped: number;
  readonly created: number;
}

function unchangedCreations(operations: readonly MigrationOperation[]): ReadonlyMap<string, readonly CreatedAgain[]> {
  const dropped = new Map<string, { readonly at: number; readonly was: string }>();
  const again = new Map<string, readonly CreatedAgain[]>();
  for (const [index, operation] of operations.entries()) {
    if (operation.type !== 'dropObject' && operation.type !== 'createObject') continue;
    const key = `${operation.kind}/${nameInTable(operation)}`;
    const last = dropped.get(key);
    if (operation.type === 'dropObject') dropped.set(key, { at: index, was: operation.was });
    else if (last?.was === operation.definition)
      again.set(key, [...(again.get(key) ?? []), { dropped: last.at, created: index }]);
  }
  return again;
}

interface ReplacedView {
  readonly statement: number;
  /** As its author wrote it, in lower case. */
  readonly text: string;
}

function replacedViews(operations: readonly MigrationOperation[]): ReadonlyMap<string, ReplacedView> {
  return new Map(
    operations.flatMap((one, statement): [string, ReplacedView][] =>
      one.type === 'replaceObject' && one.kind === 'view'
        ? [[one.name, { statement, text: one.definition.toLowerCase() }]]
        : [],
    ),
  );
}

/** Whether an earlier step gives a view a text without the name. */
const isReadNoMore = (view: ReplacedView | undefined, { statement, table, column = table }: Removal): boolean =>
  view !== undefined && view.statement < statement && !lowerCaseContainsWord(view.text, column);

/** Without columns that the run adds: what reads one has it from another table, or is unusable already. */
function removalsOf(
  clause: AlterClause,
  presentColumns: ReadonlyMap<string, string>,
): readonly Pick<Removal, 'column' | 'isRename'>[] {
  const removed = (name: string, isRename: boolean) => {
    const column = presentColumns.get(name);
    return column === undefined ? [] : [{ column, isRename }];
  };
  switch (clause.kind) {
    case 'dropColumn':
      return removed(clause.column, false);
    case 'renameColumn':
      return removed(clause.from, true);
    case 'renameTable':
      return [{ isRename: true }];
    default:
      return [];
  }
}

function reads(reader: Reader, { table, column }: Removal): boolean {
  return reader.kind === 'view' ? viewReads(reader.text, table, column) : textReads(reader, table, column);
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

/**
 * The text of a trigger, a routine or an event is as its author wrote it. One that names the table and the column is taken
 * for a reader.
 */
function textReads({ text, table: own }: Reader, table: string, column: string | undefined): boolean {
  // Triggers are dropped with their table, and follow its name.
  if (own === table) {
    return (
      column !== undefined &&
      new RegExp(`\\b(new|old)\\s*\\.\\s*\`?${escapeRegExp(column.toLowerCase())}\`?(?![\\w$])`).test(text)
    );
  }
  return lowerCaseContainsWord(text, table) && (column === undefined || lowerCaseContainsWord(text, column));
}

function invalidTextError({ table, column, isRename }: Removal, { kind, name }: Reader): SvcError {
  const what = column === undefined ? `the table "${table}"` : `"${table}.${column}"`;
  return new SvcError('collection_referenced', `The ${kind} "${name}" cannot be created again with its text.`, {
    why: `It reads ${what}, which an earlier step ${isRename ? 'renames' : 'drops'}.`,
    next: ['Edit its file, delete the migration file, which is not applied, and generate again.'],
    details: { [kind]: name },
  });
}

const USES: Readonly<Record<ReaderKind, string>> = {
  view: 'every query of it',
  trigger: 'every statement that it runs for',
  function: 'every call of it',
  procedure: 'every call of it',
  event: 'each of its runs',
};

function unusableError({ table, column, isRename }: Removal, { kind, name }: Reader): SvcError {
  const what = column === undefined ? `The table "${table}"` : `"${table}.${column}"`;
  return new SvcError(
    'collection_referenced',
    `${what} cannot be ${isRename ? 'renamed' : 'dropped'}: the ${kind} "${name}" reads it.`,
    {
      why: `The server would keep the ${kind} as it is, and ${USES[kind]} would fail.`,
      next: [
        'If it is a file: change or remove it, and generate again.',
        `Otherwise drop it before, in a raw statement of the same migration or, for a rollback, by hand; create it again after: DROP ${kind.toUpperCase()} ${quoteIdentifier(name)}`,
      ],
      details: { [kind]: name },
    },
  );
}
