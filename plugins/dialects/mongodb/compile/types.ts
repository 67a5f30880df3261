import { isPlainObject, type Json } from '../../../../core/json.ts';
import type { Field, FieldType } from '../../../../core/schema/model.ts';

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

/** The key of every document. MongoDB creates its unique index, and lets no value of it change. */
export const ID = '_id';

/** An `_id` of type `json` may be of any type, also an ObjectId: the validator has no rule for it. */
export const isIdOfAnyType = (field: Field | undefined): boolean => field?.name === ID && field.type === 'json';

const NUMBER_TYPES = ['int', 'long', 'double', 'decimal'];
/** The BSON types of the names that the keyword `type` has, and of the alias of `bsonType`. */
const TYPE_ALIASES: Readonly<Record<string, readonly string[] | undefined>> = {
  boolean: ['bool'],
  number: NUMBER_TYPES,
  integer: NUMBER_TYPES,
};

/** The BSON types that a rule of a validator allows, with `null`; undefined if it does not limit them to some. */
export function typesOfRule(rule: Json | undefined): readonly string[] | undefined {
  if (!isPlainObject(rule)) return undefined;
  const { bsonType, type: typeName, enum: values } = rule as { readonly [keyword: string]: Json | undefined };
  const type = bsonType ?? typeName;
  if (type !== undefined)
    return (Array.isArray(type) ? type : [type]).flatMap((name) => TYPE_ALIASES[String(name)] ?? String(name));
  if (!Array.isArray(values) || !values.every((value) => value === null || typeof value === 'string')) return undefined;
  return [...new Set(values.map((value) => (value === null ? 'null' : 'string')))];
}

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
