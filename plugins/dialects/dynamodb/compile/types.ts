import type { FieldType } from '../../../../core/schema/model.ts';

/** DynamoDB's type descriptors. */
export type AttributeType = 'S' | 'N' | 'B' | 'BOOL' | 'M' | 'L';
export type KeyType = Extract<AttributeType, 'S' | 'N' | 'B'>;

/** A `json` value that is not an object is stored with the type of the value. */
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

/** The field type of a key attribute that is not in the registry. */
export const FIELD_TYPE_OF_KEY: Readonly<Record<KeyType, FieldType>> = { S: 'string', N: 'double', B: 'binary' };
