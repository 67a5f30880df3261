import { errorMessage } from '../errors.ts';
import { isPlainObject, type Json } from '../json.ts';

/** Deeper than any real tool call, and safe for recursive functions. */
export const MAX_DEPTH = 64;
/** When assigned or merged, these keys change the prototype. */
const PROTOTYPE_KEYS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

/** Databases reject NUL and unpaired surrogates in JSON. */
const UNSTORABLE = /\0|\p{Surrogate}/u;

export type SafeJsonResult =
  | { readonly value: Json }
  | { readonly path: readonly (string | number)[]; readonly why: string };

/**
 * Copies untrusted input into plain JSON without keys that change a prototype. Members that are undefined are left out.
 * Otherwise returns the path and the reason, without quoting a value.
 */
export function toSafeJson(value: unknown): SafeJsonResult {
  return copy(value, []);
}

function copy(value: unknown, path: readonly (string | number)[]): SafeJsonResult {
  if (value === null || typeof value === 'boolean') return { value };
  if (typeof value === 'string') {
    return UNSTORABLE.test(value) ? { path, why: 'contains a character that databases reject' } : { value };
  }
  if (typeof value === 'number') return Number.isFinite(value) ? { value } : { path, why: 'is not a finite number' };
  if (path.length > MAX_DEPTH) return { path: path.slice(0, 3), why: `is nested deeper than ${MAX_DEPTH} levels` };
  if (Array.isArray(value)) {
    const items: Json[] = [];
    for (const [index, item] of value.entries()) {
      const copied = copy(item, [...path, index]);
      if (!('value' in copied)) return copied;
      items.push(copied.value);
    }
    return { value: items };
  }
  if (!isPlainObject(value)) return { path, why: 'is not JSON' };
  const members: Record<string, Json> = {};
  for (const key of Object.keys(value)) {
    if (PROTOTYPE_KEYS.has(key) || UNSTORABLE.test(key)) return { path: [...path, key], why: 'is not an allowed name' };
    if (value[key] === undefined) continue;
    const copied = copy(value[key], [...path, key]);
    if (!('value' in copied)) return copied;
    members[key] = copied.value;
  }
  return { value: members };
}

/** Replaces the characters that databases reject with U+FFFD. */
export function storableText(text: string): string {
  return UNSTORABLE.test(text) ? text.replace(/\0|\p{Surrogate}/gu, '\uFFFD') : text;
}

/** Applies `storableText` to every string in a value. JSON.stringify escapes NUL and unpaired surrogates only. */
export function storableJson(value: Json): Json {
  const text = JSON.stringify(value);
  if (!/\\u(0000|d[89a-f])/i.test(text)) return value;
  return JSON.parse(text.replace(/\\(?:u(?:0000|d[89a-f]..)|.)/gi, (found) => (found.length > 2 ? '\uFFFD' : found)));
}

/** Whether a value is nested deeper than `toSafeJson` allows. MySQL and MongoDB reject JSON of more than 100 levels. */
export function isTooDeep(value: Json, left = MAX_DEPTH): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return left < 0 || Object.values(value).some((member) => isTooDeep(member, left - 1));
}

/** A deeply frozen copy whose objects have no prototype. */
export function prototypelessCopy<T extends Json>(value: T): T {
  return frozenCopy(value) as T;
}

function frozenCopy(value: Json): Json {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return Object.freeze(value.map(frozenCopy));
  const members: Record<string, Json> = Object.create(null);
  for (const [key, member] of Object.entries(value)) members[key] = frozenCopy(member);
  return Object.freeze(members);
}

/** The longest reason or name of a decider, in characters. */
export const MAX_TEXT_LENGTH = 10_000;

/** A reason or the message of a thrown value, as text that every store accepts. */
export function truncatedText(value: unknown, maxLength = MAX_TEXT_LENGTH): string {
  return storableText(errorMessage(value).slice(0, maxLength));
}

/** A deep copy that plugins and listeners cannot change. */
export function frozenClone<T>(value: T): T {
  return deepFreeze(structuredClone(value));
}

export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  for (const member of Object.values(value)) deepFreeze(member);
  return Object.freeze(value);
}
