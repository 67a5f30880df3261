import type { Json } from '../../../core/json.ts';
import { fittedLiteral, isExpression } from '../../../core/schema/default.ts';
import type { Default, Field } from '../../../core/schema/model.ts';
import type { FieldType } from '../../../core/schema/types.ts';
import { clock, moment, wallClock } from '../../sql/clock.ts';
import { valueOfText } from '../../sql/value-of-text.ts';

const NOW: readonly RegExp[] = [
  /^(now\(\)|current_timestamp(\(\d\))?|transaction_timestamp\(\)|localtimestamp(\(\d\))?|localtime(\(\d\))?)$/i,
  /^\(?(now\(\)|current_timestamp)\)?::time/i,
];
/** On a field that has a time too it is midnight. */
const TODAY = /^(current_date|\(?(now\(\)|current_timestamp)\)?::date)$/i;
const UUID = /^\(?gen_random_uuid\(\)\)?(::text|::character varying)?$/;

/** A default as the catalog spells it; undefined where it is what `autoGenerate` stands for. */
export function readDefault(spelled: string, field: Omit<Field, 'default' | 'name'>): Default | undefined {
  if (UUID.test(spelled) && (field.type === 'uuid' || field.type === 'string')) return undefined;
  if (/^nextval\('.*'::regclass\)$/.test(spelled)) return undefined;
  if (isClock(field.type) && NOW.some((pattern) => pattern.test(spelled))) return 'now';
  if (field.type === 'date' && TODAY.test(spelled)) return 'now';
  const found = literalOf(spelled);
  const value = found === undefined ? undefined : fromText(found, field);
  if (value === undefined) return { $expression: spelled };
  const literal = canonicalValue(value, field);
  // What no literal of ours says, as 'infinity' or a day before Christ, is said in the server's words.
  return 'problem' in fittedLiteral(literal, field) ? { $expression: spelled } : literal;
}

const isClock = (type: FieldType) => type === 'date' || type === 'time' || type === 'datetime' || type === 'timestamp';

/** The text of a constant: `'it''s'::text`, `5`, `'-5'::integer`, `true`. */
function literalOf(spelled: string): string | undefined {
  const quoted = /^'((?:[^']|'')*)'(?:::.+)?$/s.exec(spelled);
  if (quoted?.[1] !== undefined && !/^'(?:[^']|'')*'::.*[('+]/s.test(spelled.replace(/\(\d+(,\d+)?\)/g, ''))) {
    return quoted[1].replaceAll("''", "'");
  }
  const plain = /^\(?(-?\d+(?:\.\d+)?)\)?(?:::[a-z ]+(?:\(\d+(?:,\d+)?\))?)?$/.exec(spelled);
  if (plain) return plain[1];
  return spelled === 'true' || spelled === 'false' ? spelled : undefined;
}

function fromText(text: string, { type, items }: Pick<Field, 'type' | 'items'>): Json | undefined {
  if (type === 'array') return arrayOf(text, items ?? 'string');
  const hex = type === 'binary' || type === 'blob' ? /^\\x([0-9a-f]*)$/.exec(text)?.[1] : undefined;
  return hex === undefined ? valueOfText(text, type) : Buffer.from(hex, 'hex').toString('base64');
}

/** `{a,"b c",NULL}` of one dimension. */
function arrayOf(text: string, items: FieldType): Json[] | undefined {
  if (!text.startsWith('{') || !text.endsWith('}')) return undefined;
  const found: Json[] = [];
  for (const [, quoted, plain] of text.slice(1, -1).matchAll(/(?:"((?:[^"\\]|\\.)*)"|([^,]+))(?:,|$)/gs)) {
    const element = quoted === undefined ? plain : quoted.replace(/\\(.)/gs, '$1');
    const value =
      element === undefined || (quoted === undefined && element === 'NULL') ? null : fromText(element, { type: items });
    if (value === undefined) return undefined;
    found.push(value);
  }
  return found;
}

/** The one spelling of a literal that model and catalog share. */
export function canonicalDefault(value: Default, field: Pick<Field, 'type' | 'items'>): Default {
  if (isExpression(value) || value === 'now') return value;
  return canonicalValue(value as Json, field);
}

function canonicalValue(value: Json, { type, items }: Pick<Field, 'type' | 'items'>, item = false): Json {
  switch (type) {
    case 'decimal':
      return decimal(String(value));
    case 'float':
      // The items of an array are stored as what they are; a default keeps the digits it was given.
      return item ? shortestReal(Number(value)) : value;
    case 'time':
      return clock(String(value));
    case 'datetime':
      return wallClock(String(value));
    case 'timestamp':
      return moment(String(value));
    case 'uuid':
      return String(value).toLowerCase();
    case 'array':
      return (value as readonly Json[]).map((one) =>
        one === null ? null : canonicalValue(one, { type: items ?? 'string' }, true),
      );
    default:
      return value;
  }
}

/** Every digit; a number where it prints the same digits. */
function decimal(text: string): Json {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(text) ?? [];
  const shift = Number(exponent);
  const digits = whole + fraction;
  const point = whole.length + shift;
  const plain =
    point <= 0
      ? `0.${'0'.repeat(-point)}${digits}`
      : point >= digits.length
        ? digits + '0'.repeat(point - digits.length)
        : `${digits.slice(0, point)}.${digits.slice(point)}`;
  const full = sign + plain;
  return String(Number(full)) === full ? Number(full) : full;
}

function shortestReal(value: number): number {
  const stored = Math.fround(value);
  for (let digits = 1; digits < 10; digits += 1) {
    const shorter = Number(value.toPrecision(digits));
    if (Math.fround(shorter) === stored) return shorter;
  }
  return value;
}
