import type { Json } from '../json.ts';
import type { FieldType } from '../schema/types.ts';

/** The value, or what its operators compare with, with a literal of the type for `'now'`; days and times are those in UTC. */
export function withNow(value: Json, type: FieldType, now: Date): Json {
  if (value === 'now') return momentOf(type, now.toISOString());
  if (Array.isArray(value)) return value.map((one: Json) => withNow(one, type, now));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withNow(one, type, now)]));
}

function momentOf(type: FieldType, iso: string): string {
  if (type === 'date') return iso.slice(0, 10);
  if (type === 'time') return iso.slice(11, 23);
  return type === 'datetime' ? iso.slice(0, 23) : iso;
}
