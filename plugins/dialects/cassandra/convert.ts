import { isSvcError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json.ts';
import { isInCalendar } from '../../../core/schema/default.ts';
import type { Field } from '../../../core/schema/model.ts';
import type { FieldType } from '../../../core/schema/types.ts';
import { decimalOf, decimalText } from './decimal.ts';
import { encode, plainDecimal, type Writing } from './value.ts';

export type Converted = { readonly value: unknown } | { readonly problem: string };

type Typed = Omit<Field, 'name'>;

const BITS: Readonly<Partial<Record<FieldType, number>>> = { smallint: 16, integer: 32, bigint: 64 };
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?$/;
const DAY = '\\d{4}-\\d\\d-\\d\\d';
const CLOCK = '\\d\\d:\\d\\d(:\\d\\d(\\.\\d{1,3})?)?';
const PATTERNS: Readonly<Partial<Record<FieldType, RegExp>>> = {
  date: new RegExp(`^${DAY}$`),
  time: /^\d\d:\d\d(:\d\d(\.\d{1,9})?)?$/,
  datetime: new RegExp(`^${DAY}([ T]${CLOCK})?$`),
  timestamp: new RegExp(`^${DAY}([ T]${CLOCK}(Z|[+-]\\d\\d:?\\d\\d)?)?$`),
  uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i,
};

/** A value of one field as another one wants it, or why that would lose something. */
export function converted(value: unknown, from: Typed, to: Typed, writing: Writing): Converted {
  if (value === null || value === undefined) return to.required ? { problem: 'It has no value' } : { value: null };
  if (Buffer.isBuffer(value)) return bytes(value, to);
  if (Array.isArray(value) && to.type === 'array') return list(value, from, to, writing);
  const said = from.type === 'json' && WRITTEN.has(to.type) ? (value as string) : saying(value, from);
  // Stays as it is written: who reads it loses digits.
  if (to.type === 'json' && typeof said === 'string' && parsed(said) !== undefined) return { value: said };
  const fit = said === undefined ? undefined : literal(said, to);
  if (fit === undefined) return { problem: `${told(said)} is no ${to.type}` };
  try {
    return { value: encode(fit, to, writing) };
  } catch (error) {
    return { problem: isSvcError(error) ? error.message.replace(/\.$/, '') : `${told(said)} is no ${to.type}` };
  }
}

/** Kept as the text that JSON is kept as. */
const WRITTEN: ReadonlySet<FieldType> = new Set(['json', 'string', 'text']);

function told(said: Json | undefined): string {
  const text = JSON.stringify(said) ?? 'It';
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

function bytes(value: Buffer, { type, length }: Typed): Converted {
  if (type !== 'binary' && type !== 'blob') return { problem: 'It is made of bytes' };
  return length !== undefined && value.length > length ? { problem: `It is longer than ${length} bytes` } : { value };
}

function list(items: readonly unknown[], from: Typed, to: Typed, writing: Writing): Converted {
  const values: unknown[] = [];
  for (const item of items) {
    const one = converted(item, { type: from.items ?? 'string' }, { type: to.items ?? 'string' }, writing);
    if ('problem' in one) return { problem: `Of a list: ${one.problem}` };
    values.push(one.value);
  }
  return { value: values };
}

/** What the driver gave, in JSON; numbers that JSON has no exact word for are text. */
function saying(value: unknown, { type, items }: Typed): Json | undefined {
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
      const said = parsed(value as string);
      // A number has the digits that are written, which a double may not have.
      return typeof said === 'number' && !/e/i.test(value as string) ? (value as string).trim() : said;
    }
    case 'date':
      return legible(String(value), type);
    case 'datetime':
      return legible(isoOf(value as Date).slice(0, -1), type);
    case 'timestamp':
      return legible(isoOf(value as Date), type);
    case 'array':
      return (value as readonly unknown[]).map((item) => saying(item, { type: items ?? 'string' }) ?? null);
    default:
      return String(value);
  }
}

/** A column goes further than a Date, which then has no text. */
const isoOf = (date: Date): string => (Number.isNaN(date.getTime()) ? '' : date.toISOString());

/** Years of four digits: no way back reads others. */
const legible = (text: string, type: FieldType): string | undefined => (PATTERNS[type]?.test(text) ? text : undefined);

/** The literal that stands for it in a field; undefined where none does without a loss. */
function literal(said: Json, to: Typed): Json | undefined {
  const text = typeof said === 'string' || typeof said === 'number' ? String(said) : undefined;
  switch (to.type) {
    case 'smallint':
    case 'integer':
    case 'bigint':
      if (typeof said === 'boolean') return said ? 1 : 0;
      return text === undefined ? undefined : whole(text, to.type);
    case 'float':
    case 'double':
      return text === undefined ? undefined : floating(text, to.type);
    case 'decimal':
      return text !== undefined && (typeof said === 'number' || NUMBER.test(text)) ? text : undefined;
    case 'string':
    case 'text':
      return typeof said === 'string' ? said : JSON.stringify(said);
    case 'enum':
      return text !== undefined && to.enumValues?.includes(text) ? text : undefined;
    case 'boolean':
      if (said === true || text === 'true' || text === '1') return true;
      return said === false || text === 'false' || text === '0' ? false : undefined;
    case 'json':
      return typeof said === 'string' ? undefined : said;
    case 'date':
    case 'time':
    case 'datetime':
    case 'timestamp':
      return typeof said === 'string' && PATTERNS[to.type]?.test(said) && isInCalendar(said) ? said : undefined;
    case 'uuid':
      return typeof said === 'string' && PATTERNS.uuid?.test(said) ? said : undefined;
    default:
      return undefined;
  }
}

function whole(text: string, type: FieldType): Json | undefined {
  const digits = NUMBER.test(text) ? text.replace(/\.0+$/, '') : '.';
  if (digits.includes('.') || BigInt.asIntN(BITS[type] ?? 64, BigInt(digits)) !== BigInt(digits)) return undefined;
  return type === 'bigint' ? digits : Number(digits);
}

/** The digits come back: 17 of a double at most, 7 of a float. */
function floating(text: string, type: FieldType): Json | undefined {
  const number = Number(text);
  if (!Number.isFinite(number) || !/^-?\d/.test(text)) return undefined;
  const back = type === 'float' ? Number(Math.fround(number).toPrecision(7)) : number;
  const isSame = /e/i.test(text) || plainDigits(plainDecimal(back, { type: 'decimal' })) === plainDigits(text);
  return isSame || (type === 'float' && Math.fround(number) === number) ? number : undefined;
}

const plainDigits = (text: string): string => (text.includes('.') ? text.replace(/\.?0+$/, '') : text);

function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}
