import { SvcError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json.ts';
import type { Field } from '../../../core/schema/model.ts';
import { normalText } from '../../../core/schema/normal-text.ts';
import type { FieldType } from '../../../core/schema/types.ts';
import type { Server } from './open.ts';

type Typed = Pick<Field, 'type' | 'items'>;

/** A literal of the schema or of an update, as the field stores it. `now` is what `'now'` means on clock types. */
export function toBson(bson: Server['bson'], value: Json, { type, items }: Typed, now?: Date): unknown {
  if (value === null) return null;
  if (value === 'now' && now) {
    const moment = momentOf(type, now);
    if (moment !== undefined) return moment;
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
      return dateOf(String(value));
    case 'time':
    case 'uuid':
      return normalText(String(value), type);
    case 'binary':
    case 'blob':
      return typeof value === 'string' ? bson.Binary.createFromBase64(value) : value;
    case 'array':
      return Array.isArray(value) ? value.map((item: Json) => toBson(bson, item, { type: items ?? 'string' })) : value;
    default:
      return value;
  }
}

/** A date and a wall-clock time are kept as if they were told in UTC. Throws `value_invalid`: BSON would make 1970 of it. */
function dateOf(text: string): Date {
  const [day = '', time = '00:00', zone = 'Z'] = text.split(/[ T]|(?=Z|[+-]\d\d:?\d\d$)/);
  const date = new Date(`${day}T${time}${zone.replace(/^([+-]\d\d)(\d\d)$/, '$1:$2')}`);
  if (!Number.isNaN(date.getTime())) return date;
  throw new SvcError('value_invalid', `A moment is wanted and ${JSON.stringify(text)} was given.`);
}

function momentOf(type: FieldType, now: Date): Date | string | undefined {
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
