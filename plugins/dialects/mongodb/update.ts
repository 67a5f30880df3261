import type { Document, Filter } from 'mongodb';
import type { Assignment, UpdateJob, UpdateResult } from '../../../core/dialect.ts';
import { SvcError } from '../../../core/errors.ts';
import type { Field } from '../../../core/schema/model.ts';
import { refuseReadBack } from '../../read-back.ts';
import { inBatches } from './batches.ts';
import { filterOf, sameJson } from './condition.ts';
import { clockOf, type Server } from './open.ts';
import type { Place } from './place.ts';
import { toBson } from './value.ts';

/**
 * In batches of documents that it would change: a document that has been changed is not one of them any more, so the
 * same call goes on where another one was killed. Each document is changed as a whole.
 */
export async function update(place: Place, job: UpdateJob): Promise<UpdateResult> {
  const { server } = place;
  const fieldOf = (name: string): Field => {
    const field = job.collection.fields.get(name);
    if (!field) throw new Error(`${job.table} has no field ${name}`);
    return field;
  };
  refuseImpossible(job, fieldOf);
  const now = await clockOf(server);
  const values = job.set.map((assignment) => ({ assignment, value: expressionOf(server, assignment, fieldOf, now) }));
  const where = job.where.map((condition) => filterOf(server, condition, fieldOf(condition.field)));
  const matching = (where.length > 0 ? { $and: where } : {}) as Filter<Document>;
  // A clock alone makes no document another one, unless nothing else is set.
  const real = values.filter(({ assignment }) => !('now' in assignment));
  const differs = (real.length > 0 ? real : []).map(({ assignment, value }) => {
    const stored = { $ifNull: [`$${assignment.field}`, null] };
    return 'value' in assignment && fieldOf(assignment.field).type === 'json'
      ? { $not: [sameJson(stored, assignment.value)] }
      : { $ne: [stored, value] };
  });
  const changing = differs.length > 0 ? { $and: [...where, { $expr: { $or: differs } }] } : matching;
  const matched = await server.db.collection(job.table).countDocuments(matching);
  const set = Object.fromEntries(values.map(({ assignment, value }) => [assignment.field, value]));
  const modified =
    differs.length > 0
      ? await inBatches(place, job.table, changing as Filter<Document>, () => [{ $set: set }], {
          checked: true,
          total: matched,
        })
      : (await server.db.collection(job.table).updateMany(matching, [{ $set: set }])).modifiedCount;
  // Others may have come in between.
  return { matched: Math.max(matched, modified), modified };
}

/** What reads what is set would be done again in every pass, and a required field takes no null. */
function refuseImpossible({ table, set }: UpdateJob, fieldOf: (name: string) => Field): void {
  refuseReadBack(set);
  for (const assignment of set) {
    const field = fieldOf(assignment.field);
    if ('value' in assignment && assignment.value === null && field.required) {
      throw new SvcError('data_violates', `"${table}.${field.name}" is required and cannot become null.`, {
        state: 'Nothing was changed.',
      });
    }
  }
}

/** An aggregation expression. */
function expressionOf(server: Server, assignment: Assignment, fieldOf: (name: string) => Field, now: Date): unknown {
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
