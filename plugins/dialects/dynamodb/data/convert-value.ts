import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { tryParseJson } from '../../../../core/json.ts';
import { INVALID_DATE_TIME, isValidDateTime } from '../../../../core/schema/literal.ts';
import type { Field, FieldType } from '../../../../core/schema/model.ts';
import { canonicalText } from '../../shared/canonical-text.ts';
import { plainDecimal } from '../../shared/decimal.ts';
import { encodeValue, isNull, isStorableNumber } from './attribute.ts';

export type ConversionResult = { readonly value: AttributeValue } | { readonly problem: string };

const BITS: Readonly<Partial<Record<FieldType, number>>> = { smallint: 16, integer: 32, bigint: 64 };
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;
const ZONED_DATETIME = /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:?\d\d)$/;
const LOCAL_DATETIME = /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d{1,3})?)?$/;
const PATTERNS: Readonly<Partial<Record<FieldType, RegExp>>> = {
  date: /^\d{4}-\d\d-\d\d$/,
  time: /^\d\d:\d\d(:\d\d(\.\d{1,3})?)?$/,
  uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i,
};

/** The type of the stored value: a timestamp is stored as a plain number. */
type SourceType = Pick<Field, 'type' | 'items'>;

/** Converts a stored value to another definition of its field, or returns the reason why that would lose data. */
export function convertValue(value: AttributeValue | undefined, to: Field, from?: SourceType): ConversionResult {
  if (isNull(value)) return to.required ? { problem: 'it has no value' } : { value: value ?? { NULL: true } };
  switch (to.type) {
    case 'smallint':
    case 'integer':
    case 'bigint':
      return toInteger(value, to.type, from);
    case 'float':
    case 'double':
    case 'decimal':
      return toNumber(value, to, from);
    case 'string':
    case 'text':
      return toText(value, to, from);
    case 'enum':
      return value.S !== undefined && to.enumValues?.includes(value.S)
        ? { value }
        : { problem: 'it is not one of the values of the enum' };
    case 'boolean':
      return toBoolean(value);
    case 'timestamp':
      return toTimestamp(value);
    case 'datetime':
      return toDatetime(value);
    case 'date':
      return toDateOrTime(from?.type === 'datetime' ? dateOfMidnight(value) : value, 'date');
    case 'time':
      return toDateOrTime(value, 'time');
    case 'uuid':
      return value.S !== undefined && PATTERNS.uuid?.test(value.S)
        ? { value: { S: canonicalText(value.S, 'uuid') } }
        : { problem: 'it is not a uuid' };
    case 'json':
      return { value: (isTextType(from) ? parseAttribute(value.S ?? '') : undefined) ?? value };
    case 'array': {
      const list = value.L ?? (isTextType(from) ? parseAttribute(value.S ?? '')?.L : undefined);
      return list ? toList(list, to.items ?? 'string', from?.items) : { problem: 'it is not a list' };
    }
    case 'binary':
    case 'blob':
      if (value.B === undefined) return { problem: 'it is not bytes' };
      return to.length !== undefined && value.B.byteLength > to.length
        ? { problem: `it is longer than ${to.length} bytes` }
        : { value };
  }
}

const isTextType = (from: SourceType | undefined): boolean => from?.type === 'string' || from?.type === 'text';

/** The digits of a number or of numeric text; the milliseconds of a datetime. */
function numericText({ S, N }: AttributeValue, from: SourceType | undefined): string | undefined {
  if (N !== undefined || S === undefined) return N;
  if (from?.type === 'datetime' && LOCAL_DATETIME.test(S) && isValidDateTime(S))
    return encodeValue(`${S}Z`, { type: 'timestamp' }).N;
  return NUMBER.test(S) ? S : undefined;
}

function toInteger(value: AttributeValue, type: FieldType, from: SourceType | undefined): ConversionResult {
  if (value.BOOL !== undefined) return { value: { N: value.BOOL ? '1' : '0' } };
  const digits = numericText(value, from);
  if (digits === undefined) return { problem: 'it is not a number' };
  const exact = integerDigits(digits);
  if (exact === undefined) return { problem: 'it is not a whole number' };
  if (BigInt.asIntN(BITS[type] ?? 64, BigInt(exact)) !== BigInt(exact))
    return { problem: `it is out of range for ${type}` };
  // A text such as 007 would come back as 7.
  if (digits === value.S && digits !== BigInt(exact).toString())
    return { problem: 'it is not written as a whole number without leading zeros, a plus sign or a point' };
  return { value: { N: exact } };
}

/** Accepts `1e3`, `5.0` and `007`. */
function integerDigits(text: string): string | undefined {
  const decimal = plainDecimal(text);
  return decimal === undefined || decimal.includes('.') ? undefined : decimal;
}

function toNumber(value: AttributeValue, to: Field, from: SourceType | undefined): ConversionResult {
  const digits = numericText(value, from);
  const decimal = digits === undefined ? undefined : plainDecimal(digits);
  if (decimal === undefined) return { problem: 'it is not a number' };
  if (!isStorableNumber(decimal)) return { problem: 'it has more than 38 digits, or is out of range' };
  const [before = '', after = ''] = decimal.replace('-', '').split('.');
  if (to.precision !== undefined) {
    const scale = to.scale ?? 0;
    if (after.length > scale) return { problem: `it has more than ${scale} digits after the point` };
    if (before.replace(/^0$/, '').length > to.precision - scale)
      return { problem: `it has more than ${to.precision} digits` };
  }
  return { value: value.N === undefined ? { N: decimal } : value };
}

function toText(value: AttributeValue, to: Field, from: SourceType | undefined): ConversionResult {
  if (value.B !== undefined || value.BS) return { problem: 'it is bytes' };
  const iso = from?.type === 'timestamp' && value.N !== undefined ? isoOfMilliseconds(value.N) : undefined;
  if (iso !== undefined && !ZONED_DATETIME.test(iso)) return { problem: 'it is not a timestamp' };
  const text = iso ?? value.S ?? attributeText(value);
  if (text === undefined) return { problem: 'it contains bytes or a set, which have no text form' };
  if (to.length !== undefined && [...text].length > to.length) {
    return { problem: `it is longer than ${to.length} characters` };
  }
  return { value: { S: text } };
}

/** ISO 8601, which converts back; empty if out of range or with a fraction of a millisecond. */
function isoOfMilliseconds(milliseconds: string): string {
  if (integerDigits(milliseconds) === undefined) return '';
  const date = new Date(Number(milliseconds));
  return Number.isNaN(date.getTime()) ? '' : date.toISOString();
}

function toBoolean(value: AttributeValue): ConversionResult {
  if (value.BOOL !== undefined) return { value };
  const text = value.S ?? value.N;
  if (text === 'true' || text === '1') return { value: { BOOL: true } };
  if (text === 'false' || text === '0') return { value: { BOOL: false } };
  return { problem: 'it is neither true nor false' };
}

function toTimestamp(value: AttributeValue): ConversionResult {
  if (value.N !== undefined) {
    return integerDigits(value.N) === undefined ? { problem: 'it is not a number of milliseconds' } : { value };
  }
  const text = value.S ?? '';
  if (ZONED_DATETIME.test(text)) return ifInCalendar(text, encodeValue(text, { type: 'timestamp' }));
  if (LOCAL_DATETIME.test(text))
    return ifInCalendar(text, encodeValue(`${canonicalText(text, 'datetime')}Z`, { type: 'timestamp' }));
  return { problem: 'it is not a timestamp' };
}

/** A timestamp becomes its wall-clock time in UTC. */
function toDatetime(value: AttributeValue): ConversionResult {
  if (value.N !== undefined) {
    const iso = isoOfMilliseconds(value.N);
    return ZONED_DATETIME.test(iso) ? { value: { S: iso.slice(0, -1) } } : { problem: 'it is not a timestamp' };
  }
  const text = value.S ?? '';
  if (PATTERNS.date?.test(text)) return ifInCalendar(text, { S: `${text}T00:00:00.000` });
  return LOCAL_DATETIME.test(text)
    ? ifInCalendar(text, { S: canonicalText(text, 'datetime') })
    : { problem: 'it is not a date and time' };
}

function toDateOrTime({ S }: AttributeValue, type: 'date' | 'time'): ConversionResult {
  return S !== undefined && PATTERNS[type]?.test(S)
    ? ifInCalendar(S, { S: canonicalText(S, type) })
    : { problem: `it is not a ${type}` };
}

/** The date of a datetime at midnight; any other value unchanged. */
const dateOfMidnight = (value: AttributeValue): AttributeValue =>
  value.S?.endsWith('T00:00:00.000') ? { S: value.S.slice(0, 10) } : value;

/** Text in the format of a date may name a day that does not exist, such as 30 February. */
const ifInCalendar = (text: string, value: AttributeValue): ConversionResult =>
  isValidDateTime(text) ? { value } : { problem: INVALID_DATE_TIME };

function toList(list: readonly AttributeValue[], type: FieldType, from: FieldType | undefined): ConversionResult {
  const converted: AttributeValue[] = [];
  for (const item of list) {
    const result = convertValue(item, { name: '', type }, from && { type: from });
    if ('problem' in result) return { problem: `one of its items is invalid: ${result.problem}` };
    converted.push(result.value);
  }
  return { value: { L: converted } };
}

/** The value as text: a string unchanged, anything else as JSON. Undefined if it contains bytes or a set. */
const attributeText = (value: AttributeValue): string | undefined => value.S ?? attributeJsonText(value);

function attributeJsonText(value: AttributeValue): string | undefined {
  if (value.S !== undefined) return JSON.stringify(value.S);
  if (value.N !== undefined) return value.N;
  if (value.BOOL !== undefined) return String(value.BOOL);
  if (value.NULL) return 'null';
  if (value.L) {
    const items = value.L.map(attributeJsonText);
    return items.includes(undefined) ? undefined : `[${items.join(',')}]`;
  }
  if (!value.M) return undefined;
  const members: string[] = [];
  for (const [name, member] of Object.entries(value.M)) {
    const text = attributeJsonText(member);
    if (text === undefined) return undefined;
    members.push(`${JSON.stringify(name)}:${text}`);
  }
  return `{${members.join(',')}}`;
}

/**
 * The inverse of `attributeText`. Undefined if the text stays a string, which includes a quoted string: a second
 * conversion would remove the next pair of quotes.
 */
function parseAttribute(text: string): AttributeValue | undefined {
  if (tryParseJson(text) === undefined) return undefined;
  // JSON.parse would lose digits, so numbers are read as strings with a leading letter.
  const tagged = text.replace(/"((?:[^"\\]|\\.)*")|-?\d[\d.eE+-]*/g, (token, string?: string) =>
    string === undefined ? `"n${token}"` : `"s${string}`,
  );
  const value = fromTagged(JSON.parse(tagged));
  if (value === undefined || value.S !== undefined || value.NULL) return undefined;
  // 1.0 would convert back to 1.
  return value.N === undefined || value.N === text ? value : undefined;
}

function fromTagged(value: unknown): AttributeValue | undefined {
  if (value === null) return { NULL: true };
  if (typeof value === 'boolean') return { BOOL: value };
  if (typeof value === 'string') {
    if (value.startsWith('s')) return { S: value.slice(1) };
    const digits = plainDecimal(value.slice(1));
    return digits !== undefined && isStorableNumber(digits) ? { N: digits } : undefined;
  }
  if (Array.isArray(value)) {
    const items = value.map(fromTagged);
    return items.every((item) => item !== undefined) ? { L: items } : undefined;
  }
  const members: [string, AttributeValue][] = [];
  for (const [name, member] of Object.entries(value as object)) {
    const attribute = fromTagged(member);
    if (attribute === undefined) return undefined;
    members.push([name.slice(1), attribute]);
  }
  return { M: Object.fromEntries(members) };
}
