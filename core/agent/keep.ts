import { tooLarge } from '../approval/digest.ts';
import type { Json } from '../json.ts';

/**
 * What a provider gave to be sent back, without the parameters that were too large to be kept; `large` has their texts.
 * Null where it repeats them otherwise.
 */
export function withoutLarge(keep: Json, large: ReadonlySet<string>): Json {
  if (large.size === 0) return keep;
  const rest = emptied(keep, large);
  return tooLarge(rest) ? null : rest;
}

/** An empty object in the place of each: providers refuse a call that has none. */
function emptied(value: Json, large: ReadonlySet<string>): Json {
  if (typeof value !== 'object' || value === null) return value;
  if (large.has(JSON.stringify(value))) return {};
  if (Array.isArray(value)) return value.map((item) => emptied(item, large));
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, emptied(member, large)]));
}
