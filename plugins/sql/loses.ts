import type { Field } from '../../core/schema/model.ts';
import type { FieldType } from '../../core/schema/types.ts';

const TEXTS: ReadonlySet<FieldType> = new Set(['string', 'text', 'enum']);

/** A text is a value of these or an error; of others it is taken for the nearest one: cents, times of day, keys get lost. */
const EXACT: ReadonlySet<FieldType> = new Set([
  ...TEXTS,
  'uuid',
  'boolean',
  'smallint',
  'integer',
  'bigint',
  'binary',
  'blob',
]);

const WIDER: Partial<Record<FieldType, readonly FieldType[]>> = {
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

/** Whether values lose something without an error. What does not fit at all is an error of the statement instead. */
export function losesSilently(from: Field, to: Field): boolean {
  if (to.type === 'text') return false;
  if (TEXTS.has(from.type)) return !EXACT.has(to.type);
  if (from.type !== to.type) return to.type !== 'json' && !WIDER[from.type]?.includes(to.type);
  if (from.type === 'array') return losesSilently(item(from), item(to));
  if (from.type === 'decimal') return (to.scale ?? 0) < (from.scale ?? 0);
  return false;
}

const item = ({ name, items = 'string' }: Field): Field => ({ name, type: items });
