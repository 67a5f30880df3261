import type { Field, FieldType } from '../../../../core/schema/model.ts';
import { nativeText, parseNativeType } from './native-type.ts';

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

/** The type of the column as the catalog has it. */
export function columnType(field: Pick<Field, 'type' | 'items' | 'native'>): string {
  return field.native === undefined ? ownType(field) : (parseNativeType(field.native)?.type ?? field.native);
}

/** The type of the column, and what else its definition has. */
export const columnDefinition = (field: Pick<Field, 'type' | 'items' | 'native'>): string =>
  field.native ?? ownType(field);

export const isStatic = ({ native }: Pick<Field, 'native'>): boolean =>
  native !== undefined && parseNativeType(native)?.isStatic === true;

function ownType({ type, items }: Pick<Field, 'type' | 'items'>): string {
  return type === 'array' ? `list<${ownType({ type: items ?? 'string' })}>` : columnTypes[type];
}

/** The field with its native type as the catalog has it, or without one that is no other than the type's own. */
export function withCatalogType(field: Field): Field {
  const parsed = field.native === undefined ? undefined : parseNativeType(field.native);
  if (!parsed) return field;
  const { native: _, ...plain } = field;
  return !parsed.isStatic && parsed.type === ownType(field) ? plain : { ...plain, native: nativeText(parsed) };
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

/** Types whose values are also those of a field type. */
const NEAREST: Readonly<Record<string, FieldType>> = {
  tinyint: 'smallint',
  varint: 'decimal',
  ascii: 'text',
  timeuuid: 'uuid',
};

/** Types that consist of others. */
const STRUCTURED = /^(?:frozen|list|set|map|tuple|vector)</;

/** The type of the field for a column that is not in the registry. */
export function fieldTypeOf(type: string, isStaticColumn = false): Pick<Field, 'type' | 'items' | 'native'> {
  const native = isStaticColumn ? { native: nativeText({ type, isStatic: true }) } : {};
  const plain = EXACT[type];
  if (plain) return { type: plain, ...native };
  const item = /^list<(\w+)>$/.exec(type)?.[1];
  const items = item === undefined ? undefined : EXACT[item];
  if (items) return { type: 'array', items, ...native };
  const nearest = NEAREST[type] ?? (type === 'counter' ? 'bigint' : STRUCTURED.test(type) ? 'json' : 'text');
  return { type: nearest, native: nativeText({ type, isStatic: isStaticColumn }) };
}

/** Whether values of the column cannot be read and written as those of its field type. */
export const isUnreadableType = (type: string): boolean =>
  fieldTypeOf(type).native !== undefined && NEAREST[type] === undefined;
