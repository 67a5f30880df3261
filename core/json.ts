import { hash } from 'node:crypto';
import { SvcError } from './errors.ts';

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** Undefined if the text is not JSON. */
export function tryParseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

/**
 * Reads a JSON text, or returns why reading it would change what was sent: bytes that are not UTF-8, a key that occurs
 * twice in one object, or a number that a double cannot represent.
 */
export function readExactJson(body: string | Uint8Array): { readonly value: Json } | { readonly problem: string } {
  const text = typeof body === 'string' ? body : decodeUtf8(body);
  if (text === undefined) return { problem: 'It is not UTF-8.' };
  const value = tryParseJson(text);
  if (value === undefined) return { problem: 'It is not JSON.' };
  const key = duplicateKey(text);
  if (key !== undefined) return { problem: `The key ${JSON.stringify(key)} occurs twice in one object.` };
  const number = lossyNumber(text);
  if (number === undefined) return { value };
  return {
    problem: `The number ${number} has more digits than JavaScript can represent: it would become ${Number(number)}.`,
  };
}

/** Undefined if the bytes are not UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/**
 * A value as JSON in the canonical form of RFC 8785: keys in UTF-16 order, numbers as ECMAScript prints them, `undefined`
 * properties omitted. Throws `value_invalid` with the path of a value that JSON cannot represent (bigint, Date, NaN).
 */
export function canonicalJson(value: unknown): string {
  return serialize(value) ?? throwNotJson(value, '$');
}

/** The SHA-256 of a value's canonical JSON, as base64url. */
export function jsonDigest(value: unknown): string {
  return hash('sha256', canonicalJson(value), 'base64url');
}

/** Returns undefined if any part is not JSON. Does not track the path, which keeps the common case fast. */
function serialize(value: unknown): string | undefined {
  if (typeof value === 'string') return quote(value);
  if (isScalar(value)) return JSON.stringify(value);
  let content = '';
  if (Array.isArray(value)) {
    for (const item of value) {
      const text = serialize(item);
      if (text === undefined) return undefined;
      content += content === '' ? text : `,${text}`;
    }
    return `[${content}]`;
  }
  if (!isPlainObject(value)) return undefined;
  for (const key of Object.keys(value).sort()) {
    const member = value[key];
    if (member === undefined) continue;
    const text = serialize(member);
    if (text === undefined) return undefined;
    content += `${content === '' ? '' : ','}${quote(key)}:${text}`;
  }
  return `{${content}}`;
}

/** Printable ASCII without a quote or a backslash: most texts, for which this is faster than JSON.stringify. */
const UNESCAPED = /^[ !#-[\]-~]*$/;

const quote = (text: string): string => (UNESCAPED.test(text) ? `"${text}"` : JSON.stringify(text));

function throwNotJson(value: unknown, path: string): never {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries())
      if (serialize(item) === undefined) throwNotJson(item, `${path}[${index}]`);
  }
  if (isPlainObject(value)) {
    for (const key of Object.keys(value).sort())
      if (value[key] !== undefined && serialize(value[key]) === undefined) throwNotJson(value[key], `${path}.${key}`);
  }
  throw new SvcError('value_invalid', `The value at ${path} cannot be written as JSON without loss.`, {
    why: `It is ${typeof value === 'object' ? `an instance of ${value?.constructor.name}` : `${String(value)} (${typeof value})`}.`,
    next: ['Write it as a string, a finite number, a boolean, null, an array or a plain object.'],
  });
}

/** Other than a text. */
function isScalar(value: unknown): value is number | boolean | null {
  if (typeof value === 'number') return Number.isFinite(value);
  return value === null || typeof value === 'boolean';
}

export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null;
}

const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|[{}[\]:]/gi;

/** The first key in a JSON text that occurs twice in one object: `JSON.parse` keeps only its last value. */
function duplicateKey(json: string): string | undefined {
  const open: Set<string>[] = [];
  let previous = '';
  for (const [token] of json.matchAll(TOKENS)) {
    if (token === '{' || token === '[') open.push(new Set());
    else if (token === '}' || token === ']') open.pop();
    else if (token === ':') {
      // Parsed, because "a" and "\u0061" are the same key.
      const key = JSON.parse(previous) as string;
      const keys = open.at(-1);
      if (keys?.has(key)) return key;
      keys?.add(key);
    }
    previous = token;
  }
  return undefined;
}

/** The first number in a JSON text that `JSON.parse` changes, because a double keeps about 16 digits. */
export function lossyNumber(json: string): string | undefined {
  for (const [token] of json.matchAll(TOKENS)) {
    if (/^[-\d]/.test(token) && normalizeNumber(token) !== normalizeNumber(String(Number(token)))) return token;
  }
  return undefined;
}

/** Significant digits and a power of ten, so that equal numbers have equal texts. */
function normalizeNumber(number: string): string {
  const [, sign = '', whole = '', fraction = '', power = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(number) ?? [];
  const digits = `${whole}${fraction}`.replace(/^0+/, '');
  let end = digits.length;
  while (digits[end - 1] === '0') end -= 1;
  return end === 0 ? '0' : `${sign}${digits.slice(0, end)}e${Number(power) - fraction.length + digits.length}`;
}
