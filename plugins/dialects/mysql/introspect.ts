import type { Unreadable } from '../../../core/dialect.ts';
import type { Action, Collection, Constraint, Field, Index, SchemaModel } from '../../../core/schema/model.ts';
import { uniqueName } from '../../sql/names.ts';
import { isAutomaticIndex } from './automatic-index.ts';
import type { CatalogColumn, CatalogForeignKey, CatalogIndex, CatalogTable } from './catalog.ts';
import { readDefault } from './default.ts';
import { withoutOuter } from './parentheses.ts';
import { quote } from './quote.ts';
import type { Traits } from './traits.ts';
import { type ReadType, readType } from './types.ts';

export interface Reading {
  readonly model: SchemaModel;
  readonly unreadable: readonly Unreadable[];
}

/** What the primary key of every table is called. */
export const PRIMARY = 'PRIMARY';

/** Tables of the catalog as a model in normal form, and what a model cannot say of them. */
export function readTables(traits: Traits, tables: readonly CatalogTable[]): Reading {
  const unreadable: Unreadable[] = [];
  const model = new Map(
    tables.map((table) => [table.name, collectionOf(traits, withoutServersKey(table), unreadable)]),
  );
  return { model, unreadable };
}

/** Without the key that the server gave a table that has none (sql_generate_invisible_primary_key). */
function withoutServersKey(table: CatalogTable): CatalogTable {
  const primary = table.indexes.find(({ name }) => name === PRIMARY)?.columns ?? [];
  const own = table.columns.find(
    ({ name, extra }) => name === 'my_row_id' && /\bauto_increment\b/i.test(extra) && /\binvisible\b/i.test(extra),
  );
  if (!own || primary.length !== 1 || primary[0]?.name !== own.name) return table;
  return {
    ...table,
    columns: table.columns.filter((column) => column !== own),
    indexes: table.indexes.filter(({ name }) => name !== PRIMARY),
  };
}

function collectionOf(traits: Traits, table: CatalogTable, unreadable: Unreadable[]): Collection {
  const note = (what: string, field?: string) =>
    unreadable.push({ collection: table.name, ...(field !== undefined && { field }), what });
  if (table.partitioned) note('is partitioned');
  if (table.engine !== 'InnoDB') note(`has the engine ${table.engine}; svc makes InnoDB`);

  const order = table.columns.map(({ name }) => name);
  const primary = new Set<string>();
  const unique = new Set<string>();
  const constraints = new Map<string, Constraint>();
  const indexes = new Map<string, Index>();
  for (const index of table.indexes) {
    const columns = index.columns.map(({ name }) => name);
    const [only = ''] = columns;
    if (index.odd !== null) note(`has the index "${index.name}", which svc does not make: it ${index.odd}`);
    else if (index.name === PRIMARY && inOrder(columns, order)) for (const name of columns) primary.add(name);
    else if (index.name === PRIMARY) constraints.set(PRIMARY, { name: PRIMARY, type: 'primaryKey', columns });
    else if (isUniqueFlag(table.name, index)) unique.add(only);
    else if (!isAutomaticIndex(index, table.foreignKeys)) indexes.set(index.name, modelIndex(index));
  }
  for (const key of table.foreignKeys) {
    const read = foreignKey(key);
    if (read) constraints.set(read.name, read);
    else note(`has the constraint "${key.name}", which svc does not make: it points at another database`);
  }
  const arrays = new Set<string>();
  const texts = new Set<string>();
  for (const check of table.checks) {
    const array = order.find((name) => isArrayCheck(traits, check.expression, name));
    const json = order.find((name) => withoutOuter(check.expression) === `json_valid(${quote(name)})`);
    if (check.odd !== null) note(`has the constraint "${check.name}", which ${check.odd}; svc makes a plain one`);
    if (array !== undefined) arrays.add(array);
    else if (json !== undefined && check.own) texts.add(json);
    else if (check.own) note('has a check in its definition; svc makes one of the table', check.name);
    else {
      const columns = columnsIn(check.expression, order);
      constraints.set(check.name, {
        name: check.name,
        type: 'check',
        columns,
        expression: withoutOuter(check.expression),
      });
    }
  }
  const fields = table.columns.map((column): [string, Field] => [
    column.name,
    fieldOf(column, table, { primary, unique, arrays, texts }, (what) => note(what, column.name)),
  ]);
  return { name: table.name, fields: new Map(fields), indexes, constraints, options: {} };
}

/** Columns that an expression in the server's own words names. */
export function columnsIn(expression: string, columns: readonly string[]): string[] {
  return columns.filter((name) => expression.includes(quote(name))).sort();
}

function inOrder(columns: readonly string[], order: readonly string[]): boolean {
  return columns.every((name, index) => index === 0 || order.indexOf(columns[index - 1] ?? '') < order.indexOf(name));
}

/** An index that looks as if the flag of a field had made it. */
function isUniqueFlag(table: string, { name, unique, columns }: CatalogIndex): boolean {
  const [only, ...more] = columns;
  return unique && more.length === 0 && !only?.descending && name === uniqueName(table, only?.name ?? '');
}

export function isArrayCheck(traits: Traits, expression: string, column: string): boolean {
  return withoutOuter(expression).replace(/_\w+'/g, "'") === traits.arrayCheck(quote(column));
}

interface Flags {
  readonly primary: ReadonlySet<string>;
  readonly unique: ReadonlySet<string>;
  readonly arrays: ReadonlySet<string>;
  readonly texts: ReadonlySet<string>;
}

function fieldOf(column: CatalogColumn, table: CatalogTable, flags: Flags, note: (what: string) => void): Field {
  const { name, extra } = column;
  const { inexact, ...read } = typeOf(column, flags);
  if (inexact) note(`has the type ${column.type}, which svc does not make; the nearest is ${read.type}`);
  if (column.generated !== '') note('is computed from other columns');
  if (/on update/i.test(extra)) note('is set to the moment of every update, which svc does not make');
  if (/\binvisible\b/i.test(extra)) note('is invisible, which svc does not make');
  if (column.comment !== '') note('has a comment, which svc does not write');
  const own = read.type === 'string' || read.type === 'text' || read.type === 'enum';
  if (own && column.collation !== null && column.collation !== table.collation)
    note('has a collation of its own, which svc does not set');
  const found = column.default;
  const value = found && readDefault(found, read);
  const numbered = /\bauto_increment\b/i.test(extra);
  return {
    name,
    ...read,
    ...(read.type === 'array' && { items: 'string' as const }),
    ...(flags.primary.has(name) && { primaryKey: true }),
    ...((numbered || (found !== undefined && value === undefined)) && { autoGenerate: true }),
    ...(column.required && { required: true }),
    ...(flags.unique.has(name) && { unique: true }),
    ...(value !== undefined && { default: value }),
  };
}

function typeOf({ name, type, charset }: CatalogColumn, { arrays, texts }: Flags): ReadType {
  const read = readType(type, charset);
  if (read.type !== 'json' && read.type !== 'text') return read;
  if (arrays.has(name)) return { type: 'array' };
  return texts.has(name) ? { type: 'json' } : read;
}

const ACTIONS: Readonly<Record<string, Exclude<Action, 'NO ACTION' | 'RESTRICT'>>> = {
  CASCADE: 'CASCADE',
  'SET NULL': 'SET NULL',
  'SET DEFAULT': 'SET DEFAULT',
};

/** RESTRICT is NO ACTION to the engine, and what the catalog calls it differs. */
function foreignKey({ name, columns, table, target, ...rules }: CatalogForeignKey): Constraint | undefined {
  if (table === null) return undefined;
  const onDelete = ACTIONS[rules.onDelete];
  const onUpdate = ACTIONS[rules.onUpdate];
  const references = { table, columns: target, ...(onDelete && { onDelete }), ...(onUpdate && { onUpdate }) };
  return { name, type: 'foreignKey', columns, references };
}

function modelIndex({ name, unique, columns }: CatalogIndex): Index {
  return {
    name,
    columns: columns.map((column) => ({ name: column.name, ...(column.descending && { order: 'desc' as const }) })),
    ...(unique && { unique: true }),
  };
}
