import type { Assignment, Condition, UpdateJob } from '../../../core/dialect.ts';
import { SvcError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json.ts';
import type { Field } from '../../../core/schema/model.ts';
import type { Grammar } from '../../sql/grammar.ts';
import { single } from '../../sql/single.ts';
import { bytesOf, quote, text } from './quote.ts';
import type { Traits } from './traits.ts';
import { UUID } from './types.ts';
import { isBefore, type Version } from './version.ts';

export interface UpdatePlace {
  readonly grammar: Grammar;
  readonly traits: Traits;
  /** Of the server. */
  readonly version: Version;
}

/** How many rows match, and one statement that changes those whose values it would make others. */
export function updateTexts(place: UpdatePlace, job: UpdateJob): { readonly count: string; readonly update: string } {
  const { grammar } = place;
  const { collection, set, where } = job;
  const table = quote(job.table);
  const fieldOf = (name: string): Field => {
    const field = collection.fields.get(name);
    if (!field) throw new Error(`${job.table} has no field ${name}`);
    return field;
  };
  const conditions = where.map((condition) => conditionText(place, condition, fieldOf(condition.field)));
  const matching = conditions.length > 0 ? conditions.join(' AND ') : 'TRUE';
  const values = inOrder(set).map((assignment) => {
    const field = fieldOf(assignment.field);
    return { assignment, field, value: valueText(grammar, assignment, field) };
  });
  // A clock alone makes no row another one, unless nothing else is set.
  const changing = values
    .filter(({ assignment }) => !('now' in assignment))
    .map(({ assignment, field, value }) => `NOT ${unchanged(place, assignment, field, value)}`);
  const changes = changing.length > 0 ? `(${changing.join(' OR ')})` : 'TRUE';
  const assignments = values.map(({ assignment, value }) => `${quote(assignment.field)} = ${value}`);
  return {
    count: `SELECT COUNT(*) AS matched FROM ${table} WHERE ${matching}`,
    update: `UPDATE ${table} SET ${assignments.join(', ')} WHERE (${matching}) AND ${changes}`,
  };
}

/**
 * Both engines assign from left to right and read what they have assigned: who reads a field goes before who sets it.
 * Two fields that read each other have no such order.
 */
function inOrder(set: readonly Assignment[]): Assignment[] {
  const left = [...set];
  const ordered: Assignment[] = [];
  while (left.length > 0) {
    const next = left.findIndex((one) => !left.some((other) => other !== one && reads(other, one.field)));
    const [chosen] = left.splice(Math.max(next, 0), 1);
    if (next < 0 || !chosen) {
      throw new SvcError('update_invalid', 'Fields that read each other cannot be set in one update on this engine.', {
        why: `It assigns one after the other, and these read what another one sets: ${set.map(({ field }) => field).join(', ')}.`,
        state: 'Nothing was changed.',
        next: ['Make two updates of it, by way of a third field.'],
      });
    }
    ordered.push(chosen);
  }
  return ordered;
}

const reads = (assignment: Assignment, field: string): boolean =>
  'concat' in assignment && assignment.concat.some((part) => 'field' in part && part.field === field);

const TEXTS: ReadonlySet<string> = new Set(['string', 'text', 'enum', 'uuid']);
const INTEGERS: ReadonlySet<string> = new Set(['integer', 'bigint', 'smallint']);

/** Equal to the last character, where the collation of a column takes more for equal. */
function unchanged(place: UpdatePlace, assignment: Assignment, field: Field, value: string): string {
  const column = quote(field.name);
  if (TEXTS.has(field.type)) return `(CAST(${column} AS BINARY) <=> CAST(${value} AS BINARY))`;
  // An older server keeps the text that it is given, and tells those apart.
  if ('value' in assignment && !(isJson(field) && isOld(place))) return same(place, assignment.value, field);
  return `(${column} <=> ${INTEGERS.has(field.type) && 'concat' in assignment ? `CAST(${value} AS SIGNED)` : value})`;
}

const isJson = ({ type }: Field): boolean => type === 'json' || type === 'array';
const isOld = ({ traits: { json }, version }: UpdatePlace): boolean =>
  json.since !== undefined && isBefore(version, json.since);

/** True or false, also where one of the two is null. */
function same({ grammar, traits }: UpdatePlace, value: Json, field: Field): string {
  const column = quote(field.name);
  if (value === null) return `(${column} IS NULL)`;
  return isJson(field)
    ? `COALESCE(${traits.json.same(column, grammar.literal(value, field))}, FALSE)`
    : `(${column} <=> ${compared(grammar, value, field)})`;
}

/** A literal that a field can equal; never null. */
function compared(grammar: Grammar, value: Json, field: Field): string {
  const written = grammar.literal(value, field);
  return field.type === 'float' ? single(written) : written;
}

function valueText(grammar: Grammar, assignment: Assignment, field: Field): string {
  if ('now' in assignment) return grammar.now(field.type);
  if ('value' in assignment) return typed(grammar, assignment.value, field);
  // CONCAT, unlike that of PostgreSQL, is NULL where one part is.
  const parts = assignment.concat.map((part) =>
    'field' in part ? `COALESCE(CAST(${quote(part.field)} AS CHAR), '')` : text(part.literal),
  );
  return fitting(`CONCAT(${parts.join(', ')})`, field);
}

/** A text that the type of its field does not know is given as one that the server refuses, in place of what it makes of it. */
function fitting(value: string, { type, enumValues = [] }: Field): string {
  if (type === 'uuid') return `CASE WHEN ${value} REGEXP '${UUID}' THEN LOWER(${value}) ELSE REPEAT('?', 37) END`;
  if (type !== 'enum') return value;
  // A text of digits that is no word is the number of one to it.
  const words = enumValues.map(text).join(', ');
  const none = '?'.repeat(1 + Math.max(0, ...enumValues.map(({ length }) => length)));
  return `CASE WHEN ${bytesOf(value)} IN (${words}) THEN ${value} ELSE ${text(none)} END`;
}

const OPERATORS = { gt: '>', gte: '>=', lt: '<', lte: '<=' } as const;

function conditionText(place: UpdatePlace, condition: Condition, field: Field): string {
  const { grammar, traits } = place;
  const column = quote(field.name);
  const json = isJson(field);
  if (json && isOld(place) && condition.value !== null)
    throw notCompared(field, `JSON is compared from version ${traits.json.since?.join('.')} on.`);
  if (condition.operator === 'in') {
    const values = condition.value.filter((value) => value !== null);
    const texts = values.map((value) => (json ? same(place, value, field) : compared(grammar, value, field)));
    const found = json ? `(${texts.join(' OR ')})` : `${column} IN (${texts.join(', ')})`;
    const among = values.length > 0 ? found : 'FALSE';
    return condition.value.includes(null) ? `(${among} OR ${column} IS NULL)` : among;
  }
  const { operator, value } = condition;
  if (operator === 'ne') return `NOT ${same(place, value, field)}`;
  if (operator === 'eq')
    return value === null || json ? same(place, value, field) : `${column} = ${compared(grammar, value, field)}`;
  if (json && !traits.json.ordered) throw notCompared(field, 'It keeps JSON as a text, and texts order otherwise.');
  const written = value === null ? 'NULL' : compared(grammar, value, field);
  return `${column} ${OPERATORS[operator]} ${json ? traits.json.ordered?.(written) : written}`;
}

function notCompared({ name, type }: Field, why: string): SvcError {
  return new SvcError('not_supported', `${name}: this server does not compare a field of type ${type} like that.`, {
    why,
    state: 'Nothing was changed.',
    next: ['Name the rows by another field.'],
  });
}

const typed = (grammar: Grammar, value: Json, field: Field): string =>
  value === null ? 'NULL' : grammar.literal(value, field);
