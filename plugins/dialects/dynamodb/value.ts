import { randomUUID } from 'node:crypto';
import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { SvcError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json.ts';
import type { Field } from '../../../core/schema/model.ts';
import { normalText } from '../../../core/schema/normal-text.ts';
import { attributeOf } from './attribute.ts';
import { digitsOf } from './decimal.ts';
import { attributeTypes } from './types.ts';

/** How a field's values are written. */
export type Written = Pick<Field, 'type' | 'items'> & {
  /** The time to live counts in whole seconds, all other moments are milliseconds. */
  readonly seconds?: true;
};

/** A literal as the field holds it. Texts of date and time have one width, so that they sort. Throws `value_invalid`. */
export function encoded(value: Json, field: Written): AttributeValue {
  if (value === null) return { NULL: true };
  if (field.type === 'array') {
    const items: Written = { type: field.items ?? 'string' };
    return { L: (value as readonly Json[]).map((item) => encoded(item, items)) };
  }
  if (field.type === 'json') return attributeOf(value);
  if (field.type === 'binary' || field.type === 'blob') return { B: bytesOf(String(value)) };
  switch (attributeTypes[field.type]) {
    case 'N':
      return { N: field.type === 'timestamp' ? moment(Date.parse(isoOf(String(value))), field) : digitsOf(value) };
    case 'BOOL':
      return { BOOL: value === true };
    default:
      return { S: textOf(String(value), field.type) };
  }
}

/** The moment `now` in the field's own form. */
export function nowOf(now: number, field: Written): AttributeValue {
  if (field.type === 'timestamp') return { N: moment(now, field) };
  const iso = new Date(now).toISOString().slice(0, -1);
  if (field.type === 'date') return { S: iso.slice(0, 10) };
  return { S: field.type === 'time' ? iso.slice(11) : iso };
}

/** A value that the engine would have generated. */
export const generated = (): AttributeValue => ({ S: randomUUID() });

function moment(milliseconds: number, { seconds }: Written): string {
  return String(seconds ? Math.floor(milliseconds / 1000) : milliseconds);
}

/** `2026-01-31 23:59+0200` is legal to write and not to parse. */
function isoOf(text: string): string {
  return text.replace(' ', 'T').replace(/([+-]\d\d)(\d\d)$/, '$1:$2');
}

export const textOf = normalText;

function bytesOf(base64: string): Uint8Array {
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.toString('base64').replace(/=+$/, '') === base64.replace(/=+$/, '')) return new Uint8Array(bytes);
  throw new SvcError('value_invalid', 'Bytes are given to DynamoDB as base64.', { state: 'Nothing was changed.' });
}
