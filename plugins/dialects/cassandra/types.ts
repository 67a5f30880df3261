import type { Field } from '../../../core/schema/model.ts';
import type { FieldType } from '../../../core/schema/types.ts';

/** Column types; what a string may be long, a decimal precise and an enum say stands in the registry. */
export const columnTypes: Readonly<Record<FieldType, string>> = {
  integer: 'int',
  bigint: 'bigint',
  smallint: 'smallint',
  float: 'float',
  double: 'double',
  decimal: 'decimal',
  string: 'text',
  text: 'text',
  boolean: 'boolean',
  date: 'date',
  time: 'time',
  datetime: 'timestamp',
  timestamp: 'timestamp',
  json: 'text',
  uuid: 'uuid',
  enum: 'text',
  array: 'list<item>',
  binary: 'blob',
  blob: 'blob',
};

/** As the catalog spells it. */
export function columnType({ type, items }: Pick<Field, 'type' | 'items'>): string {
  return type === 'array' ? `list<${columnType({ type: items ?? 'string' })}>` : columnTypes[type];
}

const PLAIN: Readonly<Record<string, FieldType>> = {
  int: 'integer',
  bigint: 'bigint',
  smallint: 'smallint',
  float: 'float',
  double: 'double',
  decimal: 'decimal',
  text: 'text',
  boolean: 'boolean',
  date: 'date',
  time: 'time',
  timestamp: 'timestamp',
  uuid: 'uuid',
  blob: 'blob',
};

/** Types that svc does not make, with the nearest one that it does. */
const NEAREST: Readonly<Record<string, FieldType>> = {
  tinyint: 'smallint',
  varint: 'decimal',
  ascii: 'text',
  varchar: 'text',
  timeuuid: 'uuid',
};

export interface ReadType extends Pick<Field, 'type' | 'items'> {
  /** The type is only the nearest one, or has nothing in common with it. */
  readonly inexact?: true;
}

/** The field type of a column that the registry does not know, from what the catalog says. */
export function readType(type: string): ReadType {
  const plain = PLAIN[type];
  if (plain) return { type: plain };
  const item = /^list<(\w+)>$/.exec(type)?.[1];
  const items = item === undefined ? undefined : PLAIN[item];
  if (items) return { type: 'array', items };
  return { type: NEAREST[type] ?? 'text', inexact: true };
}

/** Values of the type that it is read as are none of its own. */
export const isForeign = (type: string): boolean => readType(type).inexact === true && NEAREST[type] === undefined;
