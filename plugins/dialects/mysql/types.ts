import { SvcError } from '../../../core/errors.ts';
import type { Field } from '../../../core/schema/model.ts';
import type { FieldType } from '../../../core/schema/types.ts';
import { text } from './quote.ts';
import { isBasic, stringOf } from './string-literal.ts';

/** What a string without a length gets. */
export const STRING_LENGTH = 255;
/** Of utf8mb4, in a row of 65,535 bytes. */
const LONGEST_STRING = 16_383;
const LONGEST_BINARY = 65_532;
const UUID_COLUMN = 'char(36) CHARACTER SET ascii COLLATE ascii_general_ci';

/** A UUID as a regular expression. */
export const UUID = '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$';

/** Column types; `string`, `decimal`, `enum` and `binary` get theirs from the field. */
export const columnTypes: Readonly<Record<FieldType, string>> = {
  integer: 'int',
  bigint: 'bigint',
  smallint: 'smallint',
  float: 'float',
  double: 'double',
  decimal: 'decimal(p,s)',
  string: 'varchar(n)',
  text: 'longtext',
  boolean: 'tinyint(1)',
  date: 'date',
  time: 'time(3)',
  datetime: 'datetime(3)',
  timestamp: 'timestamp(3)',
  json: 'json',
  uuid: 'char(36)',
  enum: 'enum(…)',
  array: 'json',
  binary: 'varbinary(n)',
  blob: 'longblob',
};

/** Types that are stored beside the row: without a length they cannot be in an index, and no literal is their default. */
export const LONG: ReadonlySet<FieldType> = new Set(['text', 'json', 'array', 'blob']);

export const isLong = ({ type, length }: Pick<Field, 'type' | 'length'>): boolean =>
  LONG.has(type) || (type === 'binary' && length === undefined);

/** Whether the server counts its values up. */
export const isNumbered = ({ autoGenerate, type }: Pick<Field, 'autoGenerate' | 'type'>): boolean =>
  autoGenerate === true && (type === 'integer' || type === 'bigint' || type === 'smallint');

export function columnType(field: Omit<Field, 'name'> & { readonly name?: string }, where: string): string {
  const { type, length, precision, scale } = field;
  const refused = (why: string) =>
    new SvcError('field_invalid', `The field "${where}.${field.name ?? ''}" cannot be as it is defined.`, { why });
  switch (type) {
    case 'string':
      if ((length ?? 0) > LONGEST_STRING)
        throw refused(`A varchar has at most ${LONGEST_STRING} characters; longer ones are of type text.`);
      return `varchar(${length ?? STRING_LENGTH})`;
    case 'decimal':
      if (precision === undefined || scale === undefined)
        throw refused(
          'A decimal needs "precision" and "scale": without them the server drops what is behind the point.',
        );
      if (precision > 65 || scale > 30) throw refused('The precision is at most 65 and the scale at most 30.');
      return `decimal(${precision},${scale})`;
    case 'binary':
      if (length === undefined) return 'longblob';
      if (length > LONGEST_BINARY)
        throw refused(`A varbinary has at most ${LONGEST_BINARY} bytes; longer ones are blobs.`);
      return `varbinary(${length})`;
    case 'enum': {
      const why = labelProblem(field.enumValues ?? []);
      if (why !== undefined) throw refused(why);
      return `enum(${(field.enumValues ?? []).map(text).join(',')})`;
    }
    case 'uuid':
      return UUID_COLUMN;
    default:
      return columnTypes[type];
  }
}

/** Why the engine would store other values than these, in a sentence. */
function labelProblem(values: readonly string[]): string | undefined {
  const seen = new Map<string, string>();
  for (const value of values) {
    const told = JSON.stringify(value);
    if (/ $/.test(value)) return `The value ${told} ends in a space, which the server removes.`;
    if (!isBasic(value))
      return `The value ${told} has a character beyond the Basic Multilingual Plane, which the catalog loses.`;
    if ([...value].length > 255) return `The value ${told} has more than 255 characters.`;
    const folded = value.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();
    const equal = seen.get(folded);
    if (equal !== undefined) return `The values ${JSON.stringify(equal)} and ${told} are equal to the server.`;
    seen.set(folded, value);
  }
  return undefined;
}

export type ReadType = Pick<Field, 'type' | 'length' | 'precision' | 'scale' | 'enumValues'> & {
  /** The type is only the nearest one. */
  readonly inexact?: true;
};

const PLAIN: Readonly<Record<string, FieldType>> = {
  int: 'integer',
  bigint: 'bigint',
  smallint: 'smallint',
  float: 'float',
  double: 'double',
  'tinyint(1)': 'boolean',
  longtext: 'text',
  date: 'date',
  'time(3)': 'time',
  'datetime(3)': 'datetime',
  'timestamp(3)': 'timestamp',
  json: 'json',
  longblob: 'blob',
};

/** Types that svc does not make, with the nearest one that it does. */
const NEAREST: readonly (readonly [RegExp, FieldType])[] = [
  [/^(tinyint|year)/, 'smallint'],
  [/^smallint unsigned/, 'integer'],
  [/^int unsigned/, 'bigint'],
  [/^(mediumint|int)\b/, 'integer'],
  [/^bigint/, 'bigint'],
  [/^float/, 'float'],
  [/^(double|real)/, 'double'],
  [/^(tiny|medium|long)?text/, 'text'],
  [/^(tiny|medium|long)?blob/, 'blob'],
  [/^time(?!stamp)/, 'time'],
  [/^datetime/, 'datetime'],
  [/^timestamp/, 'timestamp'],
  [/^bit/, 'binary'],
];

/** The field type of a column from what `column_type` says. */
export function readType(written: string, charset: string | null): ReadType {
  const type = written.replace(/^(bigint|int|mediumint|smallint)\(\d+\)/, '$1');
  const plain = PLAIN[type];
  if (plain) return { type: plain };
  if (type === 'uuid') return { type: 'uuid', inexact: true };
  if (type === 'char(36)' && charset === 'ascii') return { type: 'uuid' };
  const sized = /^(varchar|varbinary|char|binary)\((\d+)\)$/.exec(type);
  if (sized) {
    const [, name = '', length] = sized;
    const exact = name.startsWith('var');
    const text = name.endsWith('char');
    return { type: text ? 'string' : 'binary', length: Number(length), ...(!exact && { inexact: true }) };
  }
  const decimal = /^decimal\((\d+),(\d+)\)( .*)?$/.exec(type);
  if (decimal) {
    const [, precision, scale, more] = decimal;
    return { type: 'decimal', precision: Number(precision), scale: Number(scale), ...(more && { inexact: true }) };
  }
  const labels = /^enum\((.*)\)$/s.exec(type)?.[1];
  if (labels !== undefined) return { type: 'enum', enumValues: labelsOf(labels) };
  const nearest = NEAREST.find(([pattern]) => pattern.test(type));
  return { type: nearest?.[1] ?? 'text', inexact: true };
}

/** The words of an enum in what `column_type` says. */
export function labelsOf(list: string): string[] {
  return [...list.matchAll(/'(?:[^'\\]|\\.|'')*'/gs)].map(([literal]) => stringOf(literal) ?? '');
}
