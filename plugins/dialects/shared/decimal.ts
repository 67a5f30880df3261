/** Without exponent, leading or trailing zeros, or a sign of zero; undefined for an exponent beyond 400. */
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

/** Negative, zero or positive. Compares all digits, even those beyond the precision of a double. */
export function compareDecimals(a: string, b: string): number {
  const [one, other] = [plainDecimal(a), plainDecimal(b)];
  // Beyond an exponent of 400 the precision of a double is enough.
  if (one === undefined || other === undefined) return Number(a) - Number(b);
  if (one === other) return 0;
  const negative = one.startsWith('-');
  if (negative !== other.startsWith('-')) return negative ? -1 : 1;
  const larger = compareMagnitudes(one, other);
  return negative ? -larger : larger;
}

function compareMagnitudes(one: string, other: string): number {
  const [[before = '', after = ''], [before2 = '', after2 = '']] = [one, other].map((text) =>
    text.replace('-', '').split('.'),
  ) as [string[], string[]];
  if (before.length !== before2.length) return before.length - before2.length;
  const [left, right] = [before + after, before2 + after2];
  return left < right ? -1 : 1;
}
