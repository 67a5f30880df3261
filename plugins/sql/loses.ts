import type { Field } from '../../core/schema/model.ts';
import type { FieldType } from '../../core/schema/types.ts';

const TEXTS: ReadonlySet<FieldType> = new Set(['string', 'text', 'enum']);

const WIDER: Partial<Record<FieldType, readonly FieldType[]>> = {
  smallint: ['integer', 'bigint', 'float', 'double'],
  integer: ['smallint', 'bigint', 'double'],
  bigint: ['smallint', 'integer'],
  float: ['double'],
  date: ['datetime', 'timestamp'],
  datetime: ['timestamp'],
  timestamp: ['datetime'],
  string: ['enum'],
  text: ['string', 'enum'],
  enum: ['string'],
  binary: ['blob'],
  blob: ['binary'],
  uuid: ['string'],
  boolean: ['smallint', 'integer', 'bigint'],
};

/** Whether values lose something without an error. What does not fit at all is an error of the statement instead. */
export function losesSilently(from: Field, to: Field): boolean {
  if (to.type === 'text' || to.type === 'json') return false;
  if (from.type !== to.type) return !WIDER[from.type]?.includes(to.type) && !TEXTS.has(from.type);
  if (from.type === 'decimal') return (to.scale ?? 0) < (from.scale ?? 0);
  return false;
}
