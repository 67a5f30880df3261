import { defineConstraint } from '../../../../core/schema/define.ts';
import { applyFieldChanges } from '../../../../core/schema/define-field.ts';
import { primaryKeyFields } from '../../../../core/schema/keys.ts';
import type { Collection, Constraint, Field, FieldType, SchemaModel } from '../../../../core/schema/model.ts';
import type { Operation } from '../../../../core/schema/operation.ts';
import { columnDefinition } from '../../sql/column.ts';
import { primaryKeyAfter } from '../../sql/compile.ts';
import type { Grammar } from '../../sql/grammar.ts';
import type { Traits } from '../variant.ts';
import { quoteIdentifier } from './literal.ts';
import { columnType, isAutoIncrement, isShorter, STRING_LENGTH } from './types.ts';

/** A condition for rows that make the server reject a change. */
export interface Violation {
  /** True for a violating row. */
  readonly condition: string;
  readonly why: string;
  readonly next?: string;
  /** The columns that the condition reads, by table. */
  readonly reads: Readonly<Record<string, readonly string[]>>;
  readonly foreignKey?: ForeignKeyColumns;
}

/** The referencing columns with their definitions according to the model, and the referenced columns. */
export interface ForeignKeyColumns {
  readonly columns: readonly string[];
  readonly types: readonly string[];
  /** The part of each definition after the type. */
  readonly attributes: readonly string[];
  readonly parent: string;
  readonly target: readonly string[];
}

/** Conditions for rows that make an operation fail. In a run of several steps, the step's own error would come too late. */
export function findViolations(
  grammar: Grammar,
  traits: Traits,
  operation: Operation,
  before: SchemaModel,
): Violation[] {
  if (operation.type === 'createCollection' || operation.type === 'raw') return [];
  const collection = before.get(operation.collection);
  if (!collection) return [];
  const table = collection.name;
  switch (operation.type) {
    case 'createIndex':
      return operation.unique
        ? duplicates(
            table,
            operation.columns.map(({ name }) => name),
          )
        : [];
    case 'addConstraint':
      return constraintViolations(
        grammar,
        collection,
        defineConstraint(operation.constraint, table, collection.fields.keys()),
      );
    case 'modifyField': {
      const from = collection.fields.get(operation.field);
      if (!from) return [];
      const to = applyFieldChanges(from, operation.changes, table);
      const becomesPrimaryKey = to.primaryKey && !from.primaryKey;
      return [
        ...(to.required && !from.required && !isAutoIncrement(to) ? nullValues(table, to.name) : []),
        ...unconvertibleValues(traits, table, from, to),
        // Different values may be equal after a conversion, and equal ones different.
        ...(to.unique && !from.unique && to.type === from.type ? duplicates(table, [to.name]) : []),
        ...(becomesPrimaryKey && primaryKeyFields(collection).length === 0
          ? duplicates(table, primaryKeyAfter(collection, to))
          : []),
      ];
    }
    case 'addField': {
      // The column gets the values of this one after it is added.
      const other = collection.fields.get(operation.mirrors ?? '');
      if (!other) return [];
      const { name, required, unique } = operation.field;
      return [
        ...(required && !other.required ? nullValues(table, other.name, name) : []),
        ...(unique && !other.unique ? duplicates(table, [other.name]) : []),
      ];
    }
    case 'dropCollection':
    case 'renameCollection':
    case 'dropField':
    case 'renameField':
    case 'dropIndex':
    case 'dropConstraint':
      return [];
  }
}

function constraintViolations(
  grammar: Grammar,
  { name: table, fields }: Collection,
  constraint: Constraint,
): Violation[] {
  const { name, type, columns } = constraint;
  switch (type) {
    case 'unique':
      return duplicates(table, columns);
    case 'primaryKey':
      return [
        ...columns.flatMap((column) => nullValues(table, column)),
        ...(constraint.native === undefined ? duplicates(table, columns) : []),
      ];
    case 'check':
      if (constraint.native !== undefined) return []; // NOT ENFORCED
      return [
        {
          condition: `NOT (${constraint.expression})`,
          why: `The check "${name}" is violated.`,
          reads: { [table]: columns },
        },
      ];
    case 'foreignKey': {
      const { table: parent, columns: target } = constraint.references;
      const ownColumns = columns.map((column) => `${quoteIdentifier(table)}.${quoteIdentifier(column)}`);
      const matches = target.map((column, index) => `svc_parent.${quoteIdentifier(column)} = ${ownColumns[index]}`);
      const exists = `EXISTS (SELECT 1 FROM ${quoteIdentifier(parent)} AS svc_parent WHERE ${matches.join(' AND ')})`;
      return [
        {
          condition: `${ownColumns.map((column) => `${column} IS NOT NULL`).join(' AND ')} AND NOT ${exists}`,
          why: `Values of ${columns.join(', ')} reference no row of "${parent}".`,
          reads: { [parent]: target, [table]: parent === table ? [...columns, ...target] : columns },
          foreignKey: {
            columns,
            types: columns.map((column) => columnType(fields.get(column) ?? { type: 'text' }, table)),
            attributes: columns.map((column) => attributesOf(grammar, fields.get(column), table)),
            parent,
            target,
          },
        },
      ];
    }
  }
}

function attributesOf(grammar: Grammar, field: Field | undefined, table: string): string {
  const withoutType = { ...grammar, columnType: () => '', columnCheck: () => '' };
  return field ? columnDefinition(withoutType, field, table).slice(quoteIdentifier(field.name).length) : '';
}

const nullValues = (table: string, column: string, required = column): Violation[] => [
  {
    condition: `${quoteIdentifier(column)} IS NULL`,
    why: `${required} would be required.`,
    reads: { [table]: [column] },
  },
];

function unconvertibleValues(traits: Traits, table: string, from: Field, to: Field): Violation[] {
  const { name, type, length = STRING_LENGTH } = to;
  const isSame = from.type === type && columnType(from, table) === columnType(to, table);
  const condition = isSame ? undefined : unconvertibleSql(traits, from, to);
  if (condition === undefined) return [];
  const problem = type === 'string' ? `are longer than ${length} characters` : `do not fit ${columnType(to, table)}`;
  return [{ condition, why: `Values of ${name} ${problem}.`, reads: { [table]: [name] } }];
}

function duplicates(table: string, columns: readonly string[]): Violation[] {
  const list = columns.map(quoteIdentifier).join(', ');
  return [
    {
      condition: `(${list}) IN (SELECT ${list} FROM ${quoteIdentifier(table)} GROUP BY ${list} HAVING COUNT(*) > 1)`,
      why: `Values of ${columns.join(', ')} occur more than once.`,
      reads: { [table]: columns },
    },
  ];
}

type Types = ReadonlySet<FieldType>;
/** Each includes all values of the previous ones. */
const INTEGERS = ['boolean', 'smallint', 'integer', 'bigint'] as const;
const RANGES: Readonly<Partial<Record<FieldType, string>>> = {
  boolean: '-128 AND 127',
  smallint: '-32768 AND 32767',
  integer: '-2147483648 AND 2147483647',
  bigint: '-9223372036854775808 AND 9223372036854775807',
};
const NUMBER_TYPES: Types = new Set([...INTEGERS, 'float', 'double', 'decimal']);
const TEXT_TYPES: Types = new Set(['string', 'text', 'enum', 'uuid']);
const BYTE_TYPES: Types = new Set(['binary', 'blob']);
const JSON_TYPES: Types = new Set(['json', 'array']);
const DATE_TYPES: Types = new Set(['date', 'datetime']);
/** Types that a string is cast to. MySQL accepts any string as a time. */
const CAST_TYPES: Readonly<Partial<Record<FieldType, string>>> = {
  date: 'DATE',
  datetime: 'DATETIME(3)',
  timestamp: 'DATETIME(3)',
};
const NUMBER = '^[[:space:]]*[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?[[:space:]]*$';
const MAX_FLOAT = '3.4028234663852886e38';

/**
 * A condition for values that the server does not convert; undefined if it converts all. It may miss some, which the
 * step itself reports, and is never true for a value that the server converts.
 */
function unconvertibleSql(traits: Traits, from: Field, to: Field): string | undefined {
  const column = quoteIdentifier(from.name);
  const isText = TEXT_TYPES.has(from.type) || BYTE_TYPES.has(from.type);
  const asText = isText ? `CONVERT(${column} USING utf8mb4)` : `CAST(${column} AS CHAR)`;
  const any = (...conditions: readonly (string | undefined)[]) =>
    conditions.filter((condition) => condition !== undefined).join(' OR ') || undefined;
  switch (to.type) {
    case 'boolean':
    case 'smallint':
    case 'integer':
    case 'bigint':
    case 'float':
    case 'double':
    case 'decimal':
      if (isText)
        return any(`${asText} NOT REGEXP '${NUMBER}'`, outOfRangeSql(`CAST(${asText} AS DECIMAL(65,30))`, from, to));
      if (JSON_TYPES.has(from.type)) return `JSON_TYPE(${column}) IN ('OBJECT', 'ARRAY')`;
      return outOfRangeSql(NUMBER_TYPES.has(from.type) ? column : `(${column} + 0)`, from, to);
    case 'string':
      return any(
        notTextSql(column, asText, from),
        // Trailing spaces are removed without an error.
        isShorter(from, to) ? `CHAR_LENGTH(RTRIM(${asText})) > ${to.length ?? STRING_LENGTH}` : undefined,
      );
    case 'text':
      return notTextSql(column, asText, from);
    case 'binary':
      if (!isShorter(from, to)) return undefined;
      return `LENGTH(${BYTE_TYPES.has(from.type) ? column : `RTRIM(${asText})`}) > ${to.length}`;
    case 'date':
    case 'time':
    case 'datetime':
    case 'timestamp':
      return any(
        isText && to.type !== 'time'
          ? `${column} IS NOT NULL AND CAST(${asText} AS ${CAST_TYPES[to.type]}) IS NULL`
          : undefined,
        to.type === 'timestamp' && (isText || DATE_TYPES.has(from.type))
          ? `CAST(${isText ? asText : column} AS DATETIME(3)) NOT BETWEEN '1970-01-01 00:00:00.001' AND ${traits.maxTimestamp}`
          : undefined,
      );
    case 'json':
      return JSON_TYPES.has(from.type) || NUMBER_TYPES.has(from.type) ? undefined : `NOT JSON_VALID(${asText})`;
    case 'array':
      if (from.type === 'array') return undefined;
      return `CASE JSON_VALID(${asText}) WHEN 1 THEN JSON_TYPE(${asText}) <> 'ARRAY' WHEN 0 THEN TRUE END`;
    default:
      return undefined;
  }
}

/** A condition for numbers out of range of a type. */
function outOfRangeSql(number: string, from: Field, to: Field): string | undefined {
  const integers: readonly FieldType[] = INTEGERS;
  const range = RANGES[to.type];
  if (range !== undefined) {
    const isWider = integers.includes(from.type) && integers.indexOf(from.type) <= integers.indexOf(to.type);
    return isWider ? undefined : `ROUND(${number}) NOT BETWEEN ${range}`;
  }
  if (to.type === 'float')
    return from.type === 'double' || from.type === 'decimal' ? `ABS(${number}) > ${MAX_FLOAT}` : undefined;
  if (to.type !== 'decimal') return undefined;
  const { precision = 0, scale = 0 } = to;
  if (from.type === 'decimal' && (from.precision ?? 0) - (from.scale ?? 0) < precision - scale) return undefined;
  const greatest = `${'9'.repeat(precision - scale) || '0'}${scale > 0 ? `.${'9'.repeat(scale)}` : ''}`;
  return `ROUND(${number}, ${scale}) NOT BETWEEN -${greatest} AND ${greatest}`;
}

/** A condition for bytes that are not text. */
const notTextSql = (column: string, written: string, { type }: Field): string | undefined =>
  BYTE_TYPES.has(type) ? `NOT (CAST(${written} AS BINARY) <=> ${column})` : undefined;
