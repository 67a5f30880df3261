import type { types } from 'cassandra-driver';
import { SvcError } from '../../../../core/errors.ts';
import { canonicalJson, type Json } from '../../../../core/json.ts';
import type { Field } from '../../../../core/schema/model.ts';
import type { DriverTypes } from '../connection/session.ts';

type FieldSpec = Omit<Field, 'name'>;

export interface EncodeContext {
  readonly types: DriverTypes;
  readonly now: Date;
}

/**
 * Encodes a literal for the driver. Throws `value_invalid` for values that the driver would silently truncate, wrap or
 * drop.
 */
export function encodeValue(value: Json, field: FieldSpec, context: EncodeContext): unknown {
  if (value === null) return null;
  const { types, now } = context;
  switch (field.type) {
    case 'bigint':
      return toBigint(value);
    case 'float':
      if (!Number.isFinite(Math.fround(value as number))) throw notStorable(value, 'a float of 32 bits');
      return value;
    case 'decimal':
      return types.BigDecimal.fromString(plainDecimal(value as string | number, field));
    case 'date':
      return types.LocalDate.fromString(value === 'now' ? now.toISOString().slice(0, 10) : (value as string));
    case 'time':
      return types.LocalTime.fromString(
        withSeconds(value === 'now' ? now.toISOString().slice(11, 23) : (value as string)),
      );
    case 'datetime':
    case 'timestamp':
      return value === 'now' ? now : parseTimestamp(value as string);
    case 'uuid':
      if (!UUID.test(String(value))) throw notStorable(value, 'a uuid');
      return types.Uuid.fromString(value as string);
    case 'json':
      return JSON.stringify(value);
    case 'binary':
    case 'blob':
      return decodeBase64(value as string, field);
    case 'array':
      return (value as readonly Json[]).map((item) => {
        if (item === null) throw notStorable(value, 'a list, which cannot contain null');
        return encodeValue(item, { type: field.items ?? 'string' }, context);
      });
    case 'string':
      if (field.length !== undefined && [...(value as string)].length > field.length)
        throw notStorable(value, `a string of at most ${field.length} characters`);
      return value;
    default:
      return value;
  }
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Digits only: BigInt('') would be 0, and a value out of range would wrap. */
function toBigint(value: Json): bigint {
  const text = String(value);
  if (!/^-?\d+$/.test(text) || BigInt.asIntN(64, BigInt(text)) !== BigInt(text)) throw notStorable(value, 'a bigint');
  return BigInt(text);
}

function notStorable(value: Json, what: string): SvcError {
  const text = JSON.stringify(value);
  return new SvcError(
    'value_invalid',
    `${text.length > 60 ? `${text.slice(0, 60)}…` : text} cannot be stored as ${what}.`,
  );
}

/** Without an exponent, which the driver misreads in large numbers. */
export function plainDecimal(value: string | number, { precision, scale }: FieldSpec): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(String(value)) ?? [];
  if (whole === '') throw notStorable(value, 'a decimal');
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
      throw notStorable(value, `a decimal of ${precision} digits, ${scale ?? 0} of them after the point`);
  }
  return `${sign}${integer}${rest === '' ? '' : `.${rest}`}`;
}

const withSeconds = (text: string): string => (text.length === 5 ? `${text}:00` : text);

/** A time without a zone is stored as UTC. */
function parseTimestamp(text: string): Date {
  const zoned = /(Z|[+-]\d\d:?\d\d)$/.test(text) ? text : `${text}Z`;
  const timestamp = new Date(zoned.replace(' ', 'T'));
  if (Number.isNaN(timestamp.getTime())) throw notStorable(text, 'a timestamp');
  return timestamp;
}

function decodeBase64(text: string, { length }: FieldSpec): Buffer {
  const bytes = Buffer.from(text, 'base64');
  if (length !== undefined && bytes.length > length) throw notStorable(text, `at most ${length} bytes`);
  return bytes;
}

export type Comparable = null | string | number | bigint | boolean | Decimal | readonly Comparable[];

/** Accepts a value of the driver or of `encodeValue`. */
export function toComparable(value: unknown, field: FieldSpec): Comparable {
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
      return (value as readonly unknown[]).map((item) => toComparable(item, { type: field.items ?? 'string' }));
    default:
      return value as Comparable;
  }
}

/** Canonical JSON; text that is not JSON is returned unchanged. */
function jsonKey(text: string): string {
  try {
    return canonicalJson(JSON.parse(text));
  } catch {
    return text;
  }
}

/** Negative, zero or positive. Compares strings by bytes, as Cassandra does. */
export function compareComparables(a: Comparable, b: Comparable): number {
  if (typeof a === 'string' && typeof b === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b));
  if (isDecimal(a) && isDecimal(b)) return compareDecimals(a, b);
  if (Array.isArray(a) && Array.isArray(b)) {
    const [one, other] = [a as readonly Comparable[], b as readonly Comparable[]];
    for (const [index, item] of one.entries()) {
      if (index >= other.length) return 1;
      const order = compareComparables(item, other[index] ?? null);
      if (order !== 0) return order;
    }
    return one.length - other.length;
  }
  return compareNumbers(a as number, b as number);
}

const isDecimal = (value: Comparable): value is Decimal =>
  typeof value === 'object' && value !== null && 'digits' in value;

const compareNumbers = <T extends number | bigint>(a: T, b: T): number => (a < b ? -1 : a > b ? 1 : 0);

/** An empty list equals null, because Cassandra does not distinguish them. */
export function equalComparables(a: Comparable, b: Comparable): boolean {
  const [one, other] = [Array.isArray(a) && a.length === 0 ? null : a, Array.isArray(b) && b.length === 0 ? null : b];
  if (one === null || other === null) return one === other;
  return compareComparables(one, other) === 0;
}

/** The value is `digits` × 10^-`scale`; the scale of 1E+30 is negative. */
export interface Decimal {
  readonly digits: bigint;
  readonly scale: number;
}

const MAX_PLACES = 1_000;

/** From the driver's decimal or varint. The driver's own toString is wrong for negative scales: "1." for 1E+30. */
export function decimalOf(value: unknown): Decimal {
  if (typeof value === 'bigint') return { digits: value, scale: 0 };
  const decimal = value as types.BigDecimal;
  const bytes = (decimal.constructor as typeof types.BigDecimal).toBuffer(decimal);
  const digits = BigInt.asIntN(8 * (bytes.length - 4), BigInt(`0x${bytes.toString('hex', 4)}`));
  return { digits, scale: bytes.readInt32BE(0) };
}

/** Without an exponent; undefined if the scale exceeds 1,000. */
export function decimalText({ digits, scale }: Decimal): string | undefined {
  if (Math.abs(scale) > MAX_PLACES) return undefined;
  const sign = digits < 0n ? '-' : '';
  const text = `${digits < 0n ? -digits : digits}`;
  if (scale <= 0) return digits === 0n ? '0' : `${sign}${text}${'0'.repeat(-scale)}`;
  const padded = text.padStart(scale + 1, '0');
  return `${sign}${padded.slice(0, -scale)}.${padded.slice(-scale)}`;
}

/** The digits before and after the point, without leading and trailing zeros. */
export function digitCounts({ digits, scale }: Decimal): { readonly before: number; readonly after: number } {
  if (digits === 0n) return { before: 0, after: 0 };
  const text = `${digits < 0n ? -digits : digits}`;
  const after = scale - (text.length - text.replace(/0+$/, '').length);
  return { before: Math.max(text.length - scale, 0), after: Math.max(after, 0) };
}

/** Negative, zero or positive. */
function compareDecimals(a: Decimal, b: Decimal): number {
  const [one, other] = [signOf(a), signOf(b)];
  if (one !== other || one === 0) return one - other;
  // Comparing magnitudes first avoids powers of ten for huge differences in scale.
  const [high, higher] = [magnitudeOf(a), magnitudeOf(b)];
  if (high !== higher) return (high < higher ? -1 : 1) * one;
  const scale = Math.max(a.scale, b.scale);
  const difference = a.digits * 10n ** BigInt(scale - a.scale) - b.digits * 10n ** BigInt(scale - b.scale);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

const signOf = ({ digits }: Decimal): number => (digits < 0n ? -1 : digits > 0n ? 1 : 0);

const magnitudeOf = ({ digits, scale }: Decimal): number => `${digits < 0n ? -digits : digits}`.length - scale;
