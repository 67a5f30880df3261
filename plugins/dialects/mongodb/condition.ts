import type { Document } from 'mongodb';
import type { Condition } from '../../../core/dialect.ts';
import { isPlainObject, type Json } from '../../../core/json.ts';
import type { Field } from '../../../core/schema/model.ts';
import { spellings } from '../../../core/schema/normal-text.ts';
import type { Server } from './open.ts';
import { toBson } from './value.ts';

/** A condition as a filter: it means what it means on the other engines, also for what others wrote. */
export function filterOf({ bson }: Server, condition: Condition, field: Field): Document {
  const { name, type } = field;
  const among = (value: Json): readonly unknown[] =>
    (type === 'uuid' || type === 'time') && typeof value === 'string'
      ? spellings(value, type)
      : [toBson(bson, value, field)];
  if (condition.operator === 'in') {
    return type === 'json'
      ? { $or: [{ $expr: false }, ...condition.value.map((value) => sameFilter(name, value))] }
      : { [name]: { $in: condition.value.flatMap(among) } };
  }
  const { operator, value } = condition;
  if (operator === 'eq' || operator === 'ne') {
    // Null matches what is missing too.
    const same = type === 'json' ? sameFilter(name, value) : { [name]: { $in: among(value) } };
    return operator === 'eq' ? same : { $nor: [same] };
  }
  // A shorter spelling of a time stands before a longer one.
  const edge = type === 'time' && (operator === 'gte' || operator === 'lt') ? among(value).at(-1) : among(value)[0];
  return { [name]: { [`$${operator}`]: edge } };
}

/** MongoDB would compare the order of keys too, and take an array for each of its elements. */
function sameFilter(field: string, value: Json): Document {
  return value === null ? { [field]: null } : { $expr: sameJson(`$${field}`, value) };
}

/** Whether what an expression gives is this value, in whatever order its keys stand. */
export function sameJson(input: unknown, value: Json): Document {
  if (!isOrdered(value)) return { $eq: [input, { $literal: value }] };
  const parts = Array.isArray(value)
    ? value.map((item: Json, index) => sameJson({ $arrayElemAt: ['$$it', index] }, item))
    : Object.entries(value).map(([key, item]) =>
        sameJson({ $getField: { field: { $literal: key }, input: '$$it' } }, item as Json),
      );
  const list = Array.isArray(value) ? '$$it' : { $objectToArray: '$$it' };
  const type = Array.isArray(value) ? 'array' : 'object';
  const all = { $and: [{ $eq: [{ $size: list }, parts.length] }, ...parts] };
  return { $let: { vars: { it: input }, in: { $cond: [{ $eq: [{ $type: '$$it' }, type] }, all, false] } } };
}

/** Has an object of several keys in it. */
function isOrdered(value: Json): value is readonly Json[] | { readonly [key: string]: Json } {
  if (Array.isArray(value)) return value.some((item: Json) => isOrdered(item));
  return (
    isPlainObject(value) &&
    (Object.keys(value).length > 1 || Object.values(value).some((item) => isOrdered(item as Json)))
  );
}
