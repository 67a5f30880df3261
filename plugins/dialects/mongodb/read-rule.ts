import { isDeepStrictEqual } from 'node:util';
import { isPlainObject, type Json } from '../../../core/json.ts';
import type { Field } from '../../../core/schema/model.ts';
import type { FieldType } from '../../../core/schema/types.ts';
import { fromExtended, type Server, toExtended } from './open.ts';
import { ruleOf } from './rule.ts';

export interface ReadField {
  readonly field: Field;
  /** The rule says something that the field does not. */
  readonly inexact: boolean;
}

/** The types that a list of BSON types may stand for, the likeliest first. */
const CANDIDATES: readonly FieldType[] = [
  'integer',
  'smallint',
  'bigint',
  'double',
  'decimal',
  'string',
  'uuid',
  'time',
  'boolean',
  'timestamp',
  'json',
  'binary',
];

/** The nearest type of values of one BSON type. */
export const NEAREST: Readonly<Record<string, FieldType | undefined>> = {
  int: 'integer',
  long: 'bigint',
  double: 'double',
  decimal: 'decimal',
  number: 'double',
  string: 'string',
  bool: 'boolean',
  date: 'timestamp',
  object: 'json',
  array: 'json',
  binData: 'binary',
};
const NUMBERS: ReadonlySet<string> = new Set(['int', 'long', 'double', 'number']);

/** A field from a rule that somebody wrote. */
export function readRule(server: Pick<Server, 'bson'>, name: string, rule: Json, required: boolean): ReadField {
  const base = { name, ...(required && { required: true as const }) };
  const { bsonType, enum: values, maxLength, items } = isPlainObject(rule) ? (rule as Record<string, Json>) : {};
  const among = Array.isArray(values) ? values.filter((value) => typeof value === 'string') : [];
  const guesses: Field[] = [
    ...CANDIDATES.map((type) => ({ ...base, type })),
    ...(among.length > 0 ? [{ ...base, type: 'enum' as const, enumValues: among as string[] }] : []),
    ...(Number.isSafeInteger(numberOf(maxLength))
      ? [{ ...base, type: 'string' as const, length: numberOf(maxLength) }]
      : []),
    ...(items === undefined
      ? []
      : [{ ...base, type: 'array' as const, items: readRule(server, name, items, false).field.type }]),
  ];
  const exact = guesses.find((guess) => isDeepStrictEqual(canonical(server, ruleOf(guess)), rule));
  if (exact) return { field: exact, inexact: false };
  const types = (Array.isArray(bsonType) ? bsonType : [bsonType]).filter((type) => type !== 'null');
  return { field: { ...base, type: nearest(types.map(String)) }, inexact: true };
}

export function nearest(types: readonly string[]): FieldType {
  const [only, ...others] = types;
  if (only !== undefined && others.length === 0) return NEAREST[only] ?? (only === 'objectId' ? 'string' : 'json');
  return types.length > 0 && types.every((type) => NUMBERS.has(type)) ? 'double' : 'json';
}

/** Extended JSON in the form in which the server's documents are compared. */
export function canonical(server: Pick<Server, 'bson'>, value: Json): Json {
  return toExtended(server, fromExtended(server, value));
}

function numberOf(value: Json | undefined): number {
  return isPlainObject(value) ? Number(Object.values(value)[0]) : Number(value ?? Number.NaN);
}
