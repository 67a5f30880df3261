import { isDeepStrictEqual } from 'node:util';
import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import type { Assignment, Condition, UpdateJob, UpdateResult } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import type { Json } from '../../../../core/json.ts';
import type { Field } from '../../../../core/schema/model.ts';
import { compareDecimals } from '../../shared/decimal.ts';
import { assertNoSelfReads, sourceFields } from '../../shared/update-assignments.ts';
import { keyNames, type TableShape } from '../catalog/table-shape.ts';
import { attributeTypes } from '../compile/types.ts';
import { describeTimeToLive } from '../connection/wait-for-table.ts';
import { type RunContext, reportProgress, requireTable } from '../run/run-context.ts';
import { encodeNow, encodeValue, type FieldEncoding, type Item, isNull } from './attribute.ts';
import type { ItemUpdate } from './batch-update.ts';
import { convertValue } from './convert-value.ts';
import { resumeScan, ScanProgress } from './resumable-scan.ts';
import { itemKey, nameInFilter } from './scan.ts';

/** `db.update`: scans the table. The same call resumes the scan after a crash. */
export async function updateItems(
  context: Pick<RunContext, 'client' | 'state' | 'itemsPerSecond' | 'onProgress'>,
  job: UpdateJob,
): Promise<UpdateResult> {
  const { client, state } = context;
  const { name, items, shape, limits } = await requireTable(context, job.table);
  const ttl = (await describeTimeToLive(client, name))?.AttributeName;
  const fieldOf = (of: string): Field & FieldEncoding => {
    const field = job.collection.fields.get(of);
    if (!field) throw new Error(`${job.table} has no field ${of}`);
    return of === ttl ? { ...field, seconds: true } : field;
  };
  assertUpdatable(job, shape, fieldOf);
  // Rejects unencodable values before the first item is read.
  for (const one of job.set) if ('value' in one) encodeValue(one.value, fieldOf(one.field));
  await state.ensure();
  const progress = new ScanProgress(
    state,
    `update#${job.key}`,
    job.key,
    (item) => client.send('TransactWriteItems', { TransactItems: [item] }).then(() => undefined),
    () => client.clock.now(),
  );
  const { values, text } = filterExpression(job.where, fieldOf);
  const { matched, changed } = await resumeScan({
    items,
    progress,
    client,
    table: name,
    shape,
    attributes: attributesRead(job),
    ...(text !== '' && { filter: { text, ...(Object.keys(values).length > 0 && { values }) } }),
    limits,
    assertLease: async () => undefined,
    repeatable: job.usesNow !== true,
    // DynamoDB's filter does not apply to an item that is read again.
    matches: (item) => job.where.every((condition) => matchesCondition(condition, item, fieldOf)),
    updateFor: (item) => itemUpdate(job, item, shape, fieldOf, client.clock.now()),
    onProgress: (scanned) => reportProgress(context, job.table, scanned, items),
  });
  return { matched, modified: changed };
}

function assertUpdatable({ table, set, where, collection }: UpdateJob, shape: TableShape, fieldOf: FieldLookup): void {
  const invalid = (message: string, why: string, next: string) =>
    new SvcError('update_invalid', message, { why, state: 'Nothing was changed.', next: [next] });
  for (const assignment of set) {
    const { field } = assignment;
    if (keyNames(shape).includes(field)) {
      throw invalid(
        `The key "${table}.${field}" cannot be changed.`,
        'The key identifies the item.',
        'Put a new item and delete the old one.',
      );
    }
    if ('value' in assignment && assignment.value === null && collection.fields.get(field)?.required) {
      throw new SvcError('data_violates', `The field "${table}.${field}" cannot be null.`, {
        why: 'It is required.',
        state: 'Nothing was changed.',
      });
    }
  }
  assertNoSelfReads(set);
  assertComparable(where, fieldOf);
}

/** DynamoDB compares only numbers, strings and bytes. */
function assertComparable(where: readonly Condition[], fieldOf: FieldLookup): void {
  for (const condition of where) {
    const { field, operator } = condition;
    if (operator === 'eq' || operator === 'ne' || operator === 'in') continue;
    const { N, S, B } = encodeValue(condition.value, fieldOf(field));
    if (N !== undefined || S !== undefined || B !== undefined) continue;
    throw new SvcError(
      'update_invalid',
      `${field}: DynamoDB has no $${operator} for ${JSON.stringify(condition.value)}.`,
      {
        why: 'DynamoDB compares only numbers, strings and bytes.',
        state: 'Nothing was changed.',
        next: [`List the values: { ${JSON.stringify(field)}: { "$in": [ … ] } }`],
      },
    );
  }
}

function attributesRead({ set, where }: UpdateJob): string[] {
  return [
    ...new Set([...set.map(({ field }) => field), ...set.flatMap(sourceFields), ...where.map(({ field }) => field)]),
  ];
}

/** Null is written by removing the attribute: the key of an index cannot be NULL. */
function itemUpdate(
  { set, where }: UpdateJob,
  item: Item,
  shape: TableShape,
  fieldOf: FieldLookup,
  now: number,
): ItemUpdate | undefined {
  const values = new Map(set.map((one) => [one.field, assignedValue(one, item, fieldOf, now)]));
  const times = new Set(set.flatMap((one) => ('now' in one ? [one.field] : [])));
  const changed = [...values].filter(([field, value]) => !isUnchanged(item[field], value));
  // A new time alone is not a change, unless the update sets only times.
  if (changed.every(([field]) => times.has(field)) && times.size < set.length) return undefined;
  if (changed.length === 0) return undefined;
  const guarded = new Set([
    ...changed.map(([field]) => field),
    ...set.flatMap(sourceFields),
    ...where.map(({ field }) => field),
  ]);
  for (const key of keyNames(shape)) guarded.delete(key);
  return {
    key: itemKey(shape, item),
    set: Object.fromEntries(changed.flatMap(([field, value]) => (value ? [[field, value]] : []))),
    remove: changed.filter(([, value]) => !value).map(([field]) => field),
    expected: Object.fromEntries([...guarded].map((field) => [field, item[field]])),
  };
}

const isUnchanged = (stored: AttributeValue | undefined, value: AttributeValue | undefined): boolean =>
  isNull(stored) || !value ? isNull(stored) && !value : equalAttributes(stored, value);

/** Undefined means null. */
function assignedValue(
  assignment: Assignment,
  item: Item,
  fieldOf: FieldLookup,
  now: number,
): AttributeValue | undefined {
  const field = fieldOf(assignment.field);
  if ('now' in assignment) return encodeNow(now, field);
  if ('value' in assignment) return assignment.value === null ? undefined : encodeValue(assignment.value, field);
  const text = assignment.concat
    .map((part) => ('literal' in part ? part.literal : concatText(item[part.field])))
    .join('');
  // $CONCAT accepts digits only; a change of type also accepts 1e3 and 5.0.
  const isWhole = attributeTypes[field.type] === 'N';
  const result =
    isWhole && !/^-?\d+$/.test(text) ? { problem: 'it is not a whole number' } : convertValue({ S: text }, field);
  if ('value' in result) return result.value;
  throw invalidConcatError(assignment.field, result.problem);
}

const concatText = (value: AttributeValue | undefined): string => value?.S ?? value?.N ?? '';

function invalidConcatError(field: string, why: string): SvcError {
  return new SvcError('data_violates', `The result of $CONCAT for "${field}" is not valid in an item.`, {
    why,
    state: 'Earlier items are updated; the same update resumes from there.',
    next: ['Correct that item, or exclude it with `where`.'],
  });
}

type FieldLookup = (name: string) => Field & FieldEncoding;

const OPERATORS = { eq: '=', ne: '<>', gt: '>', gte: '>=', lt: '<', lte: '<=' } as const;

/** The conditions as a filter expression. A missing attribute and NULL are both null; null differs from every value. */
function filterExpression(where: readonly Condition[], fieldOf: FieldLookup): { text: string; values: Item } {
  const values: Record<string, AttributeValue> = {};
  const placeholder = (value: AttributeValue) => {
    const name = `:v${Object.keys(values).length}`;
    values[name] = value;
    return name;
  };
  const parts = where.map((condition) => {
    const name = nameInFilter(condition.field);
    const field = fieldOf(condition.field);
    const absent = () => `(attribute_not_exists(${name}) OR attribute_type(${name}, ${placeholder({ S: 'NULL' })}))`;
    const equal = (value: Json) => (value === null ? absent() : `${name} = ${placeholder(encodeValue(value, field))}`);
    if (condition.operator === 'in') {
      return condition.value.length === 0
        ? `(attribute_exists(${name}) AND attribute_not_exists(${name}))`
        : `(${condition.value.map(equal).join(' OR ')})`;
    }
    const { operator, value } = condition;
    if (operator === 'eq') return equal(value);
    if (value === null)
      return `(attribute_exists(${name}) AND NOT attribute_type(${name}, ${placeholder({ S: 'NULL' })}))`;
    return `${name} ${OPERATORS[operator]} ${placeholder(encodeValue(value, field))}`;
  });
  return { text: parts.join(' AND '), values };
}

/** Whether an item meets the condition. */
function matchesCondition(condition: Condition, item: Item, fieldOf: FieldLookup): boolean {
  const stored = item[condition.field];
  const field = fieldOf(condition.field);
  const equal = (value: Json) =>
    value === null ? isNull(stored) : !isNull(stored) && equalAttributes(stored, encodeValue(value, field));
  if (condition.operator === 'in') return condition.value.some(equal);
  const { operator, value } = condition;
  if (operator === 'eq') return equal(value);
  if (operator === 'ne') return !equal(value);
  if (isNull(stored)) return false;
  const order = compareAttributes(stored, encodeValue(value, field));
  if (order === undefined) return false;
  return { gt: order > 0, gte: order >= 0, lt: order < 0, lte: order <= 0 }[operator];
}

/** Equal as values: the digits of numbers may differ. */
const equalAttributes = (a: AttributeValue, b: AttributeValue): boolean =>
  a.N !== undefined && b.N !== undefined ? compareAttributes(a, b) === 0 : isDeepStrictEqual(a, b);

/** Undefined for values of different types, which have no order. */
function compareAttributes(a: AttributeValue, b: AttributeValue): number | undefined {
  if (a.N !== undefined && b.N !== undefined) return compareDecimals(a.N, b.N);
  if (a.S !== undefined && b.S !== undefined) return Buffer.compare(Buffer.from(a.S), Buffer.from(b.S));
  return a.B !== undefined && b.B !== undefined ? Buffer.compare(a.B, b.B) : undefined;
}
