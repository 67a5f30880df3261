import { SvcError } from '../../../core/errors.ts';
import { canonicalJson, type Json } from '../../../core/json.ts';
import type { Field } from '../../../core/schema/model.ts';
import { compareDecimals, type Decimal, decimalOf } from './decimal.ts';
import type { Driven } from './session.ts';

type Typed = Omit<Field, 'name'>;

/** What stands for `'now'`: the same moment for every row. */
export interface Writing {
  readonly types: Driven;
  readonly moment: Date;
}

/**
 * A literal as the driver takes it. The driver itself cuts, wraps or empties what does not fit and says nothing, so
 * whatever it would is refused here. Throws `value_invalid`.
 */
export function encode(value: Json, field: Typed, writing: Writing): unknown {
  if (value === null) return null;
  const { types, moment } = writing;
  switch (field.type) {
    case 'bigint':
      return bigintOf(value);
    case 'float':
      if (!Number.isFinite(Math.fround(value as number))) throw unfit(value, 'a float of 32 bits');
      return value;
    case 'decimal':
      return types.BigDecimal.fromString(plainDecimal(value as string | number, field));
    case 'date':
      return types.LocalDate.fromString(value === 'now' ? moment.toISOString().slice(0, 10) : (value as string));
    case 'time':
      return types.LocalTime.fromString(
        withSeconds(value === 'now' ? moment.toISOString().slice(11, 23) : (value as string)),
      );
    case 'datetime':
    case 'timestamp':
      return value === 'now' ? moment : momentOf(value as string);
    case 'uuid':
      if (!UUID.test(String(value))) throw unfit(value, 'a uuid');
      return types.Uuid.fromString(value as string);
    case 'json':
      return JSON.stringify(value);
    case 'binary':
    case 'blob':
      return bytesOf(value as string, field);
    case 'array':
      return (value as readonly Json[]).map((item) => {
        if (item === null) throw unfit(value, 'a list, which holds no null');
        return encode(item, { type: field.items ?? 'string' }, writing);
      });
    case 'string':
      if (field.length !== undefined && [...(value as string)].length > field.length)
        throw unfit(value, `a string of at most ${field.length} characters`);
      return value;
    default:
      return value;
  }
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Nothing but digits: an empty text is no 0, and what is out of range would wrap. */
function bigintOf(value: Json): bigint {
  const text = String(value);
  if (!/^-?\d+$/.test(text) || BigInt.asIntN(64, BigInt(text)) !== BigInt(text)) throw unfit(value, 'a bigint');
  return BigInt(text);
}

function unfit(value: Json, what: string): SvcError {
  const said = JSON.stringify(value);
  return new SvcError(
    'value_invalid',
    `${said.length > 60 ? `${said.slice(0, 60)}…` : said} cannot be stored as ${what}.`,
  );
}

/** Digits and a point alone: the driver takes the exponent of a larger number for something else. */
export function plainDecimal(value: string | number, { precision, scale }: Typed): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(String(value)) ?? [];
  if (whole === '') throw unfit(value, 'a decimal');
  const shift = Number(exponent);
  const digits = whole + fraction;
  const point = whole.length + shift;
  const padded =
    point > digits.length
      ? digits.padEnd(point, '0')
      : point < 0
        ? digits.padStart(digits.length - point, '0')
        : digits;
  const at = Math.max(point, 0);
  const integer = padded.slice(0, at).replace(/^0+(?=\d)/, '') || '0';
  const rest = padded.slice(at);
  if (precision !== undefined) {
    const places = rest.replace(/0+$/, '').length;
    if (places > (scale ?? 0) || integer.replace(/^0$/, '').length > precision - (scale ?? 0))
      throw unfit(value, `a decimal of ${precision} digits, ${scale ?? 0} of them behind the point`);
  }
  return `${sign}${integer}${rest === '' ? '' : `.${rest}`}`;
}

const withSeconds = (text: string): string => (text.length === 5 ? `${text}:00` : text);

/** A wall-clock time is kept as if its clock showed UTC. */
function momentOf(text: string): Date {
  const zoned = /(Z|[+-]\d\d:?\d\d)$/.test(text) ? text : `${text}Z`;
  const moment = new Date(zoned.replace(' ', 'T'));
  if (Number.isNaN(moment.getTime())) throw unfit(text, 'a moment');
  return moment;
}

function bytesOf(text: string, { length }: Typed): Buffer {
  const bytes = Buffer.from(text, 'base64');
  if (length !== undefined && bytes.length > length) throw unfit(text, `at most ${length} bytes`);
  return bytes;
}

/** A value in a form that compares; null for none. */
export type Plain = null | string | number | bigint | boolean | Decimal | readonly Plain[];

/** What the driver gave, or what `encode` made for it. */
export function plain(value: unknown, field: Typed): Plain {
  if (value === null || value === undefined) return null;
  switch (field.type) {
    case 'decimal':
      return decimalOf(value);
    case 'date':
    case 'uuid':
      return String(value);
    case 'time':
      return BigInt(String((value as { getTotalNanoseconds(): unknown }).getTotalNanoseconds()));
    case 'datetime':
    case 'timestamp':
      return (value as Date).getTime();
    case 'bigint':
      return BigInt(value as bigint);
    case 'float':
      return Math.fround(value as number);
    case 'json':
      return jsonKey(value as string);
    case 'binary':
    case 'blob':
      return (value as Buffer).toString('hex');
    case 'array':
      return (value as readonly unknown[]).map((item) => plain(item, { type: field.items ?? 'string' }));
    default:
      return value as Plain;
  }
}

/** Text that is no JSON is a value of its own. */
function jsonKey(text: string): string {
  try {
    return canonicalJson(JSON.parse(text));
  } catch {
    return text;
  }
}

/** Negative, zero or positive; text by its bytes, as the engine orders it. */
export function comparePlain(a: Plain, b: Plain): number {
  if (typeof a === 'string' && typeof b === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b));
  if (isDecimal(a) && isDecimal(b)) return compareDecimals(a, b);
  if (Array.isArray(a) && Array.isArray(b)) {
    const [one, other] = [a as readonly Plain[], b as readonly Plain[]];
    for (const [index, item] of one.entries()) {
      if (index >= other.length) return 1;
      const order = comparePlain(item, other[index] ?? null);
      if (order !== 0) return order;
    }
    return one.length - other.length;
  }
  return sign(a as number, b as number);
}

const isDecimal = (value: Plain): value is Decimal => typeof value === 'object' && value !== null && 'digits' in value;

const sign = <T extends number | bigint>(a: T, b: T): number => (a < b ? -1 : a > b ? 1 : 0);

/** An empty list is none: the engine keeps no other. */
export function equalPlain(a: Plain, b: Plain): boolean {
  const [one, other] = [Array.isArray(a) && a.length === 0 ? null : a, Array.isArray(b) && b.length === 0 ? null : b];
  if (one === null || other === null) return one === other;
  return comparePlain(one, other) === 0;
}
