import { SvcError } from './errors.ts';

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/**
 * RFC 8785 text of a value: keys in UTF-16 order, numbers as ECMAScript prints them, absent for `undefined`.
 * What JSON would lose (bigint, Date, NaN, functions) is refused with its path.
 */
export function canonicalJson(value: unknown, path = '$'): string {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return JSON.stringify(value);
  if (typeof value === 'number' && Number.isFinite(value)) return JSON.stringify(value);
  if (Array.isArray(value))
    return `[${value.map((item, index) => canonicalJson(item, `${path}[${index}]`)).join(',')}]`;
  if (isPlainObject(value)) {
    const keys = Object.keys(value)
      .filter((key) => value[key] !== undefined)
      .sort();
    return `{${keys.map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key], `${path}.${key}`)}`).join(',')}}`;
  }
  throw new SvcError('value_invalid', `The value at ${path} cannot be written as JSON without loss.`, {
    why: `It is ${typeof value === 'object' ? `an instance of ${value?.constructor.name}` : `${String(value)} (${typeof value})`}.`,
    next: ['Write it as a string, a finite number, a boolean, null, an array or a plain object.'],
  });
}

export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null;
}
