import { isPlainObject, type Json } from '../json.ts';

/** Deeper than any call a tool can want, and shallow enough for every walk over it. */
const DEEPEST = 64;
/** Assigned or merged, these reach the prototype instead of the object. */
const POISON: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

/** Databases refuse NUL and halves of a surrogate pair in JSON. */
const UNSTORABLE = /\0|\p{Surrogate}/u;

export type Owned = { readonly value: Json } | { readonly path: readonly (string | number)[]; readonly why: string };

/**
 * A copy of what came from outside, in which nothing but JSON is left and no key that reaches a prototype; what is
 * undefined counts as absent. Else where it is not so and why, without quoting a value.
 */
export function ownJson(value: unknown): Owned {
  return copy(value, []);
}

function copy(value: unknown, path: readonly (string | number)[]): Owned {
  if (value === null || typeof value === 'boolean') return { value };
  if (typeof value === 'string') {
    return UNSTORABLE.test(value) ? { path, why: 'has a character that no database keeps' } : { value };
  }
  if (typeof value === 'number') return Number.isFinite(value) ? { value } : { path, why: 'is not a finite number' };
  if (path.length > DEEPEST) return { path: path.slice(0, 3), why: `is nested deeper than ${DEEPEST} levels` };
  if (Array.isArray(value)) {
    const items: Json[] = [];
    for (const [index, item] of value.entries()) {
      const owned = copy(item, [...path, index]);
      if (!('value' in owned)) return owned;
      items.push(owned.value);
    }
    return { value: items };
  }
  if (!isPlainObject(value)) return { path, why: 'is not JSON' };
  const members: Record<string, Json> = {};
  for (const key of Object.keys(value)) {
    if (POISON.has(key) || UNSTORABLE.test(key)) return { path: [...path, key], why: 'is a name that is not allowed' };
    if (value[key] === undefined) continue;
    const owned = copy(value[key], [...path, key]);
    if (!('value' in owned)) return owned;
    members[key] = owned.value;
  }
  return { value: members };
}

/** Text that was made elsewhere, with a replacement character for each that no database keeps. */
export function storable(text: string): string {
  return UNSTORABLE.test(text) ? text.replace(/\0|\p{Surrogate}/gu, '\uFFFD') : text;
}

/** The same for all text in a value, however deep: JSON writes both as escapes, and pairs as they are. */
export function storableJson(value: Json): Json {
  const text = JSON.stringify(value);
  if (!/\\u(0000|d[89a-f])/i.test(text)) return value;
  return JSON.parse(text.replace(/\\(?:u(?:0000|d[89a-f]..)|.)/gi, (found) => (found.length > 2 ? '\uFFFD' : found)));
}

/** Whether it is nested deeper than what came from outside may be; the JSON of MySQL and MongoDB ends at 100 levels. */
export function isDeep(value: Json, left = DEEPEST): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return left < 0 || Object.values(value).some((member) => isDeep(member, left - 1));
}

/** Objects without prototype, frozen all the way down. */
export function sealed<T extends Json>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return Object.freeze(value.map(sealed)) as unknown as T;
  const members: Record<string, Json> = Object.create(null);
  for (const [key, member] of Object.entries(value)) members[key] = sealed(member);
  return Object.freeze(members) as unknown as T;
}
