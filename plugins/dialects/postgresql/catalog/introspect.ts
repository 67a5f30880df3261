import type { UnsupportedObject } from '../../../../core/dialect.ts';
import { isExpression } from '../../../../core/schema/literal.ts';
import type {
  Collection,
  Constraint,
  Field,
  Index,
  ReferentialAction,
  SchemaModel,
} from '../../../../core/schema/model.ts';
import { leftOut } from '../../sql/catalog-values.ts';
import { enumCheckName, primaryKeyName, uniqueName } from '../../sql/names.ts';
import { canonicalTableOptions } from '../compile/native-options.ts';
import { type ReadType, readType } from '../compile/types.ts';
import { parseDefault } from './defaults.ts';
import type { CatalogColumn, CatalogConstraint, CatalogIndex, CatalogSequence, CatalogTable } from './read-catalog.ts';

interface IntrospectedTables {
  readonly model: SchemaModel;
  readonly unsupportedObjects: readonly UnsupportedObject[];
}

/** Tables of the catalog as a model in normal form, and the objects that the model cannot describe. */
export function toModel(tables: readonly CatalogTable[]): IntrospectedTables {
  const unsupportedObjects: UnsupportedObject[] = [];
  const model = new Map(tables.map((table) => [table.name, toCollection(table, unsupportedObjects)]));
  return { model, unsupportedObjects };
}

function toCollection(table: CatalogTable, unsupportedObjects: UnsupportedObject[]): Collection {
  const report = (what: string, field?: string) =>
    unsupportedObjects.push({ collection: table.name, ...(field !== undefined && { field }), what });
  const leaveOut = (kind: 'constraint' | 'index', name: string, why: string) =>
    unsupportedObjects.push(leftOut(table.name, kind, name, why));
  const names = new Map(table.columns.map(({ number, name }) => [number, name]));
  const columnsOf = ({ columns }: { readonly columns: readonly number[] }) =>
    columns.includes(0) ? [...names.values()] : columns.map((number) => names.get(number) ?? '');

  const primary = new Set<string>();
  const unique = new Set<string>();
  const enums = new Map<string, readonly string[]>();
  const constraints = new Map<string, Constraint>();
  const incompatible = new Set(table.columns.filter((column) => typeOf(column).incompatible).map(({ name }) => name));
  const order = table.columns.map(({ name }) => name);
  for (const constraint of table.constraints) {
    const columns = columnsOf(constraint);
    const [only = ''] = columns.length === 1 ? columns : [];
    const values = constraint.type === 'c' ? enumValues(constraint.expression ?? '', only) : undefined;
    const column = table.columns.find(({ name }) => name === only);
    if (constraint.unsupported !== null)
      report(`has the constraint "${constraint.name}", which ${constraint.unsupported}; svc creates a plain one`);
    const isPlain = constraint.options === '';
    if (
      isPlain &&
      constraint.type === 'p' &&
      constraint.name === primaryKeyName(table.name) &&
      isInColumnOrder(columns, order)
    ) {
      for (const name of columns) primary.add(name);
    } else if (isPlain && constraint.type === 'u' && only !== '' && constraint.name === uniqueName(table.name, only)) {
      unique.add(only);
    } else if (isPlain && values && column?.type === 'text' && constraint.name === enumCheckName(table.name, only)) {
      enums.set(only, values);
    } else if (constraint.uses !== null) {
      leaveOut('constraint', constraint.name, `uses ${constraint.uses}, ${NOT_CREATED}`);
    } else if (constraint.type === 'c' && columns.some((name) => incompatible.has(name))) {
      leaveOut('constraint', constraint.name, 'is on a type that svc cannot create');
    } else {
      const read = toConstraint(constraint, columns);
      if (read) constraints.set(read.name, read);
      else leaveOut('constraint', constraint.name, 'references another schema');
    }
  }
  const fields = table.columns.map((column): [string, Field] => [
    column.name,
    toField(column, { primary, unique, enums }, (what) => report(what, column.name)),
  ]);
  const indexes = new Map<string, Index>();
  for (const index of table.indexes) {
    const read = toIndex(index, columnsOf(index));
    if (typeof read === 'string') leaveOut('index', index.name, read);
    else indexes.set(read.name, read);
  }
  return {
    name: table.name,
    fields: new Map(fields),
    indexes,
    constraints,
    options: optionsOf(table),
  };
}

function optionsOf({ unlogged, comment, parameters, partition }: CatalogTable): Collection['options'] {
  const native = [
    ...(partition === null ? [] : [`PARTITION BY ${partition}`]),
    ...(parameters.length === 0 ? [] : [canonicalTableOptions(`WITH (${parameters.join(', ')})`)]),
  ];
  if (!unlogged && comment === null && native.length === 0) return {};
  return {
    sqlOptions: {
      ...(unlogged && { unlogged: true }),
      ...(comment !== null && { comment }),
      ...(native.length > 0 && { native: native.join(' ') }),
    },
  };
}

function isInColumnOrder(columns: readonly string[], order: readonly string[]): boolean {
  return columns.every((name, index) => index === 0 || order.indexOf(columns[index - 1] ?? '') < order.indexOf(name));
}

/** Completes "which" of something in another schema, of a view, or of what svc cannot create. */
const NOT_CREATED = 'which migrations do not create before it';

/** Whether the column takes its values from a sequence of another schema: an identity can do that. */
const isReplacedByIdentity = ({ uses, default: value, required, type }: CatalogColumn): boolean =>
  uses !== null &&
  required &&
  /^(?:smallint|integer|bigint)$/.test(type) &&
  /^nextval\('.*'::regclass\)$/.test(value ?? '');

interface FieldFlags {
  readonly primary: ReadonlySet<string>;
  readonly unique: ReadonlySet<string>;
  readonly enums: ReadonlyMap<string, readonly string[]>;
}

function toField(column: CatalogColumn, { primary, unique, enums }: FieldFlags, report: (what: string) => void): Field {
  const { name } = column;
  const { inexact, incompatible, ...nearest } = typeOf(column);
  if (inexact) report(`has the type ${column.type}, which svc cannot create; the nearest is ${nearest.type}`);
  const values = enums.get(name);
  const type = values ? ({ type: 'enum', enumValues: values } as const) : nearest;
  const identity = column.identity !== '';
  const isComputed = column.generated !== '';
  const isReplaced = !isComputed && isReplacedByIdentity(column);
  const expression = isComputed ? null : column.default;
  const key = primary.has(name);
  const required = column.required || key;
  const read = expression === null || isReplaced ? undefined : parseDefault(expression, type);
  // A literal of a type of another schema is one of the nearest type too.
  const isLeftOut = column.uses !== null && (isComputed || (read !== undefined && isExpression(read)));
  if (isLeftOut)
    report(`${isComputed ? 'is computed with' : 'has a default that uses'} ${column.uses}, ${NOT_CREATED}`);
  const value = isLeftOut ? undefined : read;
  return {
    name,
    ...type,
    ...(key && { primaryKey: true }),
    ...((identity || (expression !== null && read === undefined)) && { autoGenerate: true }),
    ...(required && { required: true }),
    ...(unique.has(name) && { unique: true }),
    ...(column.comment !== null && { comment: column.comment }),
    ...(value !== undefined && { default: value }),
  };
}

/** A native enum type of another schema is read as an enum field, which svc creates as text with a check. */
function typeOf(column: CatalogColumn): ReadType {
  const { type, known, dimensions, labels, collation } = column;
  if (labels && !known) return { type: 'enum', enumValues: labels, inexact: true, incompatible: true };
  const read = readType(type);
  if (!known) return read;
  if (isSerial(column)) return { ...read, native: type.replace(/^integer$/, 'int').replace('int', 'serial') };
  const source = sourceOf(column);
  if (!read.inexact && dimensions < 2 && collation === null && source === '') return read;
  const { inexact, incompatible, ...nearest } = read;
  const native = [
    type + '[]'.repeat(Math.max(0, dimensions - 1)),
    ...(collation === null ? [] : [`COLLATE ${collation}`]),
    ...(source === '' ? [] : [source]),
  ];
  return { ...nearest, native: native.join(' ') };
}

/** An identity with options, or an expression. Empty for any other column, and for an identity as svc creates it. */
function sourceOf({ type, identity, generated, default: expression, uses, sequence }: CatalogColumn): string {
  if (generated !== '' && uses === null)
    return `GENERATED ALWAYS AS (${withoutOuterParentheses(expression ?? '')}) ${generated === 's' ? 'STORED' : 'VIRTUAL'}`;
  if (identity === '' || sequence === null) return '';
  const options = sequenceOptions(type, sequence);
  if (identity === 'd' && options === '') return '';
  return `GENERATED ${identity === 'a' ? 'ALWAYS' : 'BY DEFAULT'} AS IDENTITY${options && ` (${options})`}`;
}

const MAX: Readonly<Record<string, string>> = {
  smallint: '32767',
  integer: '2147483647',
  bigint: '9223372036854775807',
};

/** The options of a sequence that are not the default of its type. */
function sequenceOptions(type: string, { start, increment, min, max, cache, cycle }: CatalogSequence): string {
  return [
    ...(start === '1' ? [] : [`START WITH ${start}`]),
    ...(increment === '1' ? [] : [`INCREMENT BY ${increment}`]),
    ...(min === '1' ? [] : [`MINVALUE ${min}`]),
    ...(max === MAX[type] ? [] : [`MAXVALUE ${max}`]),
    ...(cache === '1' ? [] : [`CACHE ${cache}`]),
    ...(cycle ? ['CYCLE'] : []),
  ].join(' ');
}

const isSerial = ({ sequence }: CatalogColumn): boolean => sequence?.serial === true;

const ACTIONS: Readonly<Record<string, Exclude<ReferentialAction, 'NO ACTION'>>> = {
  r: 'RESTRICT',
  c: 'CASCADE',
  n: 'SET NULL',
  d: 'SET DEFAULT',
};

function toConstraint(constraint: CatalogConstraint, columns: readonly string[]): Constraint | undefined {
  const { name, type, table, target, expression } = constraint;
  const native = constraint.options === '' ? {} : { native: constraint.options };
  if (type === 'p') return { name, type: 'primaryKey', columns, ...native };
  if (type === 'u') return { name, type: 'unique', columns, ...native };
  if (type === 'c') {
    const condition = withoutOuterParentheses(expression ?? '');
    return { name, type: 'check', columns: [...columns].sort(), expression: condition, ...native };
  }
  if (type !== 'f' || table === null || target === null) return undefined;
  const onDelete = ACTIONS[constraint.onDelete];
  const onUpdate = ACTIONS[constraint.onUpdate];
  const references = { table, columns: target, ...(onDelete && { onDelete }), ...(onUpdate && { onUpdate }) };
  return { name, type: 'foreignKey', columns, references, ...native };
}

/** What follows the name of the table in CREATE INDEX. */
const DEFINITION = (() => {
  const name = String.raw`(?:"(?:[^"]|"")+"|[^\s".]+)`;
  return new RegExp(String.raw`^CREATE (?:UNIQUE )?INDEX ${name} ON (?:ONLY )?(?:${name}\.)?${name} (.*)$`, 's');
})();

function toIndex(index: CatalogIndex, columns: readonly string[]): Index | string {
  if (!index.valid) return 'is not valid: its build was interrupted';
  if (index.uses !== null) return `uses ${index.uses}, ${NOT_CREATED}`;
  if (!index.plain) {
    return {
      name: index.name,
      columns: columns.map((name) => ({ name })),
      ...(index.unique && { unique: true }),
      native: DEFINITION.exec(index.definition)?.[1] ?? '',
    };
  }
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

/** Removes the parentheses that the catalog puts around a condition. */
function withoutOuterParentheses(expression: string): string {
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
