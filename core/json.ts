import { SvcError } from './errors.ts';

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/**
 * RFC 8785 text of a value: keys in UTF-16 order, numbers as ECMAScript prints them, absent for `undefined`.
 * What JSON would lose (bigint, Date, NaN, functions) is refused with its path.
 */
export function canonicalJson(value: unknown): string {
  return written(value) ?? refuseAt(value, '$');
}

/** Undefined where the value or a part of it is no JSON: the path is looked for only then. */
function written(value: unknown): string | undefined {
  if (isScalar(value)) return JSON.stringify(value);
  const parts: string[] = [];
  if (Array.isArray(value)) {
    for (const item of value) {
      const text = written(item);
      if (text === undefined) return undefined;
      parts.push(text);
    }
    return `[${parts.join(',')}]`;
  }
  if (!isPlainObject(value)) return undefined;
  for (const key of keysOf(value)) {
    const text = written(value[key]);
    if (text === undefined) return undefined;
    parts.push(`${JSON.stringify(key)}:${text}`);
  }
  return `{${parts.join(',')}}`;
}

function refuseAt(value: unknown, path: string): never {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) if (written(item) === undefined) refuseAt(item, `${path}[${index}]`);
  }
  if (isPlainObject(value)) {
    for (const key of keysOf(value)) if (written(value[key]) === undefined) refuseAt(value[key], `${path}.${key}`);
  }
  throw new SvcError('value_invalid', `The value at ${path} cannot be written as JSON without loss.`, {
    why: `It is ${typeof value === 'object' ? `an instance of ${value?.constructor.name}` : `${String(value)} (${typeof value})`}.`,
    next: ['Write it as a string, a finite number, a boolean, null, an array or a plain object.'],
  });
}

function isScalar(value: unknown): value is string | number | boolean | null {
  if (typeof value === 'number') return Number.isFinite(value);
  return value === null || typeof value === 'string' || typeof value === 'boolean';
}

function keysOf(value: Readonly<Record<string, unknown>>): string[] {
  return Object.keys(value)
    .filter((key) => value[key] !== undefined)
    .sort();
}

export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null;
}

const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?/gi;

/** A number in a JSON text that `JSON.parse` makes another one of, as it keeps some sixteen digits. */
export function changedNumber(json: string): string | undefined {
  for (const [token] of json.matchAll(TOKENS)) {
    if (!token.startsWith('"') && plainNumber(token) !== plainNumber(String(Number(token)))) return token;
  }
  return undefined;
}

/** Digits and a power of ten: the same text for the same number, however it is written. */
function plainNumber(number: string): string {
  const [, sign = '', whole = '', fraction = '', power = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(number) ?? [];
  const digits = `${whole}${fraction}`.replace(/^0+/, '');
  let end = digits.length;
  while (digits[end - 1] === '0') end -= 1;
  return end === 0 ? '0' : `${sign}${digits.slice(0, end)}e${Number(power) - fraction.length + digits.length - end}`;
}
