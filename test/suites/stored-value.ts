import { isDeepStrictEqual } from 'node:util';
import { type Json, tryParseJson } from '../../core/json.ts';
import type { Field } from '../../core/schema/model.ts';

const MINUTE_MS = 60_000;

/** Whether a value that a driver returned is one that was written as in a `default`. */
export function isStoredAs(field: Pick<Field, 'type' | 'scale'>, value: unknown, expected: Json): boolean {
  if (value === null || value === undefined) return false;
  switch (field.type) {
    case 'integer':
    case 'smallint':
    case 'bigint':
      return isInteger(value) && BigInt(String(value)) === BigInt(String(expected));
    case 'float':
    case 'double':
      return Math.abs(Number(String(value)) - Number(expected)) <= Math.abs(Number(expected)) * 1e-6;
    case 'decimal':
      return scaled(String(value), field.scale) === scaled(String(expected), field.scale);
    case 'boolean':
      return /^(true|t|1)$/.test(String(value)) === expected;
    case 'uuid':
      return String(value).toLowerCase() === String(expected).toLowerCase();
    case 'string':
    case 'text':
    case 'enum':
      return String(value) === String(expected);
    case 'date':
    case 'time':
    case 'datetime':
    case 'timestamp':
      return textsOfTime(value).some((text) => text.replace('T', ' ').startsWith(String(expected).replace('T', ' ')));
    case 'json':
    case 'array':
      return isDeepStrictEqual(
        plain(typeof value === 'string' ? (tryParseJson(value) ?? value) : value),
        plain(expected),
      );
    case 'binary':
    case 'blob':
      return value instanceof Uint8Array && Buffer.from(value).toString('base64') === expected;
  }
}

const isInteger = (value: unknown): boolean => /^[+-]?\d+$/.test(String(value));

/** All digits of a decimal, without its trailing zeros; rounded numbers remain different. */
function scaled(text: string, scale = 0): string {
  const [whole = '', fraction = ''] = text.split('.');
  return `${whole}.${fraction.padEnd(scale, '0')}`;
}

/** Drivers return JSON as values with classes of their own. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

/** Of milliseconds since 1970, or of a Date. A driver that returns a Date of a value without a zone has read it as UTC or as local time. */
export function textsOfTime(value: unknown): string[] {
  if (/^-?\d{9,}$/.test(String(value))) return textsOfTime(new Date(Number(value)));
  if (!(value instanceof Date)) return [String(value)];
  if (Number.isNaN(value.getTime())) return [];
  const local = new Date(value.getTime() - value.getTimezoneOffset() * MINUTE_MS);
  return [value, local].map((date) => date.toISOString());
}
