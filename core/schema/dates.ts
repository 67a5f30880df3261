import { types } from 'node:util';
import { isPlainObject, type Json } from '../json.ts';
import { type Field, fieldType } from './model.ts';

/** A value as an application writes it. A Date is a moment: only fields of type timestamp, and arrays of them, accept it. */
export type FieldValue = Json | Date | readonly (Json | Date)[];

export const acceptsDate = ({ type, items }: Pick<Field, 'type' | 'items'>): boolean =>
  type === 'timestamp' || (type === 'array' && items === 'timestamp');

/** A Date as the text of a timestamp. One that is not valid stays as it is, which makes it invalid JSON. */
export const dateText = (date: Date): unknown => (Number.isNaN(date.getTime()) ? date : date.toISOString());

/** A copy of the value with `replace(date)` in place of each Date; the value itself if it is nested too deeply for JSON. */
export function mapDates(value: unknown, replace: (date: Date) => unknown): unknown {
  const copy = (part: unknown): unknown => {
    if (types.isDate(part)) return replace(part);
    if (Array.isArray(part)) return part.map(copy);
    if (!isPlainObject(part)) return part;
    return Object.fromEntries(Object.entries(part).map(([key, item]) => [key, copy(item)]));
  };
  try {
    return copy(value);
  } catch (error) {
    if (error instanceof RangeError) return value;
    throw error;
  }
}

/** `defaultDatesAsText` for each definition of a list; anything else is left to the validation. */
export function defaultDatesInListAsText(definitions: unknown): unknown {
  return Array.isArray(definitions) ? definitions.map(defaultDatesAsText) : definitions;
}

/**
 * A field definition, or changes of one, with Dates in its default as text. They stay where its type does not accept
 * them, which makes it invalid JSON. Changes without a type leave that to the field they apply to.
 */
export function defaultDatesAsText(definition: unknown): unknown {
  if (!isPlainObject(definition) || definition.default === undefined) return definition;
  const { type: typeName = 'timestamp', items: itemsName } = definition;
  const type = fieldType(String(typeName));
  const items = fieldType(String(itemsName));
  if (!type || !acceptsDate({ type, ...(items && { items }) })) return definition;
  const { default: value } = definition;
  const isMoment = types.isDate(value) || Array.isArray(value);
  return isMoment ? { ...definition, default: mapDates(value, dateText) } : definition;
}
