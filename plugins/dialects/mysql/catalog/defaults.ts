import { type Json, tryParseJson } from '../../../../core/json.ts';
import { isExpression } from '../../../../core/schema/literal.ts';
import type { Default, Field, FieldType } from '../../../../core/schema/model.ts';
import { normalizeText, parseValue } from '../../sql/catalog-values.ts';
import { isGeneratedUuid } from '../compile/generated-uuid.ts';
import { parseBytesExpression, parseTextExpression, quoteLiteral } from '../compile/literal.ts';
import type { CatalogColumn, CatalogDefault } from './catalog-table.ts';

const NOW_EXPRESSIONS: Readonly<Partial<Record<FieldType, RegExp>>> = {
  date: /^(curdate\(\)|current_date(\(\))?)$/i,
  time: /^(curtime|current_time)(\(\d?\))?$/i,
  datetime: /^(now|current_timestamp|localtime|localtimestamp)(\(\d?\))?$/i,
  timestamp: /^(now|current_timestamp|localtime|localtimestamp)(\(\d?\))?$/i,
};

/** The default of a field; undefined for the default of an `autoGenerate` field. */
export function parseDefault(found: CatalogDefault, field: Omit<Field, 'default' | 'name'>): Default | undefined {
  const { type } = field;
  if ('expression' in found) {
    const { expression } = found;
    if (isGeneratedUuid(expression) && (type === 'uuid' || type === 'string')) return undefined;
    if (NOW_EXPRESSIONS[type]?.test(expression)) return 'now';
    const value =
      type === 'binary' || type === 'blob'
        ? parseBytesExpression(expression)
        : parseText(parseTextExpression(expression) ?? parseNumber(expression), field);
    return value === undefined ? { $expression: expression } : canonicalDefault(value, field);
  }
  const isBytes = type === 'binary' || type === 'blob';
  const value = isBytes ? parseBytesExpression(found.literal) : parseText(found.literal, field);
  return value === undefined ? { $expression: literalSql(found.literal) } : canonicalDefault(value, field);
}

/** Strict sessions reject it in a new definition, and in any change of a table that has one. */
export const hasZeroDate = ({ type, default: found }: Pick<CatalogColumn, 'type' | 'default'>): boolean =>
  /^(date|timestamp)/.test(type) &&
  found !== undefined &&
  'literal' in found &&
  /^\d{4}-(00-\d\d|\d\d-00)/.test(found.literal);

const parseNumber = (expression: string): string | undefined => /^\(?(-?\d+(?:\.\d+)?)\)?$/.exec(expression)?.[1];

/** The default as it is written in a column definition. */
export function defaultSql(found: CatalogDefault): string {
  if ('literal' in found) return literalSql(found.literal);
  // With ON UPDATE, this is a keyword without parentheses.
  return /^current_timestamp/i.test(found.expression) ? found.expression : `(${found.expression})`;
}

function literalSql(literal: string): string {
  const hex = /^0x([0-9a-f]*)$/.exec(literal)?.[1];
  if (hex !== undefined) return `x'${hex}'`;
  return /^(-?\d+(\.\d+)?(e[+-]?\d+)?|b'[01]*')$/i.test(literal) ? literal : quoteLiteral(literal);
}

function parseText(value: string | undefined, { type }: Pick<Field, 'type'>): Json | undefined {
  if (value === undefined) return undefined;
  if (type !== 'array') return parseValue(value, type);
  const list = tryParseJson(value);
  return Array.isArray(list) ? list : undefined;
}

/** The spelling of a literal that model and catalog share. */
export function canonicalDefault(value: Default, field: Pick<Field, 'type' | 'scale' | 'native'>): Default {
  if (isExpression(value) || value === 'now') return value;
  switch (field.type) {
    case 'decimal':
      return roundDecimal(String(value), field.scale ?? 0);
    case 'float':
      // The catalog stores six digits.
      return Number(Math.fround(Number(value)).toPrecision(6));
    case 'binary':
      // The server fills it up with zeros.
      return /^binary\b/i.test(field.native ?? '') ? withoutTrailingZeros(String(value)) : value;
    default:
      return normalizeText(value, field.type);
  }
}

const withoutTrailingZeros = (base64: string): string =>
  Buffer.from(
    Buffer.from(base64, 'base64')
      .toString('hex')
      .replace(/(?:00)+$/, ''),
    'hex',
  ).toString('base64');

/** Rounded as the server rounds it, without trailing zeros. A number if it prints the same digits, otherwise a string. */
function roundDecimal(value: string, scale: number): Json {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(value) ?? [];
  const shift = Number(exponent) + scale;
  const digits = (whole + fraction).padEnd(whole.length + Math.max(0, shift), '0');
  const point = whole.length + shift;
  const truncated = point < 0 ? 0n : BigInt(digits.slice(0, point) || '0');
  const rounded = truncated + (point >= 0 && (digits[point] ?? '0') >= '5' ? 1n : 0n);
  const all = rounded.toString().padStart(scale + 1, '0');
  const rest = all.slice(all.length - scale).replace(/0+$/, '');
  const plain = `${rounded === 0n ? '' : sign}${scale === 0 ? all : all.slice(0, -scale)}${scale > 0 && rest !== '' ? `.${rest}` : ''}`;
  return String(Number(plain)) === plain ? Number(plain) : plain;
}
