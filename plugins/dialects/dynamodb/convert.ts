import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { isInCalendar, NOT_IN_CALENDAR } from '../../../core/schema/default.ts';
import type { Field } from '../../../core/schema/model.ts';
import type { FieldType } from '../../../core/schema/types.ts';
import { isNull } from './attribute.ts';
import { isStorable, plainDecimal } from './decimal.ts';
import { documentFrom, documentText } from './document.ts';
import { encoded, textOf } from './value.ts';

export type Converted = { readonly value: AttributeValue } | { readonly problem: string };

const BITS: Readonly<Partial<Record<FieldType, number>>> = { smallint: 16, integer: 32, bigint: 64 };
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;
const MOMENT = /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:?\d\d)$/;
const WALL = /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d{1,3})?)?$/;
const PATTERNS: Readonly<Partial<Record<FieldType, RegExp>>> = {
  date: /^\d{4}-\d\d-\d\d$/,
  time: /^\d\d:\d\d(:\d\d(\.\d{1,3})?)?$/,
  uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i,
};

/** What a value was: a moment is stored as a number, and only its type says that it is none. */
type From = Pick<Field, 'type' | 'items'>;

/** A stored value as another definition of its field wants it, or why that would lose something. */
export function converted(value: AttributeValue | undefined, to: Field, from?: From): Converted {
  if (isNull(value)) return to.required ? { problem: 'it has no value' } : { value: value ?? { NULL: true } };
  switch (to.type) {
    case 'smallint':
    case 'integer':
    case 'bigint':
      return whole(value, to.type, from);
    case 'float':
    case 'double':
    case 'decimal':
      return number(value, to, from);
    case 'string':
    case 'text':
      return text(value, to, from);
    case 'enum':
      return value.S !== undefined && to.enumValues?.includes(value.S)
        ? { value }
        : { problem: 'it is none of the values' };
    case 'boolean':
      return truth(value);
    case 'timestamp':
      return moment(value);
    case 'datetime':
      return wall(value);
    case 'date':
      return ofForm(from?.type === 'datetime' ? dayOf(value) : value, 'date');
    case 'time':
      return ofForm(value, 'time');
    case 'uuid':
      return value.S !== undefined && PATTERNS.uuid?.test(value.S)
        ? { value: { S: textOf(value.S, 'uuid') } }
        : { problem: 'it is not a uuid' };
    case 'json':
      return { value: (isText(from) ? documentFrom(value.S ?? '') : undefined) ?? value };
    case 'array': {
      const list = value.L ?? (isText(from) ? documentFrom(value.S ?? '')?.L : undefined);
      return list ? items(list, to.items ?? 'string', from?.items) : { problem: 'it is no list' };
    }
    case 'binary':
    case 'blob':
      if (value.B === undefined) return { problem: 'it is not made of bytes' };
      return to.length !== undefined && value.B.byteLength > to.length
        ? { problem: `it is longer than ${to.length} bytes` }
        : { value };
  }
}

const isText = (from: From | undefined): boolean => from?.type === 'string' || from?.type === 'text';

/** Digits that stand in the value, whether as a number or as text; of a date and time its milliseconds. */
function digitsIn({ S, N }: AttributeValue, from: From | undefined): string | undefined {
  if (N !== undefined || S === undefined) return N;
  if (from?.type === 'datetime' && WALL.test(S) && isInCalendar(S)) return encoded(`${S}Z`, { type: 'timestamp' }).N;
  return NUMBER.test(S) ? S : undefined;
}

function whole(value: AttributeValue, type: FieldType, from: From | undefined): Converted {
  if (value.BOOL !== undefined) return { value: { N: value.BOOL ? '1' : '0' } };
  const digits = digitsIn(value, from);
  if (digits === undefined) return { problem: 'it is no number' };
  const exact = wholeDigits(digits);
  if (exact === undefined) return { problem: 'it is no whole number' };
  if (BigInt.asIntN(BITS[type] ?? 64, BigInt(exact)) !== BigInt(exact))
    return { problem: `it is out of range for ${type}` };
  return { value: { N: exact } };
}

/** `1e3`, `5.0` and `007` are whole numbers too. */
function wholeDigits(text: string): string | undefined {
  const decimal = plainDecimal(text);
  return decimal === undefined || decimal.includes('.') ? undefined : decimal;
}

function number(value: AttributeValue, to: Field, from: From | undefined): Converted {
  const digits = digitsIn(value, from);
  const decimal = digits === undefined ? undefined : plainDecimal(digits);
  if (decimal === undefined) return { problem: 'it is no number' };
  if (!isStorable(decimal)) return { problem: 'it has more than 38 digits, or is out of range' };
  const [before = '', after = ''] = decimal.replace('-', '').split('.');
  if (to.precision !== undefined) {
    const scale = to.scale ?? 0;
    if (after.length > scale) return { problem: `it has more than ${scale} digits behind the point` };
    if (before.replace(/^0$/, '').length > to.precision - scale)
      return { problem: `it has more than ${to.precision} digits` };
  }
  return { value: value.N === undefined ? { N: decimal } : value };
}

function text(value: AttributeValue, to: Field, from: From | undefined): Converted {
  if (value.B !== undefined || value.BS) return { problem: 'it is made of bytes' };
  const moment = from?.type === 'timestamp' && value.N !== undefined ? isoOf(value.N) : undefined;
  if (moment !== undefined && !MOMENT.test(moment)) return { problem: 'it is no moment' };
  const written = moment ?? value.S ?? documentText(value);
  if (written === undefined) return { problem: 'it holds bytes or a set, which no text says' };
  if (to.length !== undefined && [...written].length > to.length) {
    return { problem: `it is longer than ${to.length} characters` };
  }
  return { value: { S: written } };
}

/** As the way back reads it; empty where it is no moment that ISO 8601 can say, or has a part of a millisecond. */
function isoOf(milliseconds: string): string {
  if (wholeDigits(milliseconds) === undefined) return '';
  const date = new Date(Number(milliseconds));
  return Number.isNaN(date.getTime()) ? '' : date.toISOString();
}

function truth(value: AttributeValue): Converted {
  if (value.BOOL !== undefined) return { value };
  const said = value.S ?? value.N;
  if (said === 'true' || said === '1') return { value: { BOOL: true } };
  if (said === 'false' || said === '0') return { value: { BOOL: false } };
  return { problem: 'it is neither true nor false' };
}

function moment(value: AttributeValue): Converted {
  if (value.N !== undefined) {
    return wholeDigits(value.N) === undefined ? { problem: 'it is no number of milliseconds' } : { value };
  }
  const said = value.S ?? '';
  if (MOMENT.test(said)) return standing(said, encoded(said, { type: 'timestamp' }));
  if (WALL.test(said)) return standing(said, encoded(`${textOf(said, 'datetime')}Z`, { type: 'timestamp' }));
  return { problem: 'it is no moment' };
}

/** A moment is told as the wall-clock time of UTC. */
function wall(value: AttributeValue): Converted {
  if (value.N !== undefined) {
    const moment = isoOf(value.N);
    return MOMENT.test(moment) ? { value: { S: moment.slice(0, -1) } } : { problem: 'it is no moment' };
  }
  const said = value.S ?? '';
  if (PATTERNS.date?.test(said)) return standing(said, { S: `${said}T00:00:00.000` });
  return WALL.test(said) ? standing(said, { S: textOf(said, 'datetime') }) : { problem: 'it is no date and time' };
}

function ofForm({ S }: AttributeValue, type: 'date' | 'time'): Converted {
  return S !== undefined && PATTERNS[type]?.test(S)
    ? standing(S, { S: textOf(S, type) })
    : { problem: `it is not a ${type}` };
}

/** Of a time that is the beginning of its day. */
const dayOf = (value: AttributeValue): AttributeValue =>
  value.S?.endsWith('T00:00:00.000') ? { S: value.S.slice(0, 10) } : value;

/** A text with the form of a day or time may be none. */
const standing = (said: string, value: AttributeValue): Converted =>
  isInCalendar(said) ? { value } : { problem: NOT_IN_CALENDAR };

function items(list: readonly AttributeValue[], type: FieldType, from: FieldType | undefined): Converted {
  const found: AttributeValue[] = [];
  for (const item of list) {
    const one = converted(item, { name: '', type }, from && { type: from });
    if ('problem' in one) return { problem: `an item of it does not fit: ${one.problem}` };
    found.push(one.value);
  }
  return { value: { L: found } };
}
