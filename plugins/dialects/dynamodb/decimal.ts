import { SvcError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json.ts';

/** Without exponent, sign of zero and zeros that say nothing; undefined beyond what anybody writes. */
export function plainDecimal(text: string): string | undefined {
  const [, sign = '', before = '', after = '', exponent = '0'] =
    /^([+-]?)(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  const shift = Number(exponent);
  if (!Number.isFinite(shift) || Math.abs(shift) > 400) return undefined;
  const digits = `${before}${after}`;
  const point = before.length + shift;
  const padded = digits.padEnd(Math.max(point, digits.length), '0').padStart(digits.length - Math.min(point, 0), '0');
  const at = Math.max(point, 0);
  const whole = padded.slice(0, at).replace(/^0+/, '') || '0';
  const rest = padded.slice(at).replace(/0+$/, '');
  const unsigned = rest === '' ? whole : `${whole}.${rest}`;
  return sign === '-' && unsigned !== '0' ? `-${unsigned}` : unsigned;
}

/** DynamoDB holds 38 digits, from 1e-130 to less than 1e126. */
export function isStorable(number: string): boolean {
  const decimal = plainDecimal(number);
  if (decimal === undefined) return false;
  const digits = decimal.replace(/[-.]/g, '').replace(/^0+/, '').replace(/0+$/, '');
  const size = Math.abs(Number(decimal));
  return digits.length <= 38 && (size === 0 ? digits === '' : size >= 1e-130 && size < 1e126);
}

/** A number as it is sent; -0 is 0. Throws `value_invalid` for one that DynamoDB would refuse. */
export function digitsOf(value: Json): string {
  const digits = Object.is(value, -0) ? '0' : String(value);
  if (isStorable(digits)) return digits;
  throw new SvcError('value_invalid', `DynamoDB cannot hold the number ${digits.slice(0, 60)}.`, {
    why: 'A number has at most 38 digits, and is from 1e-130 to less than 1e126.',
    state: 'Nothing was changed.',
    next: ['Give another number, or make the field a string.'],
  });
}

/** Less than nothing, nothing or more, as numbers and not as texts; digits that no double can hold count too. */
export function compareDecimals(a: string, b: string): number {
  const [one, other] = [plainDecimal(a), plainDecimal(b)];
  // Beyond what is written anywhere a double tells them apart.
  if (one === undefined || other === undefined) return Number(a) - Number(b);
  if (one === other) return 0;
  const negative = one.startsWith('-');
  if (negative !== other.startsWith('-')) return negative ? -1 : 1;
  const larger = magnitude(one, other);
  return negative ? -larger : larger;
}

function magnitude(one: string, other: string): number {
  const [[before = '', after = ''], [before2 = '', after2 = '']] = [one, other].map((text) =>
    text.replace('-', '').split('.'),
  ) as [string[], string[]];
  if (before.length !== before2.length) return before.length - before2.length;
  const [left, right] = [before + after, before2 + after2];
  return left < right ? -1 : 1;
}
