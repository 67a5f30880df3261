import type { Field, FieldType } from '../../../../core/schema/model.ts';

/** Column types. Lengths, precisions and enum values are in the registry only. */
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

export function columnType({ type, items }: Pick<Field, 'type' | 'items'>): string {
  return type === 'array' ? `list<${columnType({ type: items ?? 'string' })}>` : columnTypes[type];
}

const EXACT: Readonly<Record<string, FieldType>> = {
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

/** Types that svc does not create, with the nearest one that it does. */
const NEAREST: Readonly<Record<string, FieldType>> = {
  tinyint: 'smallint',
  varint: 'decimal',
  ascii: 'text',
  varchar: 'text',
  timeuuid: 'uuid',
};

export interface FieldTypeRead extends Pick<Field, 'type' | 'items'> {
  /** The type is only the nearest match, or `text` without one. */
  readonly inexact?: true;
}

/** The field type of a column that is not in the registry. */
export function fieldTypeOf(type: string): FieldTypeRead {
  const plain = EXACT[type];
  if (plain) return { type: plain };
  const item = /^list<(\w+)>$/.exec(type)?.[1];
  const items = item === undefined ? undefined : EXACT[item];
  if (items) return { type: 'array', items };
  return { type: NEAREST[type] ?? 'text', inexact: true };
}

/** Whether values of the column cannot be read as its field type. */
export const isUnreadableType = (type: string): boolean =>
  fieldTypeOf(type).inexact === true && NEAREST[type] === undefined;
