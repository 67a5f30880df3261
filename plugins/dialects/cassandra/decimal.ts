import type { types } from 'cassandra-driver';

/** `digits` times ten to the power of minus `scale`, which is negative in 1E+30. */
export interface Decimal {
  readonly digits: bigint;
  readonly scale: number;
}

/** Decimals beyond are not written out. */
const MOST_PLACES = 1_000;

/** What the driver gave for a decimal or a varint. Its own text of a decimal knows no negative scale: it says "1." of 1E+30. */
export function decimalOf(value: unknown): Decimal {
  if (typeof value === 'bigint') return { digits: value, scale: 0 };
  const decimal = value as types.BigDecimal;
  const bytes = (decimal.constructor as typeof types.BigDecimal).toBuffer(decimal);
  const digits = BigInt.asIntN(8 * (bytes.length - 4), BigInt(`0x${bytes.toString('hex', 4)}`));
  return { digits, scale: bytes.readInt32BE(0) };
}

/** Digits and a point, every place behind it; undefined where nobody would write them. */
export function decimalText({ digits, scale }: Decimal): string | undefined {
  if (Math.abs(scale) > MOST_PLACES) return undefined;
  const sign = digits < 0n ? '-' : '';
  const text = `${digits < 0n ? -digits : digits}`;
  if (scale <= 0) return digits === 0n ? '0' : `${sign}${text}${'0'.repeat(-scale)}`;
  const padded = text.padStart(scale + 1, '0');
  return `${sign}${padded.slice(0, -scale)}.${padded.slice(-scale)}`;
}

/** Digits before and behind the point, without zeros that say nothing. */
export function placesOf({ digits, scale }: Decimal): { readonly before: number; readonly behind: number } {
  if (digits === 0n) return { before: 0, behind: 0 };
  const text = `${digits < 0n ? -digits : digits}`;
  const behind = scale - (text.length - text.replace(/0+$/, '').length);
  return { before: Math.max(text.length - scale, 0), behind: Math.max(behind, 0) };
}

/** Negative, zero or positive. */
export function compareDecimals(a: Decimal, b: Decimal): number {
  const [one, other] = [signOf(a), signOf(b)];
  if (one !== other || one === 0) return one - other;
  // Where the first digits stand tells most of them apart, and keeps the zeros that are written out few.
  const [high, higher] = [highest(a), highest(b)];
  if (high !== higher) return (high < higher ? -1 : 1) * one;
  const scale = Math.max(a.scale, b.scale);
  const difference = a.digits * 10n ** BigInt(scale - a.scale) - b.digits * 10n ** BigInt(scale - b.scale);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

const signOf = ({ digits }: Decimal): number => (digits < 0n ? -1 : digits > 0n ? 1 : 0);

const highest = ({ digits, scale }: Decimal): number => `${digits < 0n ? -digits : digits}`.length - scale;
