import { canonicalJson, isPlainObject, type Json } from '../json.ts';
import type { Default, Field } from './model.ts';
import type { FieldType } from './types.ts';

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

/** Types whose default may be `'now'`. */
export const CLOCK_TYPES: ReadonlySet<FieldType> = new Set(['date', 'time', 'datetime', 'timestamp']);

export const NOT_IN_CALENDAR = 'there is no such day or time';

export function isExpression(value: Default): value is { readonly $expression: string } {
  return isPlainObject(value) && typeof value.$expression === 'string' && Object.keys(value).length === 1;
}

type Fitted = { readonly value: Default } | { readonly problem: string };

/** The default in normal form, or why it does not fit the field. Numbers that JSON cannot hold are written as strings. */
export function fittedDefault(value: Json, field: Omit<Field, 'default' | 'name'>): Fitted {
  if (isPlainObject(value) && Object.hasOwn(value, '$expression')) {
    const text = value.$expression;
    return isExpression(value) && typeof text === 'string' && text.trim() !== ''
      ? { value: { $expression: text } }
      : { problem: 'an expression is { "$expression": "text" } and nothing beside it' };
  }
  return fittedLiteral(value, field);
}

/** The same for a literal alone. */
export function fittedLiteral(value: Json, field: Omit<Field, 'default' | 'name'>): Fitted {
  const { type } = field;
  switch (type) {
    case 'smallint':
    case 'integer':
    case 'bigint':
      return fittedInteger(value, type);
    case 'float':
    case 'double':
      return typeof value === 'number' && Number.isFinite(value) ? { value: value + 0 } : wanted('a number', type);
    case 'decimal':
      return fittedDecimal(value);
    case 'boolean':
      return typeof value === 'boolean' ? { value } : wanted('true or false', type);
    case 'string':
    case 'text':
      if (typeof value !== 'string') return wanted('a string', type);
      if (field.length !== undefined && [...value].length > field.length) {
        return { problem: `it is longer than ${field.length} characters` };
      }
      return { value };
    case 'enum':
      return typeof value === 'string' && field.enumValues?.includes(value)
        ? { value }
        : wanted(`one of ${(field.enumValues ?? []).join(', ')}`, type);
    case 'date':
    case 'time':
    case 'datetime':
    case 'timestamp':
    case 'uuid':
      return fittedText(value, type);
    case 'json':
      return { value: JSON.parse(canonicalJson(value)) as Json };
    case 'array':
      return fittedArray(value, field.items ?? 'string');
    case 'binary':
    case 'blob':
      return fittedBytes(value, field);
  }
}

function fittedInteger(value: Json, type: FieldType): Fitted {
  const digits = typeof value === 'string' && type === 'bigint' && /^-?\d{1,20}$/.test(value);
  if (!digits && !Number.isSafeInteger(value)) return wanted('a whole number', type);
  const whole = BigInt(value as string | number);
  const bits = INTEGER_BITS[type] ?? 64n;
  if (BigInt.asIntN(Number(bits), whole) !== whole) return { problem: `it is out of range for type ${type}` };
  const number = Number(whole);
  return { value: Number.isSafeInteger(number) ? number : whole.toString() };
}

function fittedDecimal(value: Json): Fitted {
  if (typeof value === 'number' && Number.isFinite(value)) return { value: value + 0 };
  if (typeof value !== 'string' || !/^-?\d+(\.\d+)?$/.test(value)) return wanted('a number', 'decimal');
  const number = Number(value);
  return { value: String(number) === value ? number : value };
}

function fittedText(value: Json, type: FieldType): Fitted {
  if (value === 'now' && CLOCK_TYPES.has(type)) return { value };
  const literal = LITERALS[type];
  if (typeof value === 'string' && literal?.pattern.test(value)) {
    if (CLOCK_TYPES.has(type) && !isInCalendar(value)) return { problem: NOT_IN_CALENDAR };
    return { value: type === 'uuid' ? value.toLowerCase() : value };
  }
  const now = CLOCK_TYPES.has(type) ? '"now" or ' : '';
  return wanted(`${now}a string like "${literal?.example}"`, type);
}

/** A day that does not exist would be the first of the next month to some engines, and an error to others. */
export function isInCalendar(text: string): boolean {
  const day = /^\d{4}-\d\d-\d\d/.exec(text)?.[0];
  const time = /(?:^|[ T])(\d\d:\d\d)(:\d\d)?/.exec(text);
  const zone = /([+-]\d\d):?(\d\d)$/.exec(day === undefined ? '' : text.slice(day.length));
  const told = `${day ?? '2000-01-01'}T${time?.[1] ?? '00:00'}${time?.[2] ?? ':00'}`;
  const at = new Date(`${told}Z`);
  const stands = !Number.isNaN(at.getTime()) && at.toISOString().startsWith(told);
  return stands && (zone === null || !Number.isNaN(Date.parse(`${told}${zone[1]}:${zone[2]}`)));
}

/** Base64, as JSON has bytes everywhere; each engine is told them in its own notation. */
function fittedBytes(value: Json, { type, length }: Omit<Field, 'default' | 'name'>): Fitted {
  const bytes = Buffer.from(typeof value === 'string' ? value : '', 'base64');
  const base64 = bytes.toString('base64');
  if (value !== base64 && value !== base64.replace(/=+$/, '')) return wanted('bytes as base64, like "SGVsbG8="', type);
  return length !== undefined && bytes.length > length
    ? { problem: `it is longer than ${length} bytes` }
    : { value: base64 };
}

function fittedArray(value: Json, items: FieldType): Fitted {
  if (!Array.isArray(value)) return wanted('an array', 'array');
  const fitted: Json[] = [];
  for (const item of value as readonly Json[]) {
    const one: Fitted =
      item === null || item === 'now' ? wanted('a literal', items) : fittedLiteral(item, { type: items });
    if ('problem' in one) return one;
    fitted.push(one.value as Json);
  }
  return { value: fitted };
}

function wanted(what: string, type: FieldType): Fitted {
  return { problem: `the type ${type} wants ${what}` };
}
