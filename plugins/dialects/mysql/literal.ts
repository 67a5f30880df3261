import { SvcError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json.ts';
import type { Field } from '../../../core/schema/model.ts';
import { text } from './quote.ts';

/** A literal of the field's type; a timestamp relies on a session in UTC. */
export function literal(value: Json, field: Omit<Field, 'name'>): string {
  if (value === null) return 'NULL';
  switch (field.type) {
    case 'integer':
    case 'bigint':
    case 'smallint':
    case 'float':
    case 'double':
    case 'decimal':
      return number(value);
    case 'boolean':
      return typeof value === 'boolean' ? String(value) : text(String(value));
    case 'binary':
    case 'blob':
      return `x'${Buffer.from(String(value), 'base64').toString('hex')}'`;
    default:
      return text(plainText(value, field));
  }
}

/** The text that is stored. */
export function plainText(value: Json, { type }: Pick<Field, 'type'>): string {
  const written = typeof value === 'string' ? value : JSON.stringify(value);
  switch (type) {
    case 'json':
    case 'array':
      return JSON.stringify(value);
    case 'datetime':
      return written.replace('T', ' ');
    case 'timestamp':
      return moment(written);
    case 'uuid':
      return written.toLowerCase();
    default:
      return written;
  }
}

function number(value: Json): string {
  const written = String(value);
  if (/^-?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(written)) return written;
  return text(typeof value === 'string' ? value : JSON.stringify(value));
}

/** In UTC, without a zone: not every server reads one. */
function moment(value: string): string {
  const at = new Date(value.replace(' ', 'T').replace(/([+-]\d\d)$/, '$1:00'));
  if (Number.isNaN(at.getTime()))
    throw new SvcError('value_invalid', `A moment is wanted and ${JSON.stringify(value)} was given.`);
  return at.toISOString().slice(0, -1).replace('T', ' ');
}
