import { isSvcError } from '../../../../core/errors.ts';
import { type Json, tryParseJson } from '../../../../core/json.ts';
import { isValidDateTime } from '../../../../core/schema/literal.ts';
import type { Field, FieldType } from '../../../../core/schema/model.ts';
import { TEXT_TYPES } from '../../shared/text-types.ts';
import { decimalOf, decimalText, type EncodeContext, encodeValue, plainDecimal } from './value.ts';

export type ConversionResult = { readonly value: unknown } | { readonly problem: string };

type FieldSpec = Omit<Field, 'name'>;

const BITS: Readonly<Partial<Record<FieldType, number>>> = { smallint: 16, integer: 32, bigint: 64 };
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?$/;
const DATE_PATTERN = '\\d{4}-\\d\\d-\\d\\d';
const TIME_PATTERN = '\\d\\d:\\d\\d(:\\d\\d(\\.\\d{1,3})?)?';
const PATTERNS: Readonly<Partial<Record<FieldType, RegExp>>> = {
  date: new RegExp(`^${DATE_PATTERN}$`),
  time: /^\d\d:\d\d(:\d\d(\.\d{1,9})?)?$/,
  datetime: new RegExp(`^${DATE_PATTERN}([ T]${TIME_PATTERN})?$`),
  timestamp: new RegExp(`^${DATE_PATTERN}([ T]${TIME_PATTERN}(Z|[+-]\\d\\d:?\\d\\d)?)?$`),
  uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i,
};

/** Converts a stored value to another field, or returns the reason why that would lose data. */
export function convertValue(value: unknown, from: FieldSpec, to: FieldSpec, context: EncodeContext): ConversionResult {
  if (value === null || value === undefined) return to.required ? { problem: 'It has no value' } : { value: null };
  if (Buffer.isBuffer(value)) return convertBytes(value, to);
  if (Array.isArray(value) && to.type === 'array') return convertList(value, from, to, context);
  const json = from.type === 'json' && STORED_AS_TEXT.has(to.type) ? (value as string) : toJson(value, from);
  // Kept unchanged: parsing could lose digits.
  if (to.type === 'json' && typeof json === 'string' && tryParseJson(json) !== undefined) return { value: json };
  const literal = json === undefined ? undefined : toLiteral(json, to);
  // A text such as 5.00 would come back as 5, and 1 as true.
  const isRespelled = TEXT_TYPES.has(from.type) && EXACT_TYPES.has(to.type) && String(literal) !== json;
  if (literal === undefined || isRespelled) return { problem: `${quoted(json)} is not a valid ${to.type}` };
  try {
    return { value: encodeValue(literal, to, context) };
  } catch (error) {
    return {
      problem: isSvcError(error) ? error.message.replace(/\.$/, '') : `${quoted(json)} is not a valid ${to.type}`,
    };
  }
}

/** Types whose values have one text each. */
const EXACT_TYPES: ReadonlySet<FieldType> = new Set(['smallint', 'integer', 'bigint', 'boolean']);

/** Types that are stored as the same text as `json`. */
const STORED_AS_TEXT: ReadonlySet<FieldType> = new Set(['json', 'string', 'text']);

function quoted(json: Json | undefined): string {
  const text = JSON.stringify(json) ?? 'It';
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

function convertBytes(value: Buffer, { type, length }: FieldSpec): ConversionResult {
  if (type !== 'binary' && type !== 'blob') return { problem: 'It is bytes' };
  return length !== undefined && value.length > length ? { problem: `It is longer than ${length} bytes` } : { value };
}

function convertList(
  items: readonly unknown[],
  from: FieldSpec,
  to: FieldSpec,
  context: EncodeContext,
): ConversionResult {
  const values: unknown[] = [];
  for (const item of items) {
    const result = convertValue(item, { type: from.items ?? 'string' }, { type: to.items ?? 'string' }, context);
    if ('problem' in result) return { problem: `In the list: ${result.problem}` };
    values.push(result.value);
  }
  return { value: values };
}

/** A value from the driver as JSON; numbers that JSON cannot represent exactly become text. */
function toJson(value: unknown, { type, items }: FieldSpec): Json | undefined {
  switch (type) {
    case 'integer':
    case 'smallint':
    case 'boolean':
    case 'string':
    case 'text':
    case 'enum':
      return value as Json;
    case 'float':
    case 'double':
      return Number.isFinite(value) ? (value as number) : undefined;
    case 'decimal':
      return decimalText(decimalOf(value));
    case 'json': {
      const json = tryParseJson(value as string);
      // The text keeps digits that a double would lose.
      return typeof json === 'number' && !/e/i.test(value as string) ? (value as string).trim() : json;
    }
    case 'date':
      return ifMatching(String(value), type);
    case 'datetime':
      return ifMatching(toIso8601(value as Date).slice(0, -1), type);
    case 'timestamp':
      return ifMatching(toIso8601(value as Date), type);
    case 'array':
      return (value as readonly unknown[]).map((item) => toJson(item, { type: items ?? 'string' }) ?? null);
    default:
      return String(value);
  }
}

/** Empty for a timestamp outside the range of Date. */
const toIso8601 = (date: Date): string => (Number.isNaN(date.getTime()) ? '' : date.toISOString());

/** Rejects years with more than four digits, which cannot be parsed again. */
const ifMatching = (text: string, type: FieldType): string | undefined =>
  PATTERNS[type]?.test(text) ? text : undefined;

/** The literal to encode for the field; undefined if the conversion would lose data. */
function toLiteral(json: Json, to: FieldSpec): Json | undefined {
  const text = typeof json === 'string' || typeof json === 'number' ? String(json) : undefined;
  switch (to.type) {
    case 'smallint':
    case 'integer':
    case 'bigint':
      if (typeof json === 'boolean') return json ? 1 : 0;
      return text === undefined ? undefined : toInteger(text, to.type);
    case 'float':
    case 'double':
      return text === undefined ? undefined : toFloat(text, to.type);
    case 'decimal':
      return text !== undefined && (typeof json === 'number' || NUMBER.test(text)) ? text : undefined;
    case 'string':
    case 'text':
      return typeof json === 'string' ? json : JSON.stringify(json);
    case 'enum':
      return text !== undefined && to.enumValues?.includes(text) ? text : undefined;
    case 'boolean':
      if (json === true || text === 'true' || text === '1') return true;
      return json === false || text === 'false' || text === '0' ? false : undefined;
    case 'json':
      return typeof json === 'string' ? undefined : json;
    case 'date':
    case 'time':
    case 'datetime':
    case 'timestamp':
      return typeof json === 'string' && PATTERNS[to.type]?.test(json) && isValidDateTime(json) ? json : undefined;
    case 'uuid':
      return typeof json === 'string' && PATTERNS.uuid?.test(json) ? json : undefined;
    default:
      return undefined;
  }
}

function toInteger(text: string, type: FieldType): Json | undefined {
  const digits = NUMBER.test(text) ? text.replace(/\.0+$/, '') : '.';
  if (digits.includes('.') || BigInt.asIntN(BITS[type] ?? 64, BigInt(digits)) !== BigInt(digits)) return undefined;
  return type === 'bigint' ? digits : Number(digits);
}

/** Undefined if digits would be lost: a double keeps up to 17, a float 7. */
function toFloat(text: string, type: FieldType): Json | undefined {
  const number = Number(text);
  if (!Number.isFinite(number) || !/^-?\d/.test(text)) return undefined;
  const reparsed = type === 'float' ? Number(Math.fround(number).toPrecision(7)) : number;
  const isSame = /e/i.test(text) || plainDigits(plainDecimal(reparsed, { type: 'decimal' })) === plainDigits(text);
  return isSame || (type === 'float' && Math.fround(number) === number) ? number : undefined;
}

const plainDigits = (text: string): string => (text.includes('.') ? text.replace(/\.?0+$/, '') : text);
