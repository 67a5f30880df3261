import { canonicalJson, isPlainObject, type Json } from '../json.ts';
import type { Default, Field, FieldType } from './model.ts';

const INTEGER_BITS: Partial<Record<FieldType, bigint>> = { smallint: 16n, integer: 32n, bigint: 64n };

const LITERALS: Partial<Record<FieldType, { readonly pattern: RegExp; readonly example: string }>> = {
  date: { pattern: /^\d{4}-\d\d-\d\d$/, example: '2026-01-31' },
  time: { pattern: /^\d\d:\d\d(:\d\d(\.\d{1,3})?)?$/, example: '23:59:59.999' },
  datetime: { pattern: /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d{1,3})?)?$/, example: '2026-01-31T23:59:59.999' },
  timestamp: {
    pattern: /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:?\d\d)$/,
    example: '2026-01-31T23:59:59.999Z',
  },
  uuid: { pattern: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i, example: '00000000-0000-4000-8000-000000000000' },
};

/** What a type of an engine has beyond those: six digits of a second, and a time that is a duration. */
const NATIVE_LITERALS: Partial<Record<FieldType, RegExp>> = {
  time: /^-?\d{1,3}:\d\d:\d\d(\.\d{1,6})?$/,
  datetime: /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\.\d{4,6}$/,
  timestamp: /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\.\d{4,6}(Z|[+-]\d\d:?\d\d)$/,
};

/** Types whose default may be `'now'`. */
export const TEMPORAL_TYPES: ReadonlySet<FieldType> = new Set(['date', 'time', 'datetime', 'timestamp']);

/** The current time as a literal of a date or time type, in UTC. */
export function nowLiteral(type: FieldType, now: Date): string {
  const iso = now.toISOString();
  if (type === 'date') return iso.slice(0, 10);
  if (type === 'time') return iso.slice(11, 23);
  return type === 'datetime' ? iso.slice(0, 23) : iso;
}

export const INVALID_DATE_TIME = 'that date or time does not exist';

export function isExpression(value: Default): value is { readonly $expression: string } {
  return isPlainObject(value) && typeof value.$expression === 'string' && Object.keys(value).length === 1;
}

type Normalized = { readonly value: Default } | { readonly problem: string };

/** The default in normal form, or why it does not fit the field. Numbers beyond the precision of JSON become strings. */
export function normalizeDefault(value: Json, field: Omit<Field, 'default' | 'name'>): Normalized {
  if (isPlainObject(value) && Object.hasOwn(value, '$expression')) {
    const text = value.$expression;
    return isExpression(value) && typeof text === 'string' && text.trim() !== ''
      ? { value: { $expression: text } }
      : { problem: 'an expression is { "$expression": "text" } without other properties' };
  }
  return normalizeLiteral(value, field);
}

/** Like `normalizeDefault`, but without expressions. */
export function normalizeLiteral(value: Json, field: Omit<Field, 'default' | 'name'>): Normalized {
  const { type } = field;
  switch (type) {
    case 'smallint':
    case 'integer':
    case 'bigint':
      return normalizeInteger(value, type, field.native);
    case 'float':
    case 'double':
      return typeof value === 'number' && Number.isFinite(value)
        ? { value: value + 0 }
        : typeMismatch('a number', type);
    case 'decimal':
      return normalizeDecimal(value);
    case 'boolean':
      return typeof value === 'boolean' ? { value } : typeMismatch('true or false', type);
    case 'string':
    case 'text':
      if (typeof value !== 'string') return typeMismatch('a string', type);
      if (field.length !== undefined && [...value].length > field.length) {
        return { problem: `it is longer than ${field.length} characters` };
      }
      return { value };
    case 'enum':
      return typeof value === 'string' && field.enumValues?.includes(value)
        ? { value }
        : typeMismatch(`one of ${(field.enumValues ?? []).join(', ')}`, type);
    case 'date':
    case 'time':
    case 'datetime':
    case 'timestamp':
    case 'uuid':
      return normalizeText(value, type, field.native);
    case 'json':
      return { value: JSON.parse(canonicalJson(value)) as Json };
    case 'array':
      return normalizeArray(value, field.items ?? 'string');
    case 'binary':
    case 'blob':
      return normalizeBytes(value, field);
  }
}

function normalizeInteger(value: Json, type: FieldType, native: string | undefined): Normalized {
  const digits = typeof value === 'string' && type === 'bigint' && /^-?\d{1,20}$/.test(value);
  if (!digits && !Number.isSafeInteger(value)) return typeMismatch('a whole number', type);
  const whole = BigInt(value as string | number);
  const bits = INTEGER_BITS[type] ?? 64n;
  // An unsigned type holds greater numbers.
  if (native === undefined && BigInt.asIntN(Number(bits), whole) !== whole)
    return { problem: `it is out of range for type ${type}` };
  const number = Number(whole);
  return { value: Number.isSafeInteger(number) ? number : whole.toString() };
}

function normalizeDecimal(value: Json): Normalized {
  if (typeof value === 'number' && Number.isFinite(value)) return { value: value + 0 };
  if (typeof value !== 'string' || !/^-?\d+(\.\d+)?$/.test(value)) return typeMismatch('a number', 'decimal');
  const number = Number(value);
  return { value: String(number) === value ? number : value };
}

function normalizeText(value: Json, type: FieldType, native: string | undefined): Normalized {
  if (value === 'now' && TEMPORAL_TYPES.has(type)) return { value };
  if (native !== undefined && typeof value === 'string' && NATIVE_LITERALS[type]?.test(value)) return { value };
  const literal = LITERALS[type];
  if (typeof value === 'string' && literal?.pattern.test(value)) {
    if (TEMPORAL_TYPES.has(type) && !isValidDateTime(value)) return { problem: INVALID_DATE_TIME };
    return { value: type === 'uuid' ? value.toLowerCase() : value };
  }
  const now = TEMPORAL_TYPES.has(type) ? '"now" or ' : '';
  return typeMismatch(`${now}a string like "${literal?.example}"`, type);
}

/** Some engines read a date such as 2026-02-30 as a day in March, others reject it. */
export function isValidDateTime(text: string): boolean {
  const day = /^\d{4}-\d\d-\d\d/.exec(text)?.[0];
  const time = /(?:^|[ T])(\d\d:\d\d)(:\d\d)?/.exec(text);
  const zone = /([+-]\d\d):?(\d\d)$/.exec(day === undefined ? '' : text.slice(day.length));
  const normalized = `${day ?? '2000-01-01'}T${time?.[1] ?? '00:00'}${time?.[2] ?? ':00'}`;
  const at = new Date(`${normalized}Z`);
  const isValid = !Number.isNaN(at.getTime()) && at.toISOString().startsWith(normalized);
  return isValid && (zone === null || !Number.isNaN(Date.parse(`${normalized}${zone[1]}:${zone[2]}`)));
}

/** Bytes are base64 in JSON; each dialect writes them in its own notation. */
function normalizeBytes(value: Json, { type, length }: Omit<Field, 'default' | 'name'>): Normalized {
  const bytes = Buffer.from(typeof value === 'string' ? value : '', 'base64');
  const base64 = bytes.toString('base64');
  if (value !== base64 && value !== base64.replace(/=+$/, ''))
    return typeMismatch('bytes as base64, like "SGVsbG8="', type);
  return length !== undefined && bytes.length > length
    ? { problem: `it is longer than ${length} bytes` }
    : { value: base64 };
}

function normalizeArray(value: Json, items: FieldType): Normalized {
  if (!Array.isArray(value)) return typeMismatch('an array', 'array');
  const fitted: Json[] = [];
  for (const item of value as readonly Json[]) {
    const one: Normalized =
      item === null || item === 'now' ? typeMismatch('a literal', items) : normalizeLiteral(item, { type: items });
    if ('problem' in one) return one;
    fitted.push(one.value as Json);
  }
  return { value: fitted };
}

function typeMismatch(what: string, type: FieldType): Normalized {
  return { problem: `the type ${type} expects ${what}` };
}
