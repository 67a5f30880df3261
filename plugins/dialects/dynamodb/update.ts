import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import type { Assignment, Condition, UpdateJob, UpdateResult } from '../../../core/dialect.ts';
import { SvcError } from '../../../core/errors.ts';
import type { Field } from '../../../core/schema/model.ts';
import { refuseReadBack, sourcesOf } from '../../read-back.ts';
import { type Item, isNull } from './attribute.ts';
import type { Change } from './change.ts';
import { type FieldOf, filterOf, holds, same } from './condition.ts';
import { converted } from './convert.ts';
import { paceOf, tableFor, told, type Work } from './move.ts';
import { Progress } from './progress.ts';
import { sweepOn } from './resumed.ts';
import { keyNames, type TableShape } from './shape.ts';
import { keyOf } from './sweep.ts';
import { timeToLive } from './time-to-live.ts';
import { attributeTypes } from './types.ts';
import { encoded, nowOf, type Written } from './value.ts';

/** `db.update`: a sweep over the table that the same call goes on with after a crash. */
export async function updateItems(
  work: Pick<Work, 'api' | 'state' | 'itemsPerSecond' | 'onProgress'>,
  job: UpdateJob,
): Promise<UpdateResult> {
  const { api, state } = work;
  const { name, items, shape } = await tableFor(work, job.table);
  const ttl = (await timeToLive(api, name))?.AttributeName;
  const fieldOf = (of: string): Field & Written => {
    const field = job.collection.fields.get(of);
    if (!field) throw new Error(`${job.table} has no field ${of}`);
    return of === ttl ? { ...field, seconds: true } : field;
  };
  refuseImpossible(job, shape, fieldOf);
  // What no item could take is refused before the first one is read.
  for (const one of job.set) if ('value' in one) encoded(one.value, fieldOf(one.field));
  await state.ready();
  const progress = new Progress(
    state,
    `update#${job.key}`,
    job.key,
    (item) => api.send('TransactWriteItems', { TransactItems: [item] }).then(() => undefined),
    () => api.clock.now(),
  );
  const { values, text } = filterOf(job.where, fieldOf);
  const { matched, changed } = await sweepOn({
    items,
    progress,
    api,
    table: name,
    shape,
    attributes: attributesOf(job),
    ...(text !== '' && { filter: { text, ...(Object.keys(values).length > 0 && { values }) } }),
    pace: await paceOf(work, name),
    hold: async () => undefined,
    settles: job.clocked !== true,
    // Also of an item that is read again: the filter is DynamoDB's, and it has changed since.
    matches: (item) => job.where.every((condition) => holds(condition, item, fieldOf)),
    change: (item) => changeOf(job, item, shape, fieldOf, api.clock.now()),
    told: (seen) => told(work, job.table, seen, items),
  });
  return { matched, modified: changed };
}

function refuseImpossible({ table, set, where, collection }: UpdateJob, shape: TableShape, fieldOf: FieldOf): void {
  const refuse = (message: string, why: string, next: string) =>
    new SvcError('update_invalid', message, { why, state: 'Nothing was changed.', next: [next] });
  for (const assignment of set) {
    const { field } = assignment;
    if (keyNames(shape).includes(field)) {
      throw refuse(
        `The key "${table}.${field}" cannot be changed.`,
        'An item is what its key says.',
        'Put a new item and delete the old one.',
      );
    }
    if ('value' in assignment && assignment.value === null && collection.fields.get(field)?.required) {
      throw new SvcError('data_violates', `"${table}.${field}" is required: it cannot be null.`, {
        why: 'Its definition says so.',
        state: 'Nothing was changed.',
      });
    }
  }
  refuseReadBack(set);
  refuseUnordered(where, fieldOf);
}

/** DynamoDB orders numbers, texts and bytes, and nothing else. */
function refuseUnordered(where: readonly Condition[], fieldOf: FieldOf): void {
  for (const condition of where) {
    const { field, operator } = condition;
    if (operator === 'eq' || operator === 'ne' || operator === 'in') continue;
    const { N, S, B } = encoded(condition.value, fieldOf(field));
    if (N !== undefined || S !== undefined || B !== undefined) continue;
    throw new SvcError(
      'update_invalid',
      `${field}: DynamoDB has no $${operator} for ${JSON.stringify(condition.value)}.`,
      {
        why: 'It orders numbers, texts and bytes, and nothing else.',
        state: 'Nothing was changed.',
        next: [`Name the values: { ${JSON.stringify(field)}: { "$in": [ … ] } }`],
      },
    );
  }
}

function attributesOf({ set, where }: UpdateJob): string[] {
  return [
    ...new Set([...set.map(({ field }) => field), ...set.flatMap(sourcesOf), ...where.map(({ field }) => field)]),
  ];
}

/** A null is written by taking the attribute away: in the key of an index DynamoDB takes no other. */
function changeOf(
  { set, where }: UpdateJob,
  item: Item,
  shape: TableShape,
  fieldOf: FieldOf,
  now: number,
): Change | undefined {
  const values = new Map(set.map((one) => [one.field, valueFor(one, item, fieldOf, now)]));
  const clocks = new Set(set.flatMap((one) => ('now' in one ? [one.field] : [])));
  const changed = [...values].filter(([field, value]) => !unchanged(item[field], value));
  // A clock alone makes no item another one, unless nothing else is set.
  if (changed.every(([field]) => clocks.has(field)) && clocks.size < set.length) return undefined;
  if (changed.length === 0) return undefined;
  const looked = new Set([
    ...changed.map(([field]) => field),
    ...set.flatMap(sourcesOf),
    ...where.map(({ field }) => field),
  ]);
  for (const key of keyNames(shape)) looked.delete(key);
  return {
    key: keyOf(shape, item),
    set: Object.fromEntries(changed.flatMap(([field, value]) => (value ? [[field, value]] : []))),
    remove: changed.filter(([, value]) => !value).map(([field]) => field),
    was: Object.fromEntries([...looked].map((field) => [field, item[field]])),
  };
}

const unchanged = (stored: AttributeValue | undefined, value: AttributeValue | undefined): boolean =>
  isNull(stored) || !value ? isNull(stored) && !value : same(stored, value);

/** Undefined is null. */
function valueFor(assignment: Assignment, item: Item, fieldOf: FieldOf, now: number): AttributeValue | undefined {
  const field = fieldOf(assignment.field);
  if ('now' in assignment) return nowOf(now, field);
  if ('value' in assignment) return assignment.value === null ? undefined : encoded(assignment.value, field);
  const text = assignment.concat.map((part) => ('literal' in part ? part.literal : textIn(item[part.field]))).join('');
  // Digits alone: $CONCAT knows no 1e3 and no 5.0, which a change of type takes.
  const isWhole = attributeTypes[field.type] === 'N';
  const fit = isWhole && !/^-?\d+$/.test(text) ? { problem: 'it is no whole number' } : converted({ S: text }, field);
  if ('value' in fit) return fit.value;
  throw misfit(assignment.field, fit.problem);
}

const textIn = (value: AttributeValue | undefined): string => value?.S ?? value?.N ?? '';

function misfit(field: string, why: string): SvcError {
  return new SvcError('data_violates', `What $CONCAT gives does not fit "${field}" in an item.`, {
    why,
    state: 'Items before it are changed; the same update goes on from there.',
    next: ['Correct that item, or leave it out with `where`.'],
  });
}
