import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import type { Json } from '../../../core/json.ts';
import { digitsOf } from './decimal.ts';

export type Item = Readonly<Record<string, AttributeValue>>;

/** JSON as DynamoDB holds it. Throws `value_invalid` for a number that it cannot. */
export function attributeOf(value: Json): AttributeValue {
  if (value === null) return { NULL: true };
  switch (typeof value) {
    case 'string':
      return { S: value };
    case 'number':
      return { N: digitsOf(value) };
    case 'boolean':
      return { BOOL: value };
  }
  if (Array.isArray(value)) return { L: (value as readonly Json[]).map(attributeOf) };
  return { M: Object.fromEntries(Object.entries(value).map(([key, one]) => [key, attributeOf(one as Json)])) };
}

/** The other way: a number that JavaScript cannot hold is its digits, bytes are base64, a set is an array. */
export function plainOf(value: AttributeValue): Json {
  if (value.S !== undefined) return value.S;
  if (value.N !== undefined) return plainNumber(value.N);
  if (value.BOOL !== undefined) return value.BOOL;
  if (value.B !== undefined) return Buffer.from(value.B).toString('base64');
  if (value.L) return value.L.map(plainOf);
  if (value.M) return plainItem(value.M);
  if (value.SS) return value.SS;
  if (value.NS) return value.NS.map(plainNumber);
  if (value.BS) return value.BS.map((bytes) => Buffer.from(bytes).toString('base64'));
  return null;
}

export function plainItem(item: Item): { [attribute: string]: Json } {
  return Object.fromEntries(Object.entries(item).map(([name, value]) => [name, plainOf(value)]));
}

function plainNumber(digits: string): number | string {
  const number = Number(digits);
  return String(number) === digits ? number : digits;
}

/** Missing and NULL are both null to whoever asks. */
export const isNull = (value: AttributeValue | undefined): value is undefined | AttributeValue.NULLMember =>
  value === undefined || value.NULL === true;

/** Bytes do not survive JSON as they are: a key as it is journaled. */
export function keyText(key: Item): string {
  return JSON.stringify(key, (_name, value) =>
    value instanceof Uint8Array ? { base64: Buffer.from(value).toString('base64') } : value,
  );
}

export function keyFrom(text: string): Record<string, AttributeValue> {
  return JSON.parse(text, (_name, value) =>
    typeof value?.base64 === 'string' ? new Uint8Array(Buffer.from(value.base64, 'base64')) : value,
  );
}
