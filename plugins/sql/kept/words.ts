import type { Json } from '../../../core/json.ts';
import { isExpression } from '../../../core/schema/default.ts';
import type { Default, Field, SchemaModel } from '../../../core/schema/model.ts';
import type { FieldType } from '../../../core/schema/types.ts';

/** What differs between engines that keep the text a table was made with, types and all, and give it back. */
export interface KeptWords {
  /**
   * The name a column is declared with, in capitals, each another one: what is read back is told by it. That of `array`
   * goes behind the type of the elements; a length or precision goes behind any.
   */
  readonly types: Readonly<Record<FieldType, string>>;
  /** The current date or time as an expression, by the types that have one. */
  readonly now: Readonly<Partial<Record<FieldType, string>>>;
  /** The moment of the statement, not of its transaction, in UTC as an expression: a text like 2026-01-31T23:59:59.999Z. */
  readonly clock: string;
  /** An expression that makes a new UUID. */
  readonly uuid: string;
  /** A query with a row for each foreign key of a table that points at nothing; its column `why` says which, in a sentence. */
  dangling(table: string): string;
  /** A condition that is true of a value which is not of the field's type, where the engine would store it all the same. */
  misfit?(column: string, type: FieldType): string | undefined;
}

export const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`;
export const text = (value: string): string => `'${value.replaceAll("'", "''")}'`;
export const unquoted = (name: string): string =>
  name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name;
export const stringOf = (literal: string): string => literal.slice(1, -1).replaceAll("''", "'");

export function typeText(
  { types }: Pick<KeptWords, 'types'>,
  { type, items, length, precision, scale }: Omit<Field, 'name'>,
): string {
  const numbers = [length ?? precision, scale].filter((number) => number !== undefined);
  const name = items === undefined ? types[type] : `${types[items]} ${types.array}`;
  return numbers.length > 0 ? `${name}(${numbers.join(', ')})` : name;
}

/** The type that was declared; a text where svc does not declare it so. */
export function readType(
  { types }: Pick<KeptWords, 'types'>,
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
  if (type === 'json' || type === 'array') return text(JSON.stringify(value));
  if (type === 'binary' || type === 'blob') return `x'${Buffer.from(String(value), 'base64').toString('hex')}'`;
  if (typeof value === 'boolean') return value ? '1' : '0';
  return typeof value === 'number' || type === 'bigint' ? String(value) : text(String(value));
}

/** What stands in the parentheses behind DEFAULT. */
export function defaultText(words: KeptWords, { default: value, autoGenerate, type }: Field): string | undefined {
  if (autoGenerate) return words.uuid;
  if (value === undefined) return undefined;
  if (isExpression(value)) return value.$expression;
  return value === 'now' && words.now[type] !== undefined ? words.now[type] : literal(value as Json, { type });
}

export function readDefault(
  words: KeptWords,
  written: string | undefined,
  type: FieldType,
): Pick<Field, 'default' | 'autoGenerate'> {
  if (written === undefined || /^null$/i.test(written)) return {};
  if (written === words.uuid) return { autoGenerate: true };
  return { default: readLiteral(words, written, type) };
}

function readLiteral(words: KeptWords, written: string, type: FieldType): Default {
  if (written === words.now[type]) return 'now';
  if (/^'(?:[^']|'')*'$/.test(written)) {
    const value = stringOf(written);
    return type === 'json' || type === 'array' ? (JSON.parse(value) as Json) : value;
  }
  const hex = /^x'([0-9a-f]*)'$/.exec(written)?.[1];
  if (hex !== undefined) return Buffer.from(hex, 'hex').toString('base64');
  if (!/^-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(written)) return { $expression: written };
  if (type === 'boolean') return Number(written) !== 0;
  return type === 'bigint' && !Number.isSafeInteger(Number(written)) ? written : Number(written);
}

/** What the kept texts give back of a model. */
export function seenKept(words: KeptWords, model: SchemaModel): SchemaModel {
  return new Map(
    [...model].map(([name, collection]) => {
      const keys = [...collection.constraints.values()].flatMap((one) =>
        one.type === 'primaryKey' ? one.columns : [],
      );
      const fields = [...collection.fields].map(([own, field]) => {
        const { default: _, autoGenerate: __, ...rest } = field;
        const value = readDefault(words, defaultText(words, field), field.type);
        const type = readType(words, typeText(words, field));
        return [own, { ...rest, ...type, ...value, ...(keys.includes(own) && { required: true as const }) }] as const;
      });
      return [name, { ...collection, fields: new Map(fields), options: {} }];
    }),
  );
}
