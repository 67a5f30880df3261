import type { Json } from '../../../../core/json.ts';
import { isExpression } from '../../../../core/schema/literal.ts';
import type { Collection, Default, Field, FieldType, Index, SchemaModel } from '../../../../core/schema/model.ts';
import { constraintDefinition } from '../compile.ts';
import { expressionProblem } from '../validate.ts';

/**
 * The differences between engines that return a CREATE statement for each of their tables and indexes. Without
 * `rewritesTexts` the engine returns the statements as svc wrote them.
 */
export interface TextCatalogSyntax {
  /**
   * The column type of each field type, in upper case. All must be different, because the field type is read back from it;
   * with `rewritesTexts`, the first match is read from tables that svc did not create. The text for `array` follows that of
   * the element type. A length or precision may follow any type.
   */
  readonly types: Readonly<Record<FieldType, string>>;
  /**
   * Other names of column types, in upper case, and the field type that each is read as: `{ INT: 'integer' }`. A column of
   * any other type is read as `text`, and listed by `unsupportedObjects`.
   */
  readonly typeSynonyms?: Readonly<Record<string, FieldType>>;
  /** The column type of a field; undefined if `types` and the field's length or precision are sufficient. */
  typeText?(field: Omit<Field, 'name'>): string | undefined;
  /** A literal of a field's type; undefined if it is the same as that of the exported function `quoteLiteral`. */
  quoteLiteral?(value: Exclude<Json, null>, field: Omit<Field, 'name'>): string | undefined;
  /** An array of element literals, for an engine with array types; without it, an array is JSON in a string. */
  arrayLiteral?(elements: readonly string[], type: string): string;
  /** An expression for the current date or time, for the types that support it. */
  readonly now: Readonly<Partial<Record<FieldType, string>>>;
  /**
   * An expression for the engine's time when the statement runs, as a `timestamp`. In many engines `now()` is the time at
   * which the transaction began.
   */
  readonly currentTimestamp: string;
  /** An expression for a new UUID. */
  readonly uuid: string;
  /**
   * A query for the CREATE statements of all tables and indexes, in any order, without those of the engine and of svc,
   * whose names begin with `_svc_`. Its columns are `name`, the table that the statement creates or indexes, and `sql`.
   * Statements of other objects, such as triggers and views, are listed by `unsupportedObjects`.
   */
  readonly catalogQuery: string;
  /** A query for the column names of a table, in its column `name`. It returns no rows if the table does not exist. */
  columnsQuery(table: string): string;
  /** A query that returns a row for each dangling reference of a table. Its column `why` is a sentence that names it. */
  danglingReferences?(table: string): string;
  /** A condition that matches values which are not valid for the type, if the engine would store them anyway. */
  invalidValueCondition?(column: string, type: FieldType): string | undefined;
  /**
   * The engine rewrites the CREATE statements: what it returns is the same for a `string` and a `text`, for example, or has
   * no names of constraints. svc then stores the definition of each table in `_svc_definitions`, with the engine's text of
   * that moment. While the text is the same, the definition is read in its place.
   */
  readonly rewritesTexts?: true;
  /** The column type of an enum rejects other values, so it needs no check. */
  readonly nativeEnum?: true;
  /** The engine rejects ALTER TABLE while the table has indexes: they are dropped before and created again after it. */
  readonly alterDropsIndexes?: true;
  /** ALTER TABLE can only rename the table: adding or renaming a column recreates it, like every other change. */
  readonly alterRenamesTableOnly?: true;
}

export const quoteIdentifier = (name: string): string => `"${name.replaceAll('"', '""')}"`;
/** A literal of a field's type in standard SQL. Bytes are base64, arrays and JSON are strings, and booleans are 1 and 0. */
export function quoteLiteral(value: Json, { type }: Pick<Field, 'type'> = { type: 'string' }): string {
  if (value === null) return 'NULL';
  if (type === 'json' || type === 'array') return quoteText(JSON.stringify(value));
  if (type === 'binary' || type === 'blob') return `x'${Buffer.from(String(value), 'base64').toString('hex')}'`;
  if (typeof value === 'boolean') return value ? '1' : '0';
  return typeof value === 'number' || type === 'bigint' ? String(value) : quoteText(String(value));
}
const quoteText = (value: string): string => `'${value.replaceAll("'", "''")}'`;

/** A literal in the syntax of an engine. */
export function literal(
  syntax: Pick<TextCatalogSyntax, 'types' | 'typeText' | 'quoteLiteral' | 'arrayLiteral'>,
  value: Json,
  field: Omit<Field, 'name'>,
): string {
  if (value === null) return 'NULL';
  if (field.type === 'array' && Array.isArray(value) && syntax.arrayLiteral) {
    const element = { type: field.items ?? 'string' };
    const elements = value.map((one: Json) => literal(syntax, one, element));
    return syntax.arrayLiteral(elements, typeText(syntax, field));
  }
  return syntax.quoteLiteral?.(value, field) ?? quoteLiteral(value, field);
}
export const unquoteIdentifier = (name: string): string =>
  name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name;
export const unquoteLiteral = (literal: string): string => literal.slice(1, -1).replaceAll("''", "'");

export function typeText(syntax: Pick<TextCatalogSyntax, 'types' | 'typeText'>, field: Omit<Field, 'name'>): string {
  const own = syntax.typeText?.(field);
  if (own !== undefined) return own;
  const { type, items, length, precision, scale } = field;
  if (type === 'array') return `${typeText(syntax, { type: items ?? 'string' })}${arraySuffix(syntax)}`;
  const numbers = [length ?? precision, scale].filter((number) => number !== undefined);
  return numbers.length > 0 ? `${syntax.types[type]}(${numbers.join(', ')})` : syntax.types[type];
}

/** `INTEGER ARRAY`, but `INTEGER[]`. */
const arraySuffix = ({ types: { array } }: Pick<TextCatalogSyntax, 'types'>): string =>
  /^\w/.test(array) ? ` ${array}` : array;

/** The field type of a column type; undefined if it is unknown. */
export function readType(
  syntax: Pick<TextCatalogSyntax, 'types' | 'typeSynonyms'>,
  written: string,
): Pick<Field, 'type' | 'items' | 'length' | 'precision' | 'scale'> | undefined {
  const [, name = '', first, second] =
    /^(.*?)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?$/s.exec(written.trim().toUpperCase()) ?? [];
  const { types, typeSynonyms } = syntax;
  const known = (word: string) =>
    (Object.keys(types) as FieldType[]).find((type) => types[type] === word) ?? typeSynonyms?.[word];
  const suffix = arraySuffix(syntax);
  const items = name.endsWith(suffix) ? readType(syntax, name.slice(0, -suffix.length))?.type : undefined;
  if (items) return { type: 'array', items };
  const whole = known(written.trim().toUpperCase());
  if (whole) return { type: whole };
  const type = known(name);
  if (type === 'string' || type === 'binary') return { type, ...(first !== undefined && { length: Number(first) }) };
  if (type !== 'decimal') return type && { type };
  return {
    type,
    ...(first !== undefined && { precision: Number(first) }),
    ...(second !== undefined && { scale: Number(second) }),
  };
}

/** How a column of an unknown type is read. */
export const UNKNOWN_TYPE = { type: 'text' } as const;

/** The expression of a DEFAULT clause. */
export function defaultExpression(syntax: TextCatalogSyntax, field: Field): string | undefined {
  const { default: value, autoGenerate, type } = field;
  if (autoGenerate) return syntax.uuid;
  if (value === undefined) return undefined;
  if (isExpression(value)) return value.$expression;
  return value === 'now' && syntax.now[type] !== undefined ? syntax.now[type] : literal(syntax, value as Json, field);
}

export function readDefault(
  syntax: TextCatalogSyntax,
  written: string | undefined,
  type: FieldType,
): Pick<Field, 'default' | 'autoGenerate'> {
  if (written === undefined || /^null$/i.test(written)) return {};
  if (written === syntax.uuid) return { autoGenerate: true };
  return { default: readLiteral(syntax, written, type) };
}

function readLiteral(syntax: TextCatalogSyntax, written: string, type: FieldType): Default {
  if (written === syntax.now[type]) return 'now';
  if (/^'(?:[^']|'')*'$/.test(written)) {
    const value = unquoteLiteral(written);
    return type === 'json' || type === 'array' ? (JSON.parse(value) as Json) : value;
  }
  const hex = /^x'([0-9a-f]*)'$/.exec(written)?.[1];
  if (hex !== undefined) return Buffer.from(hex, 'hex').toString('base64');
  if (!/^-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(written)) return { $expression: written };
  if (type === 'boolean') return Number(written) !== 0;
  return type === 'bigint' && !Number.isSafeInteger(Number(written)) ? written : Number(written);
}

/** The model as `introspect` returns it. */
export const normalizeTextCatalog = (syntax: TextCatalogSyntax, model: SchemaModel): SchemaModel =>
  new Map([...model].map(([name, collection]) => [name, normalizeCollection(syntax, collection)]));

export function normalizeCollection(syntax: TextCatalogSyntax, collection: Collection): Collection {
  const keys = [...collection.constraints.values()].flatMap((one) => (one.type === 'primaryKey' ? one.columns : []));
  const fields = [...collection.fields.values()].map((field): [string, Field] => {
    const normalized = syntax.rewritesTexts ? field : readBack(syntax, field);
    return [field.name, keys.includes(field.name) ? { ...normalized, required: true } : normalized];
  });
  return { ...collection, fields: new Map(fields), options: {} };
}

/** The field as it is read from its own text. */
function readBack(syntax: TextCatalogSyntax, field: Field): Field {
  const { default: _, autoGenerate: __, ...rest } = field;
  const value = readDefault(syntax, defaultExpression(syntax, field), field.type);
  return { ...rest, ...(readType(syntax, typeText(syntax, field)) ?? UNKNOWN_TYPE), ...value };
}

/** Only the constraints of field flags have no names, which is how the reader recognizes them. */
export function columnSql(syntax: TextCatalogSyntax, field: Field): string {
  const value = defaultExpression(syntax, field);
  const values = syntax.nativeEnum ? undefined : field.enumValues?.map((one) => quoteLiteral(one)).join(', ');
  return [
    `${quoteIdentifier(field.name)} ${typeText(syntax, field)}`,
    ...(field.required ? ['NOT NULL'] : []),
    ...(field.unique ? ['UNIQUE'] : []),
    ...(values === undefined ? [] : [`CHECK (${quoteIdentifier(field.name)} IN (${values}))`]),
    ...(value === undefined ? [] : [`DEFAULT (${value})`]),
  ].join(' ');
}

/** A CREATE TABLE statement in the format that `readTextCatalog` parses. */
export function createTableSql(
  syntax: TextCatalogSyntax,
  { name, fields, constraints }: Collection,
  as = name,
): string {
  const keys = [...constraints.values()].flatMap((one) => (one.type === 'primaryKey' ? one.columns : []));
  const flagged = [...fields.values()]
    .filter(({ primaryKey }) => primaryKey)
    .map((field) => quoteIdentifier(field.name));
  const lines = [
    ...[...fields.values()].map((field) =>
      columnSql(syntax, keys.includes(field.name) ? { ...field, required: true } : field),
    ),
    ...(flagged.length > 0 ? [`PRIMARY KEY (${flagged.join(', ')})`] : []),
    ...[...constraints.values()].map((constraint) =>
      constraintDefinition({ quoteIdentifier, expressionProblem }, constraint, ''),
    ),
  ];
  return `CREATE TABLE ${quoteIdentifier(as)} (\n  ${lines.join(',\n  ')}\n)`;
}

export function createIndexSql(table: string, { name, columns, unique }: Index): string {
  const keys = columns.map((column) => `${quoteIdentifier(column.name)}${column.order === 'desc' ? ' DESC' : ''}`);
  return `CREATE ${unique ? 'UNIQUE ' : ''}INDEX ${quoteIdentifier(name)} ON ${quoteIdentifier(table)} (${keys.join(', ')})`;
}
