import { createHash } from 'node:crypto';
import type { Assignment, Condition, Connection, UpdateJob } from '../dialect.ts';
import type { ErrorCode } from '../error-codes.ts';
import { SvcError } from '../errors.ts';
import { canonicalJson, isPlainObject, type Json } from '../json.ts';
import { assertArguments, deepCopy } from '../migration/arguments.ts';
import { nearest } from '../nearest.ts';
import { acceptsDate, dateText, type FieldValue, mapDates } from '../schema/dates.ts';
import { normalizeLiteral, nowLiteral, TEMPORAL_TYPES } from '../schema/literal.ts';
import type { Collection, Field, FieldType } from '../schema/model.ts';
import { type Shape, shapeProblems } from '../validate-shape.ts';

/**
 * What a field is compared with: a value, null, `'now'` for dates and times, a Date for timestamps, or operators, all of
 * which must match.
 */
export type Comparison = null | boolean | number | string | Date | readonly (Json | Date)[] | Operators | JsonObject;

interface Operators {
  readonly $ne?: FieldValue;
  readonly $gt?: FieldValue;
  readonly $gte?: FieldValue;
  readonly $lt?: FieldValue;
  readonly $lte?: FieldValue;
  readonly $in?: readonly FieldValue[];
}

/** The value of a json field. The compiler quotes the message for an operator that does not exist. */
type JsonObject = { readonly [key: string]: Json } & { readonly [operator: `$${string}`]: 'is not an operator' };

export interface UpdateRequest {
  readonly table: string;
  /**
   * Values by field: a literal, null, `'now'` for dates and times, a Date for timestamps, or `{ $CONCAT: [...] }` of
   * field names, literal strings and `{ $literal }`.
   */
  readonly data: { readonly [field: string]: FieldValue };
  /** A row must match all of them. */
  readonly where?: { readonly [field: string]: Comparison };
  /** Must be true to update every row: an update with neither `where` nor `all` is rejected. */
  readonly all?: boolean;
}

/** A request with Dates as text. */
interface JsonRequest {
  readonly table: string;
  readonly data: { readonly [field: string]: Json };
  readonly where?: { readonly [field: string]: Json };
  readonly all?: boolean;
}

const OPERATORS = { $ne: 'ne', $gt: 'gt', $gte: 'gte', $lt: 'lt', $lte: 'lte' } as const;
const REQUEST_SHAPE: Shape = {
  properties: { table: 'string', data: { map: 'json' }, where: { map: 'json' }, all: 'boolean' },
  required: ['table', 'data'],
};
const CONCAT_TYPES = new Set(['string', 'text', 'enum', 'uuid', 'integer', 'bigint', 'smallint']);

/** Validates a request against the table in the catalog. Throws `update_invalid`. */
export async function updateJob(request: UpdateRequest, connection: Connection): Promise<UpdateJob> {
  const json = mapDates(request, dateText);
  assertArguments('update', shapeProblems(json, REQUEST_SHAPE), invalidCode);
  const { table, data, where, all } = json as JsonRequest;
  const given = deepCopy(request, 'update', 'update_invalid');
  if ((where === undefined || Object.keys(where).length === 0) && all !== true) {
    throw invalid('An update needs `where`, or `all: true` to update every row.');
  }
  if (where !== undefined && all === true) throw invalid('`where` and `all: true` contradict each other.');
  if (Object.keys(data).length === 0) throw invalid('`data` contains no fields.');
  const collection = (await connection.introspect([table])).get(table);
  if (!collection)
    throw new SvcError('collection_unknown', `The table "${table}" does not exist.`, { state: 'Nothing was changed.' });
  const fields = [given.data, given.where ?? {}].map((map) =>
    Object.entries(map).map(([name, value]): [Field, Json] => jsonValue(fieldOf(collection, name), value)),
  );
  const [dataValues = [], whereValues = []] = await withCurrentTime(fields, connection);
  const set = dataValues.map(([field, value]) => assignment(field, value, collection));
  const key = createHash('sha256')
    .update(canonicalJson({ table, data, where: where ?? null }))
    .digest('hex');
  const usesNow = fields[0]?.some(containsNow);
  return {
    table,
    collection,
    ...(usesNow && { usesNow }),
    set: [...set, ...timestampAssignments(collection, data)],
    where: whereValues.flatMap(([field, value]) => conditions(field, value)),
    key,
  };
}

/** The field with its value, in which a timestamp's Dates are text. */
function jsonValue(field: Field, value: unknown): [Field, Json] {
  const json = mapDates(value, (date) => {
    if (acceptsDate(field)) return dateText(date);
    const example = TEMPORAL_TYPES.has(field.type) ? `"${nowLiteral(field.type, new Date(0))}"` : 'date.toISOString()';
    throw invalid(`${field.name}: only a timestamp accepts a Date, and the field has the type ${field.type}.`, [
      `Write it as a string: ${example}`,
    ]);
  });
  return [field, json as Json];
}

const containsNow = ([{ type }, value]: [Field, Json]): boolean =>
  TEMPORAL_TYPES.has(type) && JSON.stringify([value]).includes('"now"');

/** Replaces every `'now'` by the same moment of the engine's clock. */
async function withCurrentTime(fields: [Field, Json][][], connection: Connection): Promise<[Field, Json][][]> {
  if (!fields.flat().some(containsNow)) return fields;
  const now = await connection.now();
  return fields.map((entries) =>
    entries.map((entry) => (containsNow(entry) ? [entry[0], replaceNow(entry[1], entry[0].type, now)] : entry)),
  );
}

function assignment(field: Field, value: Json, collection: Collection): Assignment {
  const operator = isPlainObject(value) ? Object.keys(value).find((key) => key.startsWith('$')) : undefined;
  if (operator === undefined || (field.type === 'json' && operator !== '$CONCAT' && !nearest(operator, ['$CONCAT']))) {
    const problem = value === null ? undefined : literalProblem(value, field);
    if (problem === undefined) return { field: field.name, value };
    throw invalid(`${field.name}: ${JSON.stringify(value)} does not fit: ${problem}.`);
  }
  if (operator !== '$CONCAT') {
    throw invalid(`${field.name}: "${operator}" is not an operator.`, [
      nearest(operator, ['$CONCAT']) ? 'Did you mean "$CONCAT"?' : 'Known: $CONCAT.',
    ]);
  }
  const { $CONCAT: parts, ...others } = value as Record<string, Json>;
  if (!Array.isArray(parts) || parts.length === 0 || Object.keys(others).length > 0) {
    throw invalid(
      `${field.name}: $CONCAT accepts an array of field names and literal strings, and no other operator next to it.`,
    );
  }
  if (!CONCAT_TYPES.has(field.type)) {
    throw invalid(`${field.name}: $CONCAT produces text, and the field has the type ${field.type}.`, [
      `It can be used for fields of these types: ${[...CONCAT_TYPES].join(', ')}.`,
    ]);
  }
  return { field: field.name, concat: parts.map((part: unknown) => concatPart(part, field, collection)) };
}

/** Why the literal is not a valid value of the field; undefined if it is. */
function literalProblem(value: Json, field: Omit<Field, 'name'>): string | undefined {
  if (field.type === 'array' && Array.isArray(value)) {
    const items = (value as readonly Json[]).filter((item) => item !== null);
    return items
      .map((item) => literalProblem(item, { type: field.items ?? 'string' }))
      .find((why) => why !== undefined);
  }
  const normalized = normalizeLiteral(value, field);
  return 'problem' in normalized ? normalized.problem : undefined;
}

function concatPart(part: unknown, target: Field, collection: Collection): { field: string } | { literal: string } {
  if (isPlainObject(part) && typeof part.$literal === 'string' && Object.keys(part).length === 1)
    return { literal: part.$literal };
  if (typeof part !== 'string')
    throw invalid(`${target.name}: an element of $CONCAT is a string or { "$literal": string }.`);
  const field = collection.fields.get(part);
  if (!field) return { literal: part };
  if (!CONCAT_TYPES.has(field.type)) {
    throw invalid(`${target.name}: $CONCAT cannot read "${part}", which has the type ${field.type}.`, [
      `It accepts fields of these types: ${[...CONCAT_TYPES].join(', ')}.`,
      `For the literal text "${part}": { "$literal": ${JSON.stringify(part)} }.`,
    ]);
  }
  return { field: part };
}

/** Sets `updatedAt` in tables created with `timestamps: true`. */
function timestampAssignments({ fields }: Collection, data: JsonRequest['data']): Assignment[] {
  const hasTimestamps = fields.get('createdAt')?.type === 'timestamp' && fields.get('updatedAt')?.type === 'timestamp';
  return hasTimestamps && !('updatedAt' in data) ? [{ field: 'updatedAt', now: true }] : [];
}

function conditions(field: Field, value: Json): Condition[] {
  const operators = isPlainObject(value) ? Object.entries(value as Record<string, Json>) : [];
  if (!operators.some(([operator]) => operator.startsWith('$'))) {
    return [{ field: field.name, operator: 'eq', value: comparable(value, field) }];
  }
  return operators.map(([operator, operand]): Condition => {
    if (operator === '$in') {
      if (!Array.isArray(operand)) throw invalid(`${field.name}: $in accepts an array.`);
      const values = (operand as readonly Json[]).map((one) => comparable(one, field));
      return { field: field.name, operator: 'in', value: values };
    }
    const known = Object.hasOwn(OPERATORS, operator) ? OPERATORS[operator as keyof typeof OPERATORS] : undefined;
    if (!known) {
      throw invalid(`${field.name}: "${operator}" is not an operator.`, [
        `Known: ${[...Object.keys(OPERATORS), '$in'].join(', ')}.`,
      ]);
    }
    if (operand === null && known !== 'ne') throw invalid(`${field.name}: ${operator} cannot compare with null.`);
    return { field: field.name, operator: known, value: comparable(operand, field) };
  });
}

/** Length limits and enum values are not checked: existing rows may violate them. */
function comparable(value: Json | undefined, field: Field): Json {
  if (value === null) return value;
  const problem = value === undefined ? 'undefined is not a value' : comparisonProblem(value, field);
  if (value !== undefined && problem === undefined) return value;
  throw invalid(
    `${field.name}: ${JSON.stringify(value) ?? 'undefined'} cannot be compared with a ${field.type}: ${problem}.`,
  );
}

function comparisonProblem(value: Json, field: Field): string | undefined {
  const { length: _, ...anyLength } = field;
  if (field.type === 'array' && !Array.isArray(value)) return undefined;
  return literalProblem(value, field.type === 'enum' ? { type: 'text' } : anyLength);
}

function fieldOf(collection: Collection, name: string): Field {
  const field = collection.fields.get(name);
  if (field) return field;
  const near = nearest(name, [...collection.fields.keys()]);
  throw new SvcError('field_unknown', `The table "${collection.name}" has no field "${name}".`, {
    state: 'Nothing was changed.',
    ...(near !== undefined && { next: [`Did you mean "${near}"?`] }),
  });
}

function invalidCode(): ErrorCode {
  return 'update_invalid';
}

function invalid(message: string, next: readonly string[] = []): SvcError {
  return new SvcError('update_invalid', message, { state: 'Nothing was changed.', next });
}

/** Replaces `'now'` in a value or in its operators by a literal of the type, in UTC. */
function replaceNow(value: Json, type: FieldType, now: Date): Json {
  if (value === 'now') return nowLiteral(type, now);
  if (Array.isArray(value)) return value.map((one: Json) => replaceNow(one, type, now));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, replaceNow(one, type, now)]));
}
