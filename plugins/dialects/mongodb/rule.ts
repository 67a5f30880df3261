import { isDeepStrictEqual } from 'node:util';
import { SvcError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json.ts';
import type { Field } from '../../../core/schema/model.ts';
import { bsonTypes } from './types.ts';

/** What `$jsonSchema` says of one field, with keywords that mongod and DocumentDB both know. */
export type Rule = { readonly bsonType: Json; readonly [keyword: string]: Json };

/** Digits of a Decimal128. */
const DECIMAL_DIGITS = 34;
const UUID = '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$';
const TIME = '^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,3})?)?$';

/** `null` passes where the field is not required; missing then passes too, which is the business of `required`. */
export function ruleOf(field: Field): Rule {
  const types = bsonTypes[field.type];
  const { enum: values, ...keywords } = keywordsOf(field);
  const among = values as readonly Json[] | undefined;
  return {
    bsonType: typeList(field.required ? types : [...types, 'null']),
    ...(among && { enum: field.required ? among : [...among, null] }),
    ...keywords,
  };
}

/** The same field, whose values may be null. */
export const optional = ({ required: _, ...field }: Field): Field => field;

/** The rule of a field while its values change: whatever either rule lets through. */
export function eitherRule(from: Field, to: Field): Rule {
  const [a, b] = [ruleOf(optional(from)), ruleOf(optional(to))];
  if (isDeepStrictEqual(a, b)) return a;
  return { bsonType: [...new Set([...bsonTypes[from.type], ...bsonTypes[to.type], 'null'])] };
}

const typeList = (types: readonly string[]): Json => (types.length === 1 ? (types[0] ?? null) : types);

function keywordsOf(field: Field): { readonly [keyword: string]: Json } {
  switch (field.type) {
    case 'integer':
      return { multipleOf: 1, minimum: -2147483648, maximum: 2147483647 };
    case 'smallint':
      return { multipleOf: 1, minimum: -32768, maximum: 32767 };
    case 'string':
      return field.length === undefined ? {} : { maxLength: field.length };
    case 'enum':
      return { enum: field.enumValues ?? [] };
    case 'uuid':
      return { pattern: UUID };
    case 'time':
      return { pattern: TIME };
    case 'decimal':
      return decimalKeywords(field);
    case 'array': {
      const item: Field = { name: field.name, type: field.items ?? 'string' };
      return { items: ruleOf(item) };
    }
    default:
      return {};
  }
}

function decimalKeywords({ name, precision, scale = 0 }: Field): { readonly [keyword: string]: Json } {
  if (precision === undefined) return {};
  if (precision > DECIMAL_DIGITS) {
    throw new SvcError('field_invalid', `The definition of the field "${name}" cannot be used on MongoDB.`, {
      why: `A Decimal128 has ${DECIMAL_DIGITS} digits and the precision is ${precision}.`,
    });
  }
  const whole = '9'.repeat(precision - scale) || '0';
  const most = scale === 0 ? whole : `${whole}.${'9'.repeat(scale)}`;
  const step = scale === 0 ? '1' : `0.${'0'.repeat(scale - 1)}1`;
  const decimal = (text: string): Json => ({ $numberDecimal: text });
  return { multipleOf: decimal(step), minimum: decimal(`-${most}`), maximum: decimal(most) };
}
