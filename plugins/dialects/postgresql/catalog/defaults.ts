import type { Json } from '../../../../core/json.ts';
import { isExpression, normalizeLiteral } from '../../../../core/schema/literal.ts';
import type { Default, Field, FieldType } from '../../../../core/schema/model.ts';
import { normalizeText, parseValue } from '../../sql/catalog-values.ts';
import { nowSql } from '../compile/types.ts';

const UUID = /^\(?gen_random_uuid\(\)\)?(::text|::character varying)?$/;

/** The default of a catalog expression; undefined for an expression that `autoGenerate` represents. */
export function parseDefault(expression: string, field: Omit<Field, 'default' | 'name'>): Default | undefined {
  if (UUID.test(expression) && (field.type === 'uuid' || field.type === 'string')) return undefined;
  if (/serial$/.test(field.native ?? '') && /^nextval\('.*'::regclass\)$/.test(expression)) return undefined;
  if (isDateOrTime(field.type) && expression === nowSql(field)) return 'now';
  // Without a quoted text, the value of another type was converted.
  if (field.native !== undefined && field.type === 'text' && !expression.startsWith("'"))
    return { $expression: expression };
  const text = isWrittenOtherwise(expression, field) ? undefined : literalText(expression);
  const value = text === undefined ? undefined : valueFromText(text, field);
  if (value === undefined) return { $expression: expression };
  const literal = normalizeValue(value, field);
  // Values that no literal can represent, such as 'infinity' or a year BC, stay expressions.
  return 'problem' in normalizeLiteral(literal, field) ? { $expression: expression } : literal;
}

const isDateOrTime = (type: FieldType) =>
  type === 'date' || type === 'time' || type === 'datetime' || type === 'timestamp';

/** Whether the text was converted to another type first: `'x'::character varying` of a text. */
function isWrittenOtherwise(expression: string, { type, native }: Pick<Field, 'type' | 'native'>): boolean {
  const cast = /^'(?:[^']|'')*'::([a-z ]+)/.exec(expression)?.[1]?.trim();
  if (cast === undefined || native !== undefined) return false;
  return (type === 'text' && cast !== 'text') || (type === 'string' && cast !== 'character varying');
}

/** The text of a constant: `'it''s'::text`, `5`, `'-5'::integer`, `true`. */
function literalText(expression: string): string | undefined {
  const quoted = /^'((?:[^']|'')*)'(?:::.+)?$/s.exec(expression);
  if (quoted?.[1] !== undefined && !/^'(?:[^']|'')*'::.*[('+]/s.test(expression.replace(/\(\d+(,\d+)?\)/g, ''))) {
    return quoted[1].replaceAll("''", "'");
  }
  const plain = /^\(?(-?\d+(?:\.\d+)?)\)?(?:::[a-z ]+(?:\(\d+(?:,\d+)?\))?)?$/.exec(expression);
  if (plain) return plain[1];
  return expression === 'true' || expression === 'false' ? expression : undefined;
}

function valueFromText(text: string, { type, items }: Pick<Field, 'type' | 'items'>): Json | undefined {
  if (type === 'array') return parseArray(text, items ?? 'string');
  const hex = type === 'binary' || type === 'blob' ? /^\\x([0-9a-f]*)$/.exec(text)?.[1] : undefined;
  return hex === undefined ? parseValue(text, type) : Buffer.from(hex, 'hex').toString('base64');
}

/** Parses `{a,"b c",NULL}`, an array of one dimension. */
function parseArray(text: string, items: FieldType): Json[] | undefined {
  if (!text.startsWith('{') || !text.endsWith('}')) return undefined;
  const values: Json[] = [];
  for (const [, quoted, plain] of text.slice(1, -1).matchAll(/(?:"((?:[^"\\]|\\.)*)"|([^,]+))(?:,|$)/gs)) {
    const element = quoted === undefined ? plain : quoted.replace(/\\(.)/gs, '$1');
    const value =
      element === undefined || (quoted === undefined && element === 'NULL')
        ? null
        : valueFromText(element, { type: items });
    if (value === undefined) return undefined;
    values.push(value);
  }
  return values;
}

/** The form of a literal that is the same for a model and the catalog. */
export function normalizeDefault(value: Default, field: Pick<Field, 'type' | 'items'>): Default {
  if (isExpression(value) || value === 'now') return value;
  return normalizeValue(value as Json, field);
}

function normalizeValue(value: Json, { type, items }: Pick<Field, 'type' | 'items'>, isArrayItem = false): Json {
  switch (type) {
    case 'decimal':
      return normalizeDecimal(String(value));
    case 'float':
      // The catalog rounds the items of an array to float32; a default keeps the digits it was given.
      return isArrayItem ? shortestReal(Number(value)) : value;
    case 'array':
      return (value as readonly Json[]).map((item) =>
        item === null ? null : normalizeValue(item, { type: items ?? 'string' }, true),
      );
    default:
      return normalizeText(value, type);
  }
}

/** All digits in plain notation: a number if it prints the same digits, otherwise a string. */
function normalizeDecimal(text: string): Json {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(text) ?? [];
  const shift = Number(exponent);
  const digits = whole + fraction;
  const point = whole.length + shift;
  const plain =
    point <= 0
      ? `0.${'0'.repeat(-point)}${digits}`
      : point >= digits.length
        ? digits + '0'.repeat(point - digits.length)
        : `${digits.slice(0, point)}.${digits.slice(point)}`;
  const full = sign + plain;
  return String(Number(full)) === full ? Number(full) : full;
}

function shortestReal(value: number): number {
  const stored = Math.fround(value);
  for (let digits = 1; digits < 10; digits += 1) {
    const shorter = Number(value.toPrecision(digits));
    if (Math.fround(shorter) === stored) return shorter;
  }
  return value;
}
