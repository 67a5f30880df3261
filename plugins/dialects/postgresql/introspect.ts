import type { Unreadable } from '../../../core/dialect.ts';
import type { Action, Collection, Constraint, Field, Index, SchemaModel } from '../../../core/schema/model.ts';
import { enumCheckName, primaryKeyName, uniqueName } from '../../sql/names.ts';
import type { CatalogColumn, CatalogConstraint, CatalogIndex, CatalogTable } from './catalog.ts';
import { readDefault } from './default.ts';
import { type ReadType, readType } from './types.ts';

export interface Reading {
  readonly model: SchemaModel;
  readonly unreadable: readonly Unreadable[];
}

/** Tables of the catalog as a model in normal form, and what a model cannot say of them. */
export function readTables(tables: readonly CatalogTable[]): Reading {
  const unreadable: Unreadable[] = [];
  const model = new Map(tables.map((table) => [table.name, collectionOf(table, unreadable)]));
  return { model, unreadable };
}

function collectionOf(table: CatalogTable, unreadable: Unreadable[]): Collection {
  const note = (what: string, field?: string) =>
    unreadable.push({ collection: table.name, ...(field !== undefined && { field }), what });
  if (table.partitioned) note('is partitioned');
  const names = new Map(table.columns.map(({ number, name }) => [number, name]));
  const columnsOf = ({ columns }: { readonly columns: readonly number[] }) =>
    columns.map((number) => names.get(number) ?? '');

  const primary = new Set<string>();
  const unique = new Set<string>();
  const enums = new Map<string, readonly string[]>();
  const constraints = new Map<string, Constraint>();
  const foreign = new Set(table.columns.filter((column) => typeOf(column).foreign).map(({ name }) => name));
  const order = table.columns.map(({ name }) => name);
  for (const constraint of table.constraints) {
    const columns = columnsOf(constraint);
    const [only = ''] = columns.length === 1 ? columns : [];
    const values = constraint.type === 'c' ? enumValues(constraint.expression ?? '', only) : undefined;
    const column = table.columns.find(({ name }) => name === only);
    if (constraint.odd !== null)
      note(`has the constraint "${constraint.name}", which ${constraint.odd}; svc makes a plain one`);
    if (constraint.type === 'p' && constraint.name === primaryKeyName(table.name) && inOrder(columns, order)) {
      for (const name of columns) primary.add(name);
    } else if (constraint.type === 'u' && only !== '' && constraint.name === uniqueName(table.name, only)) {
      unique.add(only);
    } else if (values && column?.type === 'text' && constraint.name === enumCheckName(table.name, only)) {
      enums.set(only, values);
    } else if (constraint.type === 'c' && columns.some((name) => foreign.has(name))) {
      note(`has the constraint "${constraint.name}", which svc does not make: it is on a type that svc does not make`);
    } else {
      const read = constraintOf(constraint, columns);
      if (read) constraints.set(read.name, read);
      else note(`has the constraint "${constraint.name}", which svc does not make: it ${unknown(constraint)}`);
    }
  }
  const fields = table.columns.map((column): [string, Field] => [
    column.name,
    fieldOf(column, { primary, unique, enums }, (what) => note(what, column.name)),
  ]);
  const indexes = new Map<string, Index>();
  for (const index of table.indexes) {
    const read = indexOf(index, columnsOf(index));
    if (typeof read === 'string') note(`has the index "${index.name}", which svc does not make: it ${read}`);
    else indexes.set(read.name, read);
  }
  return {
    name: table.name,
    fields: new Map(fields),
    indexes,
    constraints,
    options: table.unlogged ? { sqlOptions: { unlogged: true } } : {},
  };
}

function inOrder(columns: readonly string[], order: readonly string[]): boolean {
  return columns.every((name, index) => index === 0 || order.indexOf(columns[index - 1] ?? '') < order.indexOf(name));
}

interface Flags {
  readonly primary: ReadonlySet<string>;
  readonly unique: ReadonlySet<string>;
  readonly enums: ReadonlyMap<string, readonly string[]>;
}

function fieldOf(column: CatalogColumn, { primary, unique, enums }: Flags, note: (what: string) => void): Field {
  const { name } = column;
  const { inexact, foreign, ...read } = typeOf(column);
  if (inexact) note(`has the type ${column.type}, which svc does not make; the nearest is ${read.type}`);
  if (column.dimensions > 1) note(`has ${column.dimensions} dimensions; svc makes one`);
  const values = enums.get(name);
  const type = values ? ({ type: 'enum', enumValues: values } as const) : read;
  const identity = column.identity !== '';
  if (column.identity === 'a') note('is GENERATED ALWAYS AS IDENTITY; svc makes BY DEFAULT');
  if (column.generated !== '') note('is computed from other columns');
  const spelled = column.generated === '' ? column.default : null;
  const value = spelled === null ? undefined : readDefault(spelled, type);
  const key = primary.has(name);
  return {
    name,
    ...type,
    ...(key && { primaryKey: true }),
    ...((identity || (spelled !== null && value === undefined)) && { autoGenerate: true }),
    ...((column.required || key) && { required: true }),
    ...(unique.has(name) && { unique: true }),
    ...(value !== undefined && { default: value }),
  };
}

/** A type of labels is nearly an enum of ours: those are text with a check. */
function typeOf({ type, labels }: CatalogColumn): ReadType {
  return labels ? { type: 'enum', enumValues: labels, inexact: true, foreign: true } : readType(type);
}

function unknown({ type }: CatalogConstraint): string {
  if (type === 'f') return 'points at another schema';
  return type === 'x' ? 'is an exclusion' : 'is a trigger';
}

const ACTIONS: Readonly<Record<string, Exclude<Action, 'NO ACTION'>>> = {
  r: 'RESTRICT',
  c: 'CASCADE',
  n: 'SET NULL',
  d: 'SET DEFAULT',
};

function constraintOf(constraint: CatalogConstraint, columns: readonly string[]): Constraint | undefined {
  const { name, type, table, target, expression } = constraint;
  if (type === 'p') return { name, type: 'primaryKey', columns };
  if (type === 'u') return { name, type: 'unique', columns };
  if (type === 'c')
    return { name, type: 'check', columns: [...columns].sort(), expression: withoutOuter(expression ?? '') };
  if (type !== 'f' || table === null || target === null) return undefined;
  const onDelete = ACTIONS[constraint.onDelete];
  const onUpdate = ACTIONS[constraint.onUpdate];
  const references = { table, columns: target, ...(onDelete && { onDelete }), ...(onUpdate && { onUpdate }) };
  return { name, type: 'foreignKey', columns, references };
}

function indexOf(index: CatalogIndex, columns: readonly string[]): Index | string {
  if (!index.valid) return 'is not valid: a build was interrupted';
  if (index.odd !== null) return index.odd;
  if (index.options.some((option) => option !== 0 && option !== 3)) return 'puts nulls where svc does not';
  return {
    name: index.name,
    columns: columns.map((name, at) => ({ name, ...(index.options[at] === 3 && { order: 'desc' as const }) })),
    ...(index.unique && { unique: true }),
  };
}

/** The labels of `(mood = ANY (ARRAY['a'::text, 'b'::text]))`. */
function enumValues(expression: string, column: string): readonly string[] | undefined {
  const list = /^\(\s*("(?:[^"]|"")*"|[^\s"]+) = ANY \(ARRAY\[(.*)\]\)\s*\)$/s.exec(expression);
  if (!list) return undefined;
  const [, name = '', body = ''] = list;
  if ((name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name) !== column) return undefined;
  const labels = [...body.matchAll(/'((?:[^']|'')*)'::text(?:, |$)/gsy)];
  if (labels.map(([whole]) => whole).join('') !== body) return undefined;
  return labels.map(([, label = '']) => label.replaceAll("''", "'"));
}

/** Without the parentheses that the catalog puts around a whole condition. */
function withoutOuter(expression: string): string {
  if (!expression.startsWith('(') || !expression.endsWith(')')) return expression;
  let depth = 0;
  for (const [token] of expression.matchAll(/'(?:[^']|'')*'|"(?:[^"]|"")*"|[()]|[^'"()]+/gs)) {
    if (token === '(') depth += 1;
    if (token === ')') depth -= 1;
  }
  if (depth !== 0) return expression;
  let at = 0;
  depth = 0;
  for (const [token] of expression.matchAll(/'(?:[^']|'')*'|"(?:[^"]|"")*"|[()]|[^'"()]+/gs)) {
    if (token === '(') depth += 1;
    if (token === ')') depth -= 1;
    at += token.length;
    if (depth === 0 && at < expression.length) return expression;
  }
  return expression.slice(1, -1);
}
