import type { Field, FieldType } from '../../../core/schema/model.ts';
import { TEXT_TYPES } from '../shared/text-types.ts';

/** Casting text to these types is exact or an error. Other types round: cents, times of day and object keys get lost. */
const STRICTLY_PARSED: ReadonlySet<FieldType> = new Set([
  ...TEXT_TYPES,
  'uuid',
  'boolean',
  'smallint',
  'integer',
  'bigint',
  'binary',
  'blob',
]);

const LOSSLESS_CASTS: Partial<Record<FieldType, readonly FieldType[]>> = {
  smallint: ['integer', 'bigint', 'float', 'double', 'string'],
  integer: ['smallint', 'bigint', 'double', 'string'],
  bigint: ['smallint', 'integer', 'string'],
  float: ['double'],
  date: ['datetime', 'timestamp'],
  datetime: ['timestamp'],
  timestamp: ['datetime'],
  binary: ['blob'],
  blob: ['binary'],
  uuid: ['string'],
  boolean: ['smallint', 'integer', 'bigint'],
};

/**
 * Whether a cast may lose data without an error, on an engine where a cast of a value that does not fit at all fails. An
 * engine that reads '00501' as the integer 501, or ' yes' as true, loses more: its dialect adds these casts.
 */
export function isLossyCast(from: Field, to: Field): boolean {
  if (to.type === 'text') return false;
  if (TEXT_TYPES.has(from.type)) return !STRICTLY_PARSED.has(to.type);
  if (from.type !== to.type) return to.type !== 'json' && !LOSSLESS_CASTS[from.type]?.includes(to.type);
  if (from.type === 'array') return isLossyCast(item(from), item(to));
  if (from.type === 'decimal') return (to.scale ?? 0) < (from.scale ?? 0);
  return false;
}

const item = ({ name, items = 'string' }: Field): Field => ({ name, type: items });
