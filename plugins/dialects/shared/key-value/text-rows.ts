import type { Assignment, Condition, UpdateJob } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import { canonicalJson, type Json, tryParseJson } from '../../../../core/json.ts';
import { nowLiteral, TEMPORAL_TYPES } from '../../../../core/schema/literal.ts';
import type { Field, FieldType } from '../../../../core/schema/model.ts';
import { canonicalText } from '../canonical-text.ts';
import { compareDecimals } from '../decimal.ts';
import { assertNoSelfReads, sourceFields } from '../update-assignments.ts';
import type { RowValues } from './driver.ts';

/** The values of a row as texts, by field. A missing value is null; bytes are base64. */
export type TextRow = Readonly<Record<string, string | null>>;

const encodingOf = ({ type }: Pick<Field, 'type'>) => (type === 'binary' || type === 'blob' ? 'base64' : 'utf8');

export const decodeRow = (fields: readonly Field[], values: RowValues): TextRow =>
  Object.fromEntries(
    fields.map((field) => {
      const bytes = values[field.name];
      return [field.name, bytes ? Buffer.from(bytes).toString(encodingOf(field)) : null];
    }),
  );

export const encodeRow = (fields: readonly Field[], row: TextRow): RowValues =>
  Object.fromEntries(
    fields.flatMap((field) => {
      const text = row[field.name];
      return text === undefined ? [] : [[field.name, text === null ? null : Buffer.from(text, encodingOf(field))]];
    }),
  );

/** A literal of a schema or an update as text, for an engine that stores texts. `now` is the value of `'now'`. */
export function textValue(value: Json, { type }: Pick<Field, 'type'>, now?: Date): string | null {
  if (value === null) return null;
  if (value === 'now' && now && TEMPORAL_TYPES.has(type)) return nowLiteral(type, now);
  if (typeof value === 'object' || type === 'json') return canonicalJson(value);
  return normalText(String(value), type);
}

/** A job of `Connection.update`, evaluated row by row for an engine that has no language for it. */
export interface RowUpdate {
  /** The fields that it reads. */
  readonly fields: readonly string[];
  /** The new values of a row, without those that stay. Undefined if `where` does not match. Throws `data_violates`. */
  changes(row: TextRow, now: Date): TextRow | undefined;
}

/**
 * Throws `update_invalid` if the update reads a field it sets: a row may be processed again after an interruption.
 *
 * @example
 * const { fields, changes } = rowUpdate(job);
 */
export function rowUpdate({ set, where, collection }: UpdateJob): RowUpdate {
  assertNoSelfReads(set);
  const fieldOf = (name: string): Field => {
    const field = collection.fields.get(name);
    if (!field) throw new Error(`${collection.name} has no field ${name}`);
    return field;
  };
  const read = [...set.map(({ field }) => field), ...set.flatMap(sourceFields), ...where.map(({ field }) => field)];
  return {
    fields: [...new Set(read)],
    changes(row, now) {
      if (!where.every((condition) => isMet(condition, row, fieldOf(condition.field)))) return undefined;
      const changed = set.flatMap((assignment) => {
        const field = fieldOf(assignment.field);
        const value = assignedText(assignment, row, field, now);
        return areEqual(row[field.name] ?? null, value, field.type) ? [] : [{ assignment, value }];
      });
      // A new time alone does not count as a change, unless nothing else is set.
      const onlyTimes = changed.every(({ assignment }) => 'now' in assignment) && !set.every((one) => 'now' in one);
      return onlyTimes ? {} : Object.fromEntries(changed.map(({ assignment, value }) => [assignment.field, value]));
    },
  };
}

function assignedText(assignment: Assignment, row: TextRow, field: Field, now: Date): string | null {
  if ('now' in assignment) return nowLiteral(field.type, now);
  if ('value' in assignment) return textValue(assignment.value, field);
  const text = assignment.concat.map((part) => ('literal' in part ? part.literal : (row[part.field] ?? ''))).join('');
  if (!/^(smallint|integer|bigint)$/.test(field.type) || /^-?\d+$/.test(text)) return normalText(text, field.type);
  throw new SvcError('data_violates', `The result of $CONCAT for "${field.name}" is not a whole number.`, {
    state: 'Earlier rows are updated; the same update leaves them as they are.',
    next: ['Correct that row, or exclude it with `where`.'],
  });
}

function isMet(condition: Condition, row: TextRow, field: Field): boolean {
  const stored = row[field.name] ?? null;
  const equals = (value: Json) => areEqual(stored, textValue(value, field), field.type);
  if (condition.operator === 'in') return condition.value.some(equals);
  const { operator, value } = condition;
  if (operator === 'eq') return equals(value);
  if (operator === 'ne') return !equals(value);
  const [bound, order] = [textValue(value, field), ORDERS[operator]];
  return stored !== null && bound !== null && order(compareTexts(stored, bound, field.type));
}

const ORDERS = {
  gt: (order: number) => order > 0,
  gte: (order: number) => order >= 0,
  lt: (order: number) => order < 0,
  lte: (order: number) => order <= 0,
};

const areEqual = (a: string | null, b: string | null, type: FieldType): boolean =>
  a === null || b === null ? a === b : compareTexts(a, b, type) === 0;

/** Negative, zero or positive; NaN if one is not a value of the type. */
function compareTexts(a: string, b: string, type: FieldType): number {
  switch (type) {
    case 'integer':
    case 'bigint':
    case 'smallint':
    case 'float':
    case 'double':
    case 'decimal':
      return [a, b].every((text) => text !== '' && Number.isFinite(Number(text))) ? compareDecimals(a, b) : Number.NaN;
    case 'timestamp':
      return Date.parse(normalText(a, type)) - Date.parse(normalText(b, type));
    case 'binary':
    case 'blob':
      return Buffer.compare(Buffer.from(a, 'base64'), Buffer.from(b, 'base64'));
    default:
      return Buffer.compare(Buffer.from(normalText(a, type)), Buffer.from(normalText(b, type)));
  }
}

/** Equal values of other types than numbers have equal texts. A text that is not a value of the type is unchanged. */
function normalText(text: string, type: FieldType): string {
  if (type === 'binary' || type === 'blob') return Buffer.from(text, 'base64').toString('base64');
  if (type === 'json' || type === 'array') {
    const value = tryParseJson(text);
    return value === undefined ? text : canonicalJson(value);
  }
  if (type !== 'timestamp') return canonicalText(text, type);
  const moment = new Date(text.replace(' ', 'T').replace(/([+-]\d\d)(\d\d)$/, '$1:$2'));
  return Number.isNaN(moment.getTime()) ? text : moment.toISOString();
}
