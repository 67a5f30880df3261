import type { Json } from '../../../core/json.ts';
import { isExpression } from '../../../core/schema/default.ts';
import type { Default, Field } from '../../../core/schema/model.ts';
import type { FieldType } from '../../../core/schema/types.ts';
import { clock, moment, wallClock } from '../../sql/clock.ts';
import { parsedJson, valueOfText } from '../../sql/value-of-text.ts';
import { text } from './quote.ts';
import { isGenerated } from './random.ts';
import { bytesOf, textOf } from './string-literal.ts';

/** A default as a catalog tells it: the text of a value, or an expression. */
export type CatalogDefault = { readonly literal: string } | { readonly expression: string };

const CLOCKS: Readonly<Partial<Record<FieldType, RegExp>>> = {
  date: /^(curdate\(\)|current_date(\(\))?)$/i,
  time: /^(curtime|current_time)(\(\d?\))?$/i,
  datetime: /^(now|current_timestamp|localtime|localtimestamp)(\(\d?\))?$/i,
  timestamp: /^(now|current_timestamp|localtime|localtimestamp)(\(\d?\))?$/i,
};

/** The default of a field; undefined where it is what `autoGenerate` stands for. */
export function readDefault(found: CatalogDefault, field: Omit<Field, 'default' | 'name'>): Default | undefined {
  const { type } = field;
  if ('expression' in found) {
    const { expression } = found;
    if (isGenerated(expression) && (type === 'uuid' || type === 'string')) return undefined;
    if (CLOCKS[type]?.test(expression)) return 'now';
    const value =
      type === 'binary' || type === 'blob'
        ? bytesOf(expression)
        : fromText(textOf(expression) ?? numberOf(expression), field);
    return value === undefined ? { $expression: expression } : canonicalDefault(value, field);
  }
  const value = fromText(found.literal, field);
  return value === undefined ? { $expression: rawDefault(found.literal) } : canonicalDefault(value, field);
}

const numberOf = (expression: string): string | undefined => /^\(?(-?\d+(?:\.\d+)?)\)?$/.exec(expression)?.[1];

/** The same default again, in a definition. */
export function writtenDefault(found: CatalogDefault): string {
  if ('literal' in found) return rawDefault(found.literal);
  // Beside ON UPDATE and without parentheses these are no expressions.
  return /^current_timestamp/i.test(found.expression) ? found.expression : `(${found.expression})`;
}

function rawDefault(literal: string): string {
  return /^(-?\d+(\.\d+)?(e[+-]?\d+)?|b'[01]*'|0x[0-9a-f]*)$/i.test(literal) ? literal : text(literal);
}

function fromText(value: string | undefined, { type }: Pick<Field, 'type'>): Json | undefined {
  if (value === undefined) return undefined;
  if (type !== 'array') return valueOfText(value, type);
  const list = parsedJson(value);
  return Array.isArray(list) ? list : undefined;
}

/** The one spelling of a literal that model and catalog share. */
export function canonicalDefault(value: Default, field: Pick<Field, 'type' | 'scale'>): Default {
  if (isExpression(value) || value === 'now') return value;
  switch (field.type) {
    case 'decimal':
      return decimal(String(value), field.scale ?? 0);
    case 'float':
      // The catalog keeps six digits.
      return Number(Math.fround(Number(value)).toPrecision(6));
    case 'time':
      return clock(String(value));
    case 'datetime':
      return wallClock(String(value));
    case 'timestamp':
      return moment(String(value));
    case 'uuid':
      return String(value).toLowerCase();
    default:
      return value;
  }
}

/** As the server rounds it, without zeros at its end; a number where it prints the same digits. */
function decimal(value: string, scale: number): Json {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(value) ?? [];
  const shift = Number(exponent) + scale;
  const digits = (whole + fraction).padEnd(whole.length + Math.max(0, shift), '0');
  const point = whole.length + shift;
  const kept = point < 0 ? 0n : BigInt(digits.slice(0, point) || '0');
  const rounded = kept + (point >= 0 && (digits[point] ?? '0') >= '5' ? 1n : 0n);
  const all = rounded.toString().padStart(scale + 1, '0');
  const rest = all.slice(all.length - scale).replace(/0+$/, '');
  const plain = `${rounded === 0n ? '' : sign}${scale === 0 ? all : all.slice(0, -scale)}${scale > 0 && rest !== '' ? `.${rest}` : ''}`;
  return String(Number(plain)) === plain ? Number(plain) : plain;
}
