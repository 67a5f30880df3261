import { SvcError } from '../../../core/errors.ts';
import type { Field } from '../../../core/schema/model.ts';
import type { FieldType } from '../../../core/schema/types.ts';

/** What a string without a length gets. */
export const STRING_LENGTH = 255;
/** Digits before and after the point that a numeric can have. */
const NUMERIC_LIMIT = 1000;

/** Column types; `string` and `decimal` get their numbers from the field. */
export const columnTypes: Readonly<Record<FieldType, string>> = {
  integer: 'integer',
  bigint: 'bigint',
  smallint: 'smallint',
  float: 'real',
  double: 'double precision',
  decimal: 'numeric(p,s)',
  string: 'varchar(n)',
  text: 'text',
  boolean: 'boolean',
  date: 'date',
  time: 'time(3)',
  datetime: 'timestamp(3)',
  timestamp: 'timestamptz(3)',
  json: 'jsonb',
  uuid: 'uuid',
  enum: 'text',
  array: 'items[]',
  binary: 'bytea',
  blob: 'bytea',
};

export function columnType(field: Omit<Field, 'name'> & { readonly name?: string }, where: string): string {
  const { type, length, precision, scale } = field;
  switch (type) {
    case 'string':
      if (length !== undefined && length > 10_485_760)
        throw refused(field, where, 'A varchar has at most 10,485,760 characters.');
      return `varchar(${length ?? STRING_LENGTH})`;
    case 'decimal':
      if (precision === undefined || scale === undefined) {
        throw refused(
          field,
          where,
          'A decimal needs "precision" and "scale": engines disagree about what is meant without them.',
        );
      }
      if (precision > NUMERIC_LIMIT) throw refused(field, where, `The precision is at most ${NUMERIC_LIMIT}.`);
      return `numeric(${precision},${scale})`;
    case 'array':
      // An item has no parameters of its own: a numeric without them keeps every digit.
      return `${field.items === 'decimal' ? 'numeric' : columnType({ type: field.items ?? 'string' }, where)}[]`;
    default:
      return columnTypes[type];
  }
}

function refused({ name }: { readonly name?: string }, where: string, why: string): SvcError {
  return new SvcError(
    'field_invalid',
    `The definition of the field "${where}.${name ?? ''}" cannot be used on PostgreSQL.`,
    {
      why,
    },
  );
}

const PLAIN: Readonly<Record<string, FieldType>> = {
  integer: 'integer',
  bigint: 'bigint',
  smallint: 'smallint',
  real: 'float',
  'double precision': 'double',
  text: 'text',
  boolean: 'boolean',
  date: 'date',
  'time(3) without time zone': 'time',
  'timestamp(3) without time zone': 'datetime',
  'timestamp(3) with time zone': 'timestamp',
  jsonb: 'json',
  uuid: 'uuid',
  bytea: 'binary',
};

/** Types that svc does not make, with the nearest one that it does. */
const NEAREST: readonly (readonly [RegExp, FieldType])[] = [
  [/^numeric/, 'decimal'],
  [/^character varying$/, 'text'],
  [/^time(\(\d\))? with/, 'time'],
  [/^timestamp(\(\d\))? without/, 'datetime'],
  [/^timestamp(\(\d\))? with/, 'timestamp'],
  [/^json$/, 'json'],
];

export type ReadType = Pick<Field, 'type' | 'length' | 'precision' | 'scale' | 'items' | 'enumValues'> & {
  /** The type is only the nearest one. */
  readonly inexact?: true;
  /** It has little in common with the type but the text of its values: a check on the one is no check on the other. */
  readonly foreign?: true;
};

/** The field type of a column from what `format_type` says. */
export function readType(formatted: string): ReadType {
  if (formatted.endsWith('[]')) {
    const { type, inexact, foreign: other, length } = readType(formatted.slice(0, -2));
    const numeric = formatted === 'numeric[]';
    const lossy = !numeric && (inexact || type === 'decimal' || (type === 'string' && length !== STRING_LENGTH));
    // Operators of arrays, unlike those of their items, take only two of one type.
    const foreign = other || /^character(\(| varying\[)/.test(formatted);
    return { type: 'array', items: type, ...(lossy && { inexact: true }), ...(foreign && { foreign: true }) };
  }
  const plain = PLAIN[formatted];
  if (plain) return { type: plain };
  const varying = /^character varying\((\d+)\)$/.exec(formatted);
  if (varying) return { type: 'string', length: Number(varying[1]) };
  const numeric = /^numeric\((\d+),(\d+)\)$/.exec(formatted);
  if (numeric) return { type: 'decimal', precision: Number(numeric[1]), scale: Number(numeric[2]) };
  const fixed = /^character\((\d+)\)$/.exec(formatted);
  if (fixed) return { type: 'string', length: Number(fixed[1]), inexact: true };
  const nearest = NEAREST.find(([pattern]) => pattern.test(formatted));
  if (!nearest) return { type: 'text', inexact: true, foreign: true };
  return { type: nearest[1], inexact: true, ...(nearest[1] === 'json' && { foreign: true }) };
}
