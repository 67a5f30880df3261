import type { Document, Filter } from 'mongodb';
import type { Assignment, Condition, UpdateJob, UpdateResult } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import { isPlainObject, type Json } from '../../../../core/json.ts';
import type { Field } from '../../../../core/schema/model.ts';
import { textVariants } from '../../shared/canonical-text.ts';
import { assertNoSelfReads } from '../../shared/update-assignments.ts';
import { type MongoServer, serverTime } from '../connection/server.ts';
import type { RunContext } from '../run/run-context.ts';
import { toBson } from './bson-value.ts';
import { updateInBatches } from './update-in-batches.ts';

/**
 * Updates in batches the documents whose values would change. An updated document no longer matches, so the same call
 * continues after a crash. Each document is updated atomically.
 */
export async function runUpdate(context: RunContext, job: UpdateJob): Promise<UpdateResult> {
  const { server } = context;
  const fieldOf = (name: string): Field => {
    const field = job.collection.fields.get(name);
    if (!field) throw new Error(`${job.table} has no field ${name}`);
    return field;
  };
  assertAssignable(job, fieldOf);
  const now = await serverTime(server);
  const values = job.set.map((assignment) => ({ assignment, value: expressionOf(server, assignment, fieldOf, now) }));
  const where = job.where.map((condition) => conditionFilter(server, condition, fieldOf(condition.field)));
  const matching = (where.length > 0 ? { $and: where } : {}) as Filter<Document>;
  // A new `'now'` does not count as a change, unless nothing else is set.
  const withoutClock = values.filter(({ assignment }) => !('now' in assignment));
  const differs = withoutClock.map(({ assignment, value }) => {
    const stored = { $ifNull: [`$${assignment.field}`, null] };
    return 'value' in assignment && fieldOf(assignment.field).type === 'json'
      ? { $not: [jsonEquals(stored, assignment.value)] }
      : { $ne: [stored, value] };
  });
  const changing = differs.length > 0 ? { $and: [...where, { $expr: { $or: differs } }] } : matching;
  const matched = await server.db.collection(job.table).countDocuments(matching);
  const set = Object.fromEntries(values.map(({ assignment, value }) => [assignment.field, value]));
  const modified =
    differs.length > 0
      ? await updateInBatches(context, job.table, changing as Filter<Document>, () => [{ $set: set }], {
          validate: true,
          total: matched,
        })
      : (await server.db.collection(job.table).updateMany(matching, [{ $set: set }])).modifiedCount;
  // Other writers may have added matching documents.
  return { matched: Math.max(matched, modified), modified };
}

/** Rejects an assignment that reads a field the update sets, and null for a required field. */
function assertAssignable({ table, set }: UpdateJob, fieldOf: (name: string) => Field): void {
  assertNoSelfReads(set);
  for (const assignment of set) {
    const field = fieldOf(assignment.field);
    if ('value' in assignment && assignment.value === null && field.required) {
      throw new SvcError('data_violates', `The field "${table}.${field.name}" cannot be null.`, {
        why: 'It is required.',
        state: 'Nothing was changed.',
      });
    }
  }
}

/** The aggregation expression of an assignment. */
function expressionOf(
  server: MongoServer,
  assignment: Assignment,
  fieldOf: (name: string) => Field,
  now: Date,
): unknown {
  const field = fieldOf(assignment.field);
  if ('now' in assignment) return { $literal: toBson(server.bson, 'now', field, now) };
  if ('value' in assignment) return { $literal: toBson(server.bson, assignment.value, field) };
  const parts = assignment.concat.map((part) =>
    'field' in part ? { $ifNull: [{ $toString: `$${part.field}` }, ''] } : { $literal: part.literal },
  );
  const text = { $concat: parts };
  const to = { bigint: 'long', integer: 'int', smallint: 'int' }[field.type as string];
  return to === undefined ? text : { $convert: { input: text, to } };
}

/** A condition as a filter with the meaning it has on other engines, even for documents of other programs. */
function conditionFilter({ bson }: MongoServer, condition: Condition, field: Field): Document {
  const { name, type } = field;
  const storedForms = (value: Json): readonly unknown[] =>
    (type === 'uuid' || type === 'time') && typeof value === 'string'
      ? textVariants(value, type)
      : [toBson(bson, value, field)];
  if (condition.operator === 'in') {
    return type === 'json'
      ? { $or: [{ $expr: false }, ...condition.value.map((value) => jsonFilter(name, value))] }
      : { [name]: { $in: condition.value.flatMap(storedForms) } };
  }
  const { operator, value } = condition;
  if (operator === 'eq' || operator === 'ne') {
    // Null matches a missing field too.
    const same = type === 'json' ? jsonFilter(name, value) : { [name]: { $in: storedForms(value) } };
    return operator === 'eq' ? same : { $nor: [same] };
  }
  // A shorter form of a time sorts before a longer one.
  const takesShortest = type === 'time' && (operator === 'gte' || operator === 'lt');
  return { [name]: { [`$${operator}`]: storedForms(value).at(takesShortest ? -1 : 0) } };
}

/** MongoDB's own equality compares the order of keys, and matches an array by any of its elements. */
function jsonFilter(field: string, value: Json): Document {
  return value === null ? { [field]: null } : { $expr: jsonEquals(`$${field}`, value) };
}

/** An expression for whether `input` equals a JSON value, in any order of keys. */
function jsonEquals(input: unknown, value: Json): Document {
  if (!hasKeyOrder(value)) return { $eq: [input, { $literal: value }] };
  const parts = Array.isArray(value)
    ? value.map((item: Json, index) => jsonEquals({ $arrayElemAt: ['$$it', index] }, item))
    : Object.entries(value).map(([key, item]) =>
        jsonEquals({ $getField: { field: { $literal: key }, input: '$$it' } }, item as Json),
      );
  const list = Array.isArray(value) ? '$$it' : { $objectToArray: '$$it' };
  const type = Array.isArray(value) ? 'array' : 'object';
  const all = { $and: [{ $eq: [{ $size: list }, parts.length] }, ...parts] };
  return { $let: { vars: { it: input }, in: { $cond: [{ $eq: [{ $type: '$$it' }, type] }, all, false] } } };
}

/** Whether the value contains an object with several keys. */
function hasKeyOrder(value: Json): value is readonly Json[] | { readonly [key: string]: Json } {
  if (Array.isArray(value)) return value.some((item: Json) => hasKeyOrder(item));
  return (
    isPlainObject(value) &&
    (Object.keys(value).length > 1 || Object.values(value).some((item) => hasKeyOrder(item as Json)))
  );
}
