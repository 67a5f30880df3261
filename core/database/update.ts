import { createHash } from 'node:crypto';
import type { Assignment, Condition, Connection, UpdateJob } from '../dialect.ts';
import { type ErrorCode, SvcError } from '../errors.ts';
import { canonicalJson, isPlainObject, type Json } from '../json.ts';
import { ownCopy, refuseArguments } from '../migration/arguments.ts';
import { nearest } from '../nearest.ts';
import { CLOCK_TYPES, fittedLiteral } from '../schema/default.ts';
import type { Collection, Field } from '../schema/model.ts';
import { type Shape, shapeProblems } from '../schema/shape.ts';
import { withNow } from './now.ts';

export interface UpdateRequest {
  readonly table: string;
  /**
   * Values by field: a literal, null, `'now'` for dates and times, or `{ $CONCAT: [...] }` of field names, literal
   * strings and `{ $literal }`.
   */
  readonly data: { readonly [field: string]: Json };
  /** Equality, null, or `{ $gt, $gte, $lt, $lte, $ne, $in }`; all must hold. */
  readonly where?: { readonly [field: string]: Json };
  /** Says that every row is meant. */
  readonly all?: boolean;
}

const OPERATORS = { $ne: 'ne', $gt: 'gt', $gte: 'gte', $lt: 'lt', $lte: 'lte' } as const;
const REQUEST: Shape = {
  properties: { table: 'string', data: { map: 'json' }, where: { map: 'json' }, all: 'boolean' },
  required: ['table', 'data'],
};
const CONCATENATES = new Set(['string', 'text', 'enum', 'uuid', 'integer', 'bigint', 'smallint']);

/** The request against the table as the catalog has it. Throws `update_invalid` before anything has changed. */
export async function updateJob(request: UpdateRequest, connection: Connection): Promise<UpdateJob> {
  refuseArguments('update', shapeProblems(request, REQUEST), invalidCode);
  const { table, data, where, all } = ownCopy(request, 'update', 'update_invalid');
  if ((where === undefined || Object.keys(where).length === 0) && all !== true) {
    throw invalid('An update needs `where`, or `all: true` where every row is meant.');
  }
  if (where !== undefined && all === true) throw invalid('`where` and `all: true` contradict each other.');
  if (Object.keys(data).length === 0) throw invalid('`data` names no field.');
  const collection = (await connection.introspect([table])).get(table);
  if (!collection)
    throw new SvcError('collection_unknown', `The table "${table}" does not exist.`, { state: 'Nothing was changed.' });
  const fields = [data, where ?? {}].map((map) =>
    Object.entries(map).map(([name, value]): [Field, Json] => [fieldOf(collection, name), value]),
  );
  const [wanted = [], asked = []] = await atClock(fields, connection);
  const set = wanted.map(([field, value]) => assignment(field, value, collection));
  const key = createHash('sha256')
    .update(canonicalJson({ table, data, where: where ?? null }))
    .digest('hex');
  const clocked = fields[0]?.some(saysNow);
  return {
    table,
    collection,
    ...(clocked && { clocked }),
    set: [...set, ...touched(collection, data)],
    where: asked.flatMap(([field, value]) => conditions(field, value)),
    key,
  };
}

const saysNow = ([{ type }, value]: [Field, Json]): boolean =>
  CLOCK_TYPES.has(type) && JSON.stringify([value]).includes('"now"');

/** `'now'` is one moment of the engine's clock, for every row and field. */
async function atClock(fields: [Field, Json][][], connection: Connection): Promise<[Field, Json][][]> {
  if (!fields.flat().some(saysNow)) return fields;
  const now = await connection.now();
  return fields.map((list) => list.map((one) => (saysNow(one) ? [one[0], withNow(one[1], one[0].type, now)] : one)));
}

function assignment(field: Field, value: Json, collection: Collection): Assignment {
  const operator = isPlainObject(value) ? Object.keys(value).find((key) => key.startsWith('$')) : undefined;
  if (operator === undefined || (field.type === 'json' && operator !== '$CONCAT' && !nearest(operator, ['$CONCAT']))) {
    const problem = value === null ? undefined : misfit(value, field);
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
    throw invalid(`${field.name}: $CONCAT takes an array of field names and literal strings, and stands alone.`);
  }
  if (!CONCATENATES.has(field.type)) {
    throw invalid(`${field.name}: $CONCAT gives a text, and the field is of type ${field.type}.`, [
      `It can be given to fields of these types: ${[...CONCATENATES].join(', ')}.`,
    ]);
  }
  return { field: field.name, concat: parts.map((part: unknown) => concatPart(part, field, collection)) };
}

/** Why a literal cannot be a value of the field. */
function misfit(value: Json, field: Omit<Field, 'name'>): string | undefined {
  if (field.type === 'array' && Array.isArray(value)) {
    const items = (value as readonly Json[]).filter((item) => item !== null);
    return items.map((item) => misfit(item, { type: field.items ?? 'string' })).find((why) => why !== undefined);
  }
  const fitted = fittedLiteral(value, field);
  return 'problem' in fitted ? fitted.problem : undefined;
}

function concatPart(part: unknown, target: Field, collection: Collection): { field: string } | { literal: string } {
  if (isPlainObject(part) && typeof part.$literal === 'string' && Object.keys(part).length === 1)
    return { literal: part.$literal };
  if (typeof part !== 'string')
    throw invalid(`${target.name}: an element of $CONCAT is a string or { "$literal": string }.`);
  const field = collection.fields.get(part);
  if (!field) return { literal: part };
  if (!CONCATENATES.has(field.type)) {
    throw invalid(`${target.name}: $CONCAT cannot read "${part}", which is of type ${field.type}.`, [
      `It reads fields of these types: ${[...CONCATENATES].join(', ')}.`,
      `If the text "${part}" is meant: { "$literal": ${JSON.stringify(part)} }.`,
    ]);
  }
  return { field: part };
}

/** A table made with `timestamps: true` has its `updatedAt` set. */
function touched({ fields }: Collection, data: UpdateRequest['data']): Assignment[] {
  const stamped = fields.get('createdAt')?.type === 'timestamp' && fields.get('updatedAt')?.type === 'timestamp';
  return stamped && !('updatedAt' in data) ? [{ field: 'updatedAt', now: true }] : [];
}

function conditions(field: Field, value: Json): Condition[] {
  const asked = isPlainObject(value) ? Object.entries(value as Record<string, Json>) : [];
  if (!asked.some(([operator]) => operator.startsWith('$'))) {
    return [{ field: field.name, operator: 'eq', value: comparable(value, field) }];
  }
  return asked.map(([operator, operand]): Condition => {
    if (operator === '$in') {
      if (!Array.isArray(operand)) throw invalid(`${field.name}: $in takes an array.`);
      const among = (operand as readonly Json[]).map((one) => comparable(one, field));
      return { field: field.name, operator: 'in', value: among };
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

/** A text may be longer than the field's, and none of its enum: rows may hold such. */
function comparable(value: Json | undefined, field: Field): Json {
  if (value === null) return value;
  const problem = value === undefined ? 'undefined is no value' : unlike(value, field);
  if (value !== undefined && problem === undefined) return value;
  throw invalid(
    `${field.name}: ${JSON.stringify(value) ?? 'undefined'} is nothing to compare a ${field.type} with: ${problem}.`,
  );
}

function unlike(value: Json, field: Field): string | undefined {
  const { length: _, ...anyLength } = field;
  if (field.type === 'array' && !Array.isArray(value)) return undefined;
  return misfit(value, field.type === 'enum' ? { type: 'text' } : anyLength);
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
