import type { Json } from '../../../core/json.ts';
import type { FieldType } from '../../../core/schema/types.ts';

/** SPEC 2.9. */
export const bsonNames: Readonly<Record<FieldType, string>> = {
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

const WHOLE = ['int', 'long', 'double'];

/**
 * The BSON types that values of a field type may have. More than one for numbers: the driver sends 5 as int, 3e9 and 5.5 as
 * double and 5n as long, so a rule with one of them would refuse ordinary numbers.
 */
export const bsonTypes: Readonly<Record<FieldType, readonly string[]>> = {
  integer: WHOLE,
  bigint: ['int', 'long'],
  smallint: WHOLE,
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

/** The least value of the types of a field: what is not null nor missing is not less. */
export const least: Readonly<Record<string, Json | undefined>> = {
  string: '',
  bool: false,
  int: { $numberDouble: '-Infinity' },
  double: { $numberDouble: '-Infinity' },
  decimal: { $numberDouble: '-Infinity' },
  date: { $date: { $numberLong: '-8640000000000000' } },
  // Bytes are ordered by their number first, then by their kind.
  binData: { $binary: { base64: '', subType: '00' } },
};
