import type { FieldType } from '../../../core/schema/types.ts';

/** What an attribute holds, in DynamoDB's letters. */
export type AttributeType = 'S' | 'N' | 'B' | 'BOOL' | 'M' | 'L';
export type KeyType = Extract<AttributeType, 'S' | 'N' | 'B'>;

/** The attribute type of each field type, SPEC 2.9. A `json` that is no object is stored as what it is. */
export const attributeTypes: Readonly<Record<FieldType, AttributeType>> = {
  integer: 'N',
  bigint: 'N',
  smallint: 'N',
  float: 'N',
  double: 'N',
  decimal: 'N',
  string: 'S',
  text: 'S',
  boolean: 'BOOL',
  date: 'S',
  time: 'S',
  datetime: 'S',
  timestamp: 'N',
  json: 'M',
  uuid: 'S',
  enum: 'S',
  array: 'L',
  binary: 'B',
  blob: 'B',
};

/** Undefined for a type that cannot be in a key. */
export function keyType(type: FieldType): KeyType | undefined {
  const attribute = attributeTypes[type];
  return attribute === 'S' || attribute === 'N' || attribute === 'B' ? attribute : undefined;
}

/** What a field is taken for whose attribute alone is known. */
export const FOREIGN_TYPES: Readonly<Record<KeyType, FieldType>> = { S: 'string', N: 'double', B: 'binary' };
