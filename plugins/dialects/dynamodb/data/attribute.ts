import { randomUUID } from 'node:crypto';
import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { SvcError } from '../../../../core/errors.ts';
import type { Json } from '../../../../core/json.ts';
import type { Field } from '../../../../core/schema/model.ts';
import { canonicalText } from '../../shared/canonical-text.ts';
import { plainDecimal } from '../../shared/decimal.ts';
import { attributeTypes } from '../compile/types.ts';

export type Item = Readonly<Record<string, AttributeValue>>;

/** Throws `value_invalid` for a number that DynamoDB cannot store. */
function jsonToAttribute(value: Json): AttributeValue {
  if (value === null) return { NULL: true };
  switch (typeof value) {
    case 'string':
      return { S: value };
    case 'number':
      return { N: numberDigits(value) };
    case 'boolean':
      return { BOOL: value };
  }
  if (Array.isArray(value)) return { L: (value as readonly Json[]).map(jsonToAttribute) };
  return { M: Object.fromEntries(Object.entries(value).map(([key, one]) => [key, jsonToAttribute(one as Json)])) };
}

/** A number that a double cannot represent becomes its digits, bytes become base64, a set becomes an array. */
export function attributeToJson(value: AttributeValue): Json {
  if (value.S !== undefined) return value.S;
  if (value.N !== undefined) return numberToJson(value.N);
  if (value.BOOL !== undefined) return value.BOOL;
  if (value.B !== undefined) return Buffer.from(value.B).toString('base64');
  if (value.L) return value.L.map(attributeToJson);
  if (value.M) return itemToJson(value.M);
  if (value.SS) return value.SS;
  if (value.NS) return value.NS.map(numberToJson);
  if (value.BS) return value.BS.map((bytes) => Buffer.from(bytes).toString('base64'));
  return null;
}

export function itemToJson(item: Item): { [attribute: string]: Json } {
  return Object.fromEntries(Object.entries(item).map(([name, value]) => [name, attributeToJson(value)]));
}

function numberToJson(digits: string): number | string {
  const number = Number(digits);
  return String(number) === digits ? number : digits;
}

export const isNull = (value: AttributeValue | undefined): value is undefined | AttributeValue.NULLMember =>
  value === undefined || value.NULL === true;

/** A key as JSON. Bytes are wrapped as base64. */
export function serializeKey(key: Item): string {
  return JSON.stringify(key, (_name, value) =>
    value instanceof Uint8Array ? { base64: Buffer.from(value).toString('base64') } : value,
  );
}

export function parseKey(text: string): Record<string, AttributeValue> {
  return JSON.parse(text, (_name, value) =>
    typeof value?.base64 === 'string' ? new Uint8Array(Buffer.from(value.base64, 'base64')) : value,
  );
}

/** What determines how a field's values are encoded. */
export type FieldEncoding = Pick<Field, 'type' | 'items'> & {
  /** The time-to-live attribute is in seconds, every other timestamp in milliseconds. */
  readonly seconds?: true;
};

/** Encodes a literal. Dates and times have a fixed width, so that they sort as strings. Throws `value_invalid`. */
export function encodeValue(value: Json, field: FieldEncoding): AttributeValue {
  if (value === null) return { NULL: true };
  if (field.type === 'array') {
    const items: FieldEncoding = { type: field.items ?? 'string' };
    return { L: (value as readonly Json[]).map((item) => encodeValue(item, items)) };
  }
  if (field.type === 'json') return jsonToAttribute(value);
  if (field.type === 'binary' || field.type === 'blob') return { B: decodeBase64(String(value)) };
  switch (attributeTypes[field.type]) {
    case 'N':
      return {
        N:
          field.type === 'timestamp'
            ? timestampDigits(Date.parse(toIso8601(String(value))), field)
            : numberDigits(value),
      };
    case 'BOOL':
      return { BOOL: value === true };
    default:
      return { S: canonicalText(String(value), field.type) };
  }
}

/** The current time; `now` is in milliseconds since 1970. */
export function encodeNow(now: number, field: FieldEncoding): AttributeValue {
  if (field.type === 'timestamp') return { N: timestampDigits(now, field) };
  const iso = new Date(now).toISOString().slice(0, -1);
  if (field.type === 'date') return { S: iso.slice(0, 10) };
  return { S: field.type === 'time' ? iso.slice(11) : iso };
}

export const generateUuid = (): AttributeValue => ({ S: randomUUID() });

function timestampDigits(milliseconds: number, { seconds }: FieldEncoding): string {
  return String(seconds ? Math.floor(milliseconds / 1000) : milliseconds);
}

/** Accepts `2026-01-31 23:59+0200`, which `Date.parse` does not. */
function toIso8601(text: string): string {
  return text.replace(' ', 'T').replace(/([+-]\d\d)(\d\d)$/, '$1:$2');
}

function decodeBase64(base64: string): Uint8Array {
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.toString('base64').replace(/=+$/, '') === base64.replace(/=+$/, '')) return new Uint8Array(bytes);
  throw new SvcError('value_invalid', 'Bytes for DynamoDB must be base64.', { state: 'Nothing was changed.' });
}

/** DynamoDB stores up to 38 digits, from 1e-130 to less than 1e126. */
export function isStorableNumber(number: string): boolean {
  const decimal = plainDecimal(number);
  if (decimal === undefined) return false;
  const digits = decimal.replace(/[-.]/g, '').replace(/^0+/, '').replace(/0+$/, '');
  const size = Math.abs(Number(decimal));
  return digits.length <= 38 && (size === 0 ? digits === '' : size >= 1e-130 && size < 1e126);
}

/** The digits of a number; -0 is 0. Throws `value_invalid` for one that DynamoDB cannot store. */
function numberDigits(value: Json): string {
  const digits = Object.is(value, -0) ? '0' : String(value);
  if (isStorableNumber(digits)) return digits;
  throw new SvcError('value_invalid', `DynamoDB cannot store the number ${digits.slice(0, 60)}.`, {
    why: 'A number has at most 38 digits, from 1e-130 to less than 1e126.',
    state: 'Nothing was changed.',
    next: ['Use another number, or make the field a string.'],
  });
}
