import type { Json } from '../../../../core/json.ts';
import type { FieldType } from '../../../../core/schema/model.ts';

/** The name of the BSON type of each field type, for display. */
export const typeNames: Readonly<Record<FieldType, string>> = {
  integer: 'Number',
  bigint: 'Long',
  smallint: 'Number',
  float: 'Double',
  double: 'Double',
  decimal: 'Decimal128',
  string: 'String',
  text: 'String',
  boolean: 'Boolean',
  date: 'Date',
  time: 'String',
  datetime: 'Date',
  timestamp: 'Date',
  json: 'Object',
  uuid: 'String',
  enum: 'String',
  array: 'Array',
  binary: 'BinData',
  blob: 'BinData',
};

const WHOLE_NUMBERS = ['int', 'long', 'double'];

/**
 * The BSON types that values of a field type may have. Numbers have several: the driver sends 5 as int, 3e9 and 5.5 as
 * double, and 5n as long.
 */
export const bsonTypes: Readonly<Record<FieldType, readonly string[]>> = {
  integer: WHOLE_NUMBERS,
  bigint: ['int', 'long'],
  smallint: WHOLE_NUMBERS,
  float: ['double', 'int', 'long'],
  double: ['double', 'int', 'long'],
  decimal: ['decimal'],
  string: ['string'],
  text: ['string'],
  boolean: ['bool'],
  date: ['date'],
  time: ['string'],
  datetime: ['date'],
  timestamp: ['date'],
  json: ['object', 'array', 'string', 'int', 'long', 'double', 'bool'],
  uuid: ['string'],
  enum: ['string'],
  array: ['array'],
  binary: ['binData'],
  blob: ['binData'],
};

/** The lowest value of a BSON type: every value other than null is at least that. */
export const minimumValues: Readonly<Record<string, Json | undefined>> = {
  string: '',
  bool: false,
  int: { $numberDouble: '-Infinity' },
  double: { $numberDouble: '-Infinity' },
  decimal: { $numberDouble: '-Infinity' },
  date: { $date: { $numberLong: '-8640000000000000' } },
  // Binary data sorts by length first, then by subtype.
  binData: { $binary: { base64: '', subType: '00' } },
};
