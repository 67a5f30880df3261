import type { Field } from '../../../core/schema/model.ts';
import type { FieldType } from '../../../core/schema/types.ts';
import { quote } from './quote.ts';
import type { Traits } from './traits.ts';
import { STRING_LENGTH } from './types.ts';

type Types = ReadonlySet<FieldType>;
/** Each takes all values of those before it. */
const INTEGERS = ['boolean', 'smallint', 'integer', 'bigint'] as const;
const RANGES: Readonly<Partial<Record<FieldType, string>>> = {
  boolean: '-128 AND 127',
  smallint: '-32768 AND 32767',
  integer: '-2147483648 AND 2147483647',
  bigint: '-9223372036854775808 AND 9223372036854775807',
};
const NUMBERS: Types = new Set([...INTEGERS, 'float', 'double', 'decimal']);
const TEXTS: Types = new Set(['string', 'text', 'enum', 'uuid']);
const BYTES: Types = new Set(['binary', 'blob']);
const JSON_TYPES: Types = new Set(['json', 'array']);
const DAYS: Types = new Set(['date', 'datetime']);
/** What the text of a moment is cast to; of a time of day MySQL takes any. */
const CLOCKS: Readonly<Partial<Record<FieldType, string>>> = {
  date: 'DATE',
  datetime: 'DATETIME(3)',
  timestamp: 'DATETIME(3)',
};
const NUMBER = '^[[:space:]]*[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?[[:space:]]*$';
const GREATEST_FLOAT = '3.4028234663852886e38';

/**
 * A condition for values that the server refuses to convert when a field becomes another; absent where there are none.
 * It may miss some, of which the step itself tells, and holds for none that the server takes.
 */
export function unfit(traits: Traits, from: Field, to: Field): string | undefined {
  const column = quote(from.name);
  const isText = TEXTS.has(from.type) || BYTES.has(from.type);
  const written = isText ? `CONVERT(${column} USING utf8mb4)` : `CAST(${column} AS CHAR)`;
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
        return any(`${written} NOT REGEXP '${NUMBER}'`, beyond(`CAST(${written} AS DECIMAL(65,30))`, from, to));
      if (JSON_TYPES.has(from.type)) return `JSON_TYPE(${column}) IN ('OBJECT', 'ARRAY')`;
      return beyond(NUMBERS.has(from.type) ? column : `(${column} + 0)`, from, to);
    case 'string':
      return any(
        unreadable(column, written, from),
        // Spaces at the end are cut without an error.
        isShorter(from, to) ? `CHAR_LENGTH(RTRIM(${written})) > ${to.length ?? STRING_LENGTH}` : undefined,
      );
    case 'text':
      return unreadable(column, written, from);
    case 'binary':
      if (!isShorter(from, to)) return undefined;
      return `LENGTH(${BYTES.has(from.type) ? column : `RTRIM(${written})`}) > ${to.length}`;
    case 'date':
    case 'time':
    case 'datetime':
    case 'timestamp':
      return any(
        isText && to.type !== 'time'
          ? `${column} IS NOT NULL AND CAST(${written} AS ${CLOCKS[to.type]}) IS NULL`
          : undefined,
        to.type === 'timestamp' && (isText || DAYS.has(from.type))
          ? `CAST(${isText ? written : column} AS DATETIME(3)) NOT BETWEEN '1970-01-01 00:00:00.001' AND ${traits.lastTimestamp}`
          : undefined,
      );
    case 'json':
      return JSON_TYPES.has(from.type) || NUMBERS.has(from.type) ? undefined : `NOT JSON_VALID(${written})`;
    case 'array':
      if (from.type === 'array') return undefined;
      return `CASE JSON_VALID(${written}) WHEN 1 THEN JSON_TYPE(${written}) <> 'ARRAY' WHEN 0 THEN TRUE END`;
    default:
      return undefined;
  }
}

/** Out of the range of a type of numbers. */
function beyond(number: string, from: Field, to: Field): string | undefined {
  const integers: readonly FieldType[] = INTEGERS;
  const range = RANGES[to.type];
  if (range !== undefined) {
    const isWider = integers.includes(from.type) && integers.indexOf(from.type) <= integers.indexOf(to.type);
    return isWider ? undefined : `ROUND(${number}) NOT BETWEEN ${range}`;
  }
  if (to.type === 'float')
    return from.type === 'double' || from.type === 'decimal' ? `ABS(${number}) > ${GREATEST_FLOAT}` : undefined;
  if (to.type !== 'decimal') return undefined;
  const { precision = 0, scale = 0 } = to;
  if (from.type === 'decimal' && (from.precision ?? 0) - (from.scale ?? 0) < precision - scale) return undefined;
  const greatest = `${'9'.repeat(precision - scale) || '0'}${scale > 0 ? `.${'9'.repeat(scale)}` : ''}`;
  return `ROUND(${number}, ${scale}) NOT BETWEEN -${greatest} AND ${greatest}`;
}

/** Bytes that are no text. */
const unreadable = (column: string, written: string, { type }: Field): string | undefined =>
  BYTES.has(type) ? `NOT (CAST(${written} AS BINARY) <=> ${column})` : undefined;

function isShorter(from: Field, to: Field): boolean {
  if (to.type === 'binary' && to.length === undefined) return false;
  if (from.type !== to.type) return true;
  return (from.length ?? (to.type === 'string' ? STRING_LENGTH : Infinity)) > (to.length ?? STRING_LENGTH);
}
