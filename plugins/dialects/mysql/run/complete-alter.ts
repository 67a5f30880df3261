import { SvcError } from '../../../../core/errors.ts';
import type { ExecSql } from '../../sql/session.ts';
import {
  type CatalogColumn,
  type CatalogTable,
  isAutomaticIndex,
  PRIMARY_KEY,
  serves,
} from '../catalog/catalog-table.ts';
import { defaultSql } from '../catalog/defaults.ts';
import { isArrayCheck } from '../catalog/introspect.ts';
import { readTable } from '../catalog/read-catalog.ts';
import { currentName, renamedName } from '../catalog/renamed-constraints.ts';
import { withoutOuterParentheses } from '../catalog/show-create-table.ts';
import { withExactColumn } from '../catalog/supplementary-characters.ts';
import { quoteIdentifier, quoteLiteral } from '../compile/literal.ts';
import type { AlterClause, AlterTable, ModifyColumn, PlainClause } from '../compile/step.ts';
import { readType, UUID_COLLATION } from '../compile/types.ts';
import type { Traits } from '../variant.ts';

/** Whether rendering the clauses needs the catalog. */
export function needsCatalog(traits: Traits, { table, clauses }: AlterTable): boolean {
  return clauses.some((clause) => {
    switch (clause.kind) {
      case 'modifyColumn':
      case 'dropArrayCheck':
      case 'addArrayCheck':
      case 'dropColumn':
      case 'dropIndex':
      case 'dropForeignKey':
      case 'dropPrimaryKey':
        return true;
      case 'dropCheck':
        return renamedName(traits, 'check', clause.name, table) !== undefined;
      default:
        return false;
    }
  });
}

/** The clauses completed from the catalog of the table `like`, with the indexes that foreign keys need. */
export async function completeClauses(
  exec: ExecSql,
  traits: Traits,
  alter: AlterTable,
  like = alter.table,
): Promise<PlainClause[]> {
  // Only the kinds that `needsCatalog` lists are not plain.
  if (!needsCatalog(traits, alter)) return alter.clauses as readonly PlainClause[] as PlainClause[];
  const { clauses } = alter;
  const modify = clauses.find((clause) => clause.kind === 'modifyColumn');
  const found = await readTable(exec, traits, like);
  const table = { ...(modify ? await withExactColumn(exec, found, modify) : found), name: alter.table };
  const droppedIndexes = clauses.flatMap((clause) => {
    if (clause.kind === 'dropPrimaryKey') return [PRIMARY_KEY];
    return clause.kind === 'dropIndex' ? [clause.name] : [];
  });
  for (const clause of clauses)
    if (clause.kind === 'dropColumn') assertIndexesPreserved(table, clause.column, droppedIndexes);
  const complete = clauses.flatMap((clause) => completeClause(traits, table, clause));
  const droppedKeys = complete.flatMap((clause) => (clause.kind === 'dropForeignKey' ? [clause.name] : []));
  return [
    ...complete,
    ...replacementIndexes(table, droppedIndexes),
    ...droppedKeys.flatMap((name) => releaseAutomaticIndex(table, name)),
  ];
}

function completeClause(traits: Traits, table: CatalogTable, clause: AlterClause): PlainClause[] {
  switch (clause.kind) {
    case 'modifyColumn':
      return [completeColumn(traits, table, clause)];
    case 'dropArrayCheck':
      return dropArrayChecks(traits, table, clause.column);
    case 'addArrayCheck':
      return [{ kind: 'addConstraint', type: 'check', sql: clause.sql }];
    case 'dropForeignKey':
      return [{ ...clause, name: currentName(traits, 'foreignKey', clause.name, table) }];
    case 'dropCheck':
      return [{ ...clause, name: currentName(traits, 'check', clause.name, table) }];
    default:
      return [clause];
  }
}

/** Clauses of statements that must follow: only a separate statement drops a default that the server added. */
export function followUpClauses(clauses: readonly PlainClause[]): PlainClause[] {
  return clauses.flatMap((clause): PlainClause[] =>
    clause.kind === 'redefineColumn' && clause.addsZeroDefault ? [{ kind: 'dropDefault', column: clause.column }] : [],
  );
}

/** The server would remove the column from the index: unique over two columns would become unique over one. */
function assertIndexesPreserved(
  { name: table, indexes }: CatalogTable,
  column: string,
  dropped: readonly string[],
): void {
  const index = indexes.find(
    ({ name, columns }) => columns.length > 1 && !dropped.includes(name) && columns.some((one) => one.name === column),
  );
  if (!index) return;
  throw new SvcError('field_in_use', `The field "${table}.${column}" cannot be dropped: an index uses it.`, {
    why: `The index "${index.name}", which svc did not create, contains it together with other fields.`,
    next: [
      `Drop the index first: raw, ALTER TABLE ${quoteIdentifier(table)} DROP INDEX ${quoteIdentifier(index.name)}`,
    ],
  });
}

export function dropArrayChecks(
  traits: Traits,
  { checks }: CatalogTable,
  column: string,
): { readonly kind: 'dropCheck'; readonly name: string }[] {
  return checks
    .filter(({ ofColumn, expression }) => !ofColumn && isArrayCheck(traits, expression, column))
    .map(({ name }) => ({ kind: 'dropCheck', name }));
}

/** An index for each foreign key that would have none. */
function replacementIndexes({ indexes, foreignKeys }: CatalogTable, dropped: readonly string[]): PlainClause[] {
  if (dropped.length === 0) return [];
  const remaining = indexes.filter(({ name }) => !dropped.includes(name));
  return foreignKeys
    .filter(({ columns }) => !remaining.some((index) => serves(index, columns)))
    .map(({ name, columns }) => ({ kind: 'addIndex', name, columns: columns.map((column) => ({ name: column })) }));
}

/** Drops the index that the server created for a foreign key, or renames it for another key that needs it. */
function releaseAutomaticIndex({ indexes, foreignKeys }: CatalogTable, dropped: string): PlainClause[] {
  const key = foreignKeys.find(({ name }) => name === dropped);
  const index = indexes.find((one) => key && isAutomaticIndex(one, [key]));
  if (!index) return [];
  const remaining = indexes.filter((one) => one !== index);
  const successor = foreignKeys.find(
    ({ name, columns }) =>
      name !== dropped && serves(index, columns) && !remaining.some((other) => serves(other, columns)),
  );
  return [
    successor ? { kind: 'renameIndex', from: index.name, to: successor.name } : { kind: 'dropIndex', name: index.name },
  ];
}

/** A column's whole definition: the changes, and everything else from the catalog. */
function completeColumn(traits: Traits, table: CatalogTable, modify: ModifyColumn): PlainClause {
  const column = table.columns.find(({ name }) => name === modify.column);
  if (!column) throw new SvcError('field_unknown', `The table "${table.name}" has no field "${modify.column}".`);
  const type = modify.type === undefined ? column.type : resizeType(column, modify.type);
  const { comment = column.comment } = modify;
  const autoIncrement = modify.autoIncrement ?? /\bauto_increment\b/i.test(column.extra);
  const isGenerated = column.generated !== '';
  const nullability = nullabilitySql(traits, column, modify);
  const defaultValue = isGenerated || autoIncrement ? '' : defaultClause(column, modify, type);
  const onUpdate = onUpdateClause(column, type);
  const definition = [
    quoteIdentifier(column.name),
    type,
    modify.type === undefined ? column.spatial : '',
    collationSql(column, table, modify),
    isGenerated
      ? `GENERATED ALWAYS AS (${column.generated}) ${/\bstored\b/i.test(column.extra) ? 'STORED' : 'VIRTUAL'}`
      : '',
    nullability,
    autoIncrement ? 'AUTO_INCREMENT' : '',
    defaultValue,
    onUpdate,
    /\binvisible\b/i.test(column.extra) ? 'INVISIBLE' : '',
    comment === '' ? '' : `COMMENT ${quoteLiteral(comment)}`,
    columnCheckClause(traits, table, modify),
  ];
  const addsZeroDefault =
    traits.addsZeroDefault && nullability === 'NOT NULL' && !autoIncrement && defaultValue === '' && onUpdate !== '';
  return {
    kind: 'redefineColumn',
    column: column.name,
    definition: definition.filter((part) => part !== '').join(' '),
    ...(addsZeroDefault && { addsZeroDefault }),
  };
}

/** A type whose size alone changes stays UNSIGNED or ZEROFILL, CHAR or BINARY. */
function resizeType({ type: before, charset }: CatalogColumn, type: string): string {
  const [, kind = '', size = ''] = SIZED.exec(type) ?? [];
  const [, kindBefore = '', sizeBefore = ''] = SIZED.exec(before) ?? [];
  const isResize = kind !== '' && kind === kindBefore && readType(before, charset).type === readType(type, null).type;
  // The longest CHAR or BINARY.
  if (!isResize || (!before.startsWith('var') && kind !== 'decimal' && Number(size.slice(1, -1)) > 255)) return type;
  return before.replace(sizeBefore, size);
}

const SIZED = /^(?:var)?(char|binary|decimal)(\([\d,]+\))/;

/** A column that stays a text type keeps its collation; without this clause it would get the table's. */
function collationSql(
  { type: kind, charset, collation }: CatalogColumn,
  table: CatalogTable,
  { type }: ModifyColumn,
): string {
  if (charset === null || collation === null || collation === table.collation) return '';
  // The character set of a UUID is part of its type.
  if (type !== undefined && kind === 'char(36)' && collation === UUID_COLLATION) return '';
  if (type !== undefined && (!/^(var)?char|text$|^enum/.test(type) || /character set/i.test(type))) return '';
  return `CHARACTER SET ${charset} COLLATE ${collation}`;
}

/** MariaDB rejects NULL on a generated column. */
function nullabilitySql(
  { hasColumnChecks }: Traits,
  column: CatalogColumn,
  { required = column.required }: ModifyColumn,
): string {
  if (column.generated !== '' && hasColumnChecks) return '';
  return required ? 'NOT NULL' : 'NULL';
}

function defaultClause(column: CatalogColumn, modify: ModifyColumn, type: string): string {
  if (modify.default === null) return '';
  if (modify.default === 'currentTimestamp') return `DEFAULT ${currentTimestamp(type)}`;
  if (modify.default !== undefined) return `DEFAULT ${modify.default.sql}`;
  const found = column.default;
  if (!found) return '';
  // '0123' is a string that only looks like a number.
  const sql = 'literal' in found && column.charset !== null ? quoteLiteral(found.literal) : defaultSql(found);
  return `DEFAULT ${'literal' in found && /(text|blob|json)$/.test(modify.type ?? '') ? `(${sql})` : sql}`;
}

function onUpdateClause({ extra }: CatalogColumn, type: string): string {
  const [, expression] = /on update (\w+(?:\(\d?\))?)/i.exec(extra) ?? [];
  if (expression === undefined || !/^(datetime|timestamp)/.test(type)) return '';
  return `ON UPDATE ${currentTimestamp(type)}`;
}

/** With another precision than the column's, the server rejects or truncates it. */
const currentTimestamp = (type: string): string => `CURRENT_TIMESTAMP${/\(\d\)/.exec(type)?.[0] ?? ''}`;

/** The check in a column's definition. A new type replaces the check that the old type needed. */
function columnCheckClause(traits: Traits, { checks }: CatalogTable, { column, type, check }: ModifyColumn): string {
  if (!traits.hasColumnChecks) return '';
  const [own] = checks.filter((one) => one.ofColumn && one.name === column);
  if (check !== undefined && check !== '') return check;
  if (!own) return '';
  const typeOnly =
    isArrayCheck(traits, own.expression, column) ||
    withoutOuterParentheses(own.expression) === `json_valid(${quoteIdentifier(column)})`;
  return type !== undefined && typeOnly ? '' : `CHECK (${own.expression})`;
}
