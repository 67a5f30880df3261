import { SvcError } from '../../../../core/errors.ts';
import type { Json } from '../../../../core/json.ts';
import type { Field, FieldType } from '../../../../core/schema/model.ts';
import { canonicalText } from '../../shared/canonical-text.ts';
import type { MongoServer } from '../connection/server.ts';

type TypedField = Pick<Field, 'type' | 'items'>;

/** A literal of a schema or an update as a BSON value. `now` is the value of `'now'` for date and time types. */
export function toBson(bson: MongoServer['bson'], value: Json, { type, items }: TypedField, now?: Date): unknown {
  if (value === null) return null;
  if (value === 'now' && now) {
    const current = nowAs(type, now);
    if (current !== undefined) return current;
  }
  switch (type) {
    case 'bigint':
      return bson.Long.fromString(String(value));
    case 'float':
    case 'double':
      return new bson.Double(Number(value));
    case 'decimal':
      return bson.Decimal128.fromString(String(value));
    case 'date':
    case 'datetime':
    case 'timestamp':
      return parseDate(String(value));
    case 'time':
    case 'uuid':
      return canonicalText(String(value), type);
    case 'binary':
    case 'blob':
      return typeof value === 'string' ? bson.Binary.createFromBase64(value) : value;
    case 'array':
      return Array.isArray(value) ? value.map((item: Json) => toBson(bson, item, { type: items ?? 'string' })) : value;
    default:
      return value;
  }
}

/** Dates and times without a zone are stored as UTC. Throws `value_invalid`: BSON would store an invalid date as 1970. */
function parseDate(text: string): Date {
  const [day = '', time = '00:00', zone = 'Z'] = text.split(/[ T]|(?=Z|[+-]\d\d:?\d\d$)/);
  const date = new Date(`${day}T${time}${zone.replace(/^([+-]\d\d)(\d\d)$/, '$1:$2')}`);
  if (!Number.isNaN(date.getTime())) return date;
  throw new SvcError('value_invalid', `A date is expected, not ${JSON.stringify(text)}.`);
}

function nowAs(type: FieldType, now: Date): Date | string | undefined {
  switch (type) {
    case 'date':
      return new Date(now.toISOString().slice(0, 10));
    case 'time':
      return now.toISOString().slice(11, 23);
    case 'datetime':
    case 'timestamp':
      return now;
    default:
      return undefined;
  }
}
