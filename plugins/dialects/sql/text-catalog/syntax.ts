import type { Json } from '../../../../core/json.ts';
import { isExpression } from '../../../../core/schema/literal.ts';
import type { Collection, Default, Field, FieldType, Index, SchemaModel } from '../../../../core/schema/model.ts';
import { constraintDefinition } from '../compile.ts';
import { expressionProblem } from '../validate.ts';

/** The differences between engines that store the CREATE statements of tables and indexes and return them verbatim. */
export interface TextCatalogSyntax {
  /**
   * The column type of each field type, in upper case. All must be different, because the field type is read back from it.
   * The name for `array` follows that of the element type. A length or precision may follow any type.
   */
  readonly types: Readonly<Record<FieldType, string>>;
  /** An expression for the current date or time, for the types that support it. */
  readonly now: Readonly<Partial<Record<FieldType, string>>>;
  /** An expression for the time of the statement, not of its transaction, in UTC: `2026-01-31T23:59:59.999Z`. */
  readonly currentTimestamp: string;
  /** An expression for a new UUID. */
  readonly uuid: string;
  /** A query that returns a row for each dangling reference of a table. Its column `why` is a sentence that names it. */
  danglingReferences(table: string): string;
  /** A condition that matches values which are not valid for the type, if the engine would store them anyway. */
  invalidValueCondition?(column: string, type: FieldType): string | undefined;
}

export const quoteIdentifier = (name: string): string => `"${name.replaceAll('"', '""')}"`;
export const quoteLiteral = (value: string): string => `'${value.replaceAll("'", "''")}'`;
export const unquoteIdentifier = (name: string): string =>
  name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name;
export const unquoteLiteral = (literal: string): string => literal.slice(1, -1).replaceAll("''", "'");

export function typeName(
  { types }: Pick<TextCatalogSyntax, 'types'>,
  { type, items, length, precision, scale }: Omit<Field, 'name'>,
): string {
  const numbers = [length ?? precision, scale].filter((number) => number !== undefined);
  const name = items === undefined ? types[type] : `${types[items]} ${types.array}`;
  return numbers.length > 0 ? `${name}(${numbers.join(', ')})` : name;
}

/** The field type of a column type. Unknown types are read as text. */
export function readType(
  { types }: Pick<TextCatalogSyntax, 'types'>,
  written: string,
): Pick<Field, 'type' | 'items' | 'length' | 'precision' | 'scale'> {
  const [, name = '', first, second] =
    /^(.*?)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?$/s.exec(written.trim().toUpperCase()) ?? [];
  const known = (word: string) => (Object.keys(types) as FieldType[]).find((type) => types[type] === word);
  const items = name.endsWith(` ${types.array}`) ? known(name.slice(0, -types.array.length - 1)) : undefined;
  if (items) return { type: 'array', items };
  const type = known(name) ?? 'text';
  if (type !== 'decimal') return { type, ...(first !== undefined && { length: Number(first) }) };
  return {
    type,
    ...(first !== undefined && { precision: Number(first) }),
    ...(second !== undefined && { scale: Number(second) }),
  };
}

export function literal(value: Json, { type }: Pick<Field, 'type'>): string {
  if (value === null) return 'NULL';
  if (type === 'json' || type === 'array') return quoteLiteral(JSON.stringify(value));
  if (type === 'binary' || type === 'blob') return `x'${Buffer.from(String(value), 'base64').toString('hex')}'`;
  if (typeof value === 'boolean') return value ? '1' : '0';
  return typeof value === 'number' || type === 'bigint' ? String(value) : quoteLiteral(String(value));
}

/** The expression of a DEFAULT clause. */
export function defaultExpression(
  syntax: TextCatalogSyntax,
  { default: value, autoGenerate, type }: Field,
): string | undefined {
  if (autoGenerate) return syntax.uuid;
  if (value === undefined) return undefined;
  if (isExpression(value)) return value.$expression;
  return value === 'now' && syntax.now[type] !== undefined ? syntax.now[type] : literal(value as Json, { type });
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

/** The model as read back from the stored statements. */
export function normalizeTextCatalog(syntax: TextCatalogSyntax, model: SchemaModel): SchemaModel {
  return new Map(
    [...model].map(([name, collection]) => {
      const keys = [...collection.constraints.values()].flatMap((one) =>
        one.type === 'primaryKey' ? one.columns : [],
      );
      const fields = [...collection.fields].map(([own, field]) => {
        const { default: _, autoGenerate: __, ...rest } = field;
        const value = readDefault(syntax, defaultExpression(syntax, field), field.type);
        const type = readType(syntax, typeName(syntax, field));
        return [own, { ...rest, ...type, ...value, ...(keys.includes(own) && { required: true as const }) }] as const;
      });
      return [name, { ...collection, fields: new Map(fields), options: {} }];
    }),
  );
}

/** Only the constraints of field flags have no names, which is how the reader recognizes them. */
export function columnSql(syntax: TextCatalogSyntax, field: Field): string {
  const value = defaultExpression(syntax, field);
  const values = field.enumValues?.map(quoteLiteral).join(', ');
  return [
    `${quoteIdentifier(field.name)} ${typeName(syntax, field)}`,
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
      constraintDefinition({ quoteIdentifier: quoteIdentifier, expressionProblem }, constraint, ''),
    ),
  ];
  return `CREATE TABLE ${quoteIdentifier(as)} (\n  ${lines.join(',\n  ')}\n)`;
}

export function createIndexSql(table: string, { name, columns, unique }: Index): string {
  const keys = columns.map((column) => `${quoteIdentifier(column.name)}${column.order === 'desc' ? ' DESC' : ''}`);
  return `CREATE ${unique ? 'UNIQUE ' : ''}INDEX ${quoteIdentifier(name)} ON ${quoteIdentifier(table)} (${keys.join(', ')})`;
}
