import type { UnsupportedObject } from '../../../core/dialect.ts';
import { type Json, tryParseJson } from '../../../core/json.ts';
import { isExpression } from '../../../core/schema/literal.ts';
import type { Collection, Field, FieldType } from '../../../core/schema/model.ts';

const TRUE: ReadonlySet<string> = new Set(['1', 't', 'true']);
const FALSE: ReadonlySet<string> = new Set(['0', 'f', 'false']);

/** Parses a value from its catalog text; undefined if it is not valid for the type. Arrays are engine-specific. */
export function parseValue(text: string, type: Exclude<FieldType, 'array'>): Json | undefined {
  switch (type) {
    case 'smallint':
    case 'integer':
    case 'bigint':
      if (!/^-?\d+$/.test(text)) return undefined;
      return Number.isSafeInteger(Number(text)) ? Number(text) : text;
    case 'float':
    case 'double':
      return text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : undefined;
    case 'decimal':
      return /^-?\d+(\.\d+)?$/.test(text) ? text : undefined;
    case 'boolean':
      return TRUE.has(text) ? true : FALSE.has(text) ? false : undefined;
    case 'json':
      return tryParseJson(text);
    case 'binary':
    case 'blob':
      return undefined;
    default:
      return text;
  }
}

/** A number, or a quoted value that the server rejects. */
export function numberLiteral(value: Json, quoteLiteral: (text: string) => string): string {
  const digits = String(value);
  if (/^-?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(digits)) return digits;
  return quoteLiteral(typeof value === 'string' ? value : JSON.stringify(value));
}

/** A time or a UUID in the normal form of a default; any other value unchanged. */
export function normalizeText(value: Json, type: FieldType): Json {
  switch (type) {
    case 'time':
      return normalizeTime(String(value));
    case 'datetime':
      return normalizeDateTime(String(value));
    case 'timestamp':
      return normalizeTimestamp(String(value));
    case 'uuid':
      return String(value).toLowerCase();
    default:
      return value;
  }
}

/** A time in the normal form of a default: always with seconds, without trailing zeros. */
function normalizeTime(text: string): string {
  const [, minutes = '', seconds = '00', fraction = ''] = /^(\d\d:\d\d)(?::(\d\d)(?:\.(\d+))?)?$/.exec(text) ?? [];
  const rest = fraction.replace(/0+$/, '');
  return minutes === '' ? text : `${minutes}:${seconds}${rest === '' ? '' : `.${rest}`}`;
}

/** A date and time without a zone. A date alone means midnight. */
function normalizeDateTime(text: string): string {
  const [day = '', time = '00:00'] = text.split(/[ T]/);
  return `${day}T${normalizeTime(time)}`;
}

/** A timestamp converted to UTC. Without a zone it is in UTC already. */
function normalizeTimestamp(text: string): string {
  const zoned = /(Z|[+-]\d\d(:?\d\d)?)$/.test(text.slice(10)) ? text : `${text}Z`;
  const at = new Date(zoned.replace(' ', 'T').replace(/([+-]\d\d)$/, '$1:00'));
  return Number.isNaN(at.getTime()) ? text : `${normalizeDateTime(withMicroseconds(at, text).slice(0, -1))}Z`;
}

/** The moment in UTC, with the digits of the text beyond a millisecond, which no `Date` has. */
export const withMicroseconds = (at: Date, text: string): string =>
  at.toISOString().replace('Z', `${/\.\d{3}(\d+)/.exec(text)?.[1] ?? ''}Z`);

export function setFlags(fields: Map<string, Field>, name: string, flags: Partial<Field>): void {
  const field = fields.get(name);
  if (field) fields.set(name, { ...field, ...flags });
}

/** An index or a constraint that a model does not contain. `why` completes "it …". */
export const leftOut = (
  collection: string,
  kind: 'constraint' | 'index',
  name: string,
  why: string,
): UnsupportedObject => ({
  collection,
  name,
  what: `has the ${kind} "${name}", which svc cannot create: it ${why}`,
});

/** Whether the server spells the type or the default of the field in its own way. */
export const isSpelledByServer = ({ native, default: value }: Field): boolean =>
  native !== undefined || (value !== undefined && isExpression(value));

/** Whether the server spells a part of the table in its own way. */
export const hasServerSpelling = ({ fields, indexes, constraints }: Collection): boolean =>
  [...fields.values()].some(isSpelledByServer) ||
  [...indexes.values()].some(({ native }) => native !== undefined) ||
  [...constraints.values()].some(({ type }) => type === 'check');
