import { SvcError } from '../../../../core/errors.ts';
import type { Field, FieldType } from '../../../../core/schema/model.ts';
import { isBasicMultilingual, parseString, quoteLiteral } from './literal.ts';
import { expressionProblem } from './raw.ts';

/** The length of a string field without one. */
export const STRING_LENGTH = 255;
/** The maximum for utf8mb4 in a row of 65,535 bytes. */
const MAX_STRING = 16_383;
const MAX_BINARY = 65_532;
export const UUID_COLLATION = 'ascii_general_ci';
const UUID_COLUMN = `char(36) CHARACTER SET ascii COLLATE ${UUID_COLLATION}`;

/** A UUID as a regular expression. */
export const UUID = '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$';

/** For documentation and exact matches; `string`, `decimal`, `enum` and `binary` have sizes from the field. */
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

/** Types that are stored outside the row: they cannot be in an index, and their default must be an expression. */
const LONG_TYPES: ReadonlySet<FieldType> = new Set(['text', 'json', 'array', 'blob']);

export const isLong = ({ type, length, native }: Pick<Field, 'type' | 'length' | 'native'>): boolean =>
  native === undefined
    ? LONG_TYPES.has(type) || (type === 'binary' && length === undefined)
    : /^\w*(text|blob)\b|^(json|geometry|\w*point|\w*linestring|\w*polygon|geometrycollection)\b/i.test(native);

/** Whether the server generates its values. */
export const isAutoIncrement = ({ autoGenerate, type }: Pick<Field, 'autoGenerate' | 'type'>): boolean =>
  autoGenerate === true && (type === 'integer' || type === 'bigint' || type === 'smallint');

export function columnType(field: Omit<Field, 'name'> & { readonly name?: string }, where: string): string {
  const { type, length, precision, scale, native } = field;
  const invalid = (why: string) =>
    new SvcError('field_invalid', `The field "${where}.${field.name ?? ''}" cannot be used as defined.`, { why });
  if (native !== undefined) {
    const parts = parseNative(native);
    if (!parts) throw invalid(`${JSON.stringify(native)} is not a type and its attributes.`);
    return parts.type;
  }
  switch (type) {
    case 'string':
      if ((length ?? 0) > MAX_STRING)
        throw invalid(`A varchar has at most ${MAX_STRING} characters; longer ones are of type text.`);
      return `varchar(${length ?? STRING_LENGTH})`;
    case 'decimal':
      if (precision === undefined || scale === undefined)
        throw invalid(
          'A decimal needs "precision" and "scale": without them the server drops the digits after the point.',
        );
      if (precision > 65 || scale > 30) throw invalid('The precision is at most 65 and the scale at most 30.');
      return `decimal(${precision},${scale})`;
    case 'binary':
      if (length === undefined) return 'longblob';
      if (length > MAX_BINARY) throw invalid(`A varbinary has at most ${MAX_BINARY} bytes; longer ones are blobs.`);
      return `varbinary(${length})`;
    case 'enum': {
      const why = labelProblem(field.enumValues ?? []);
      if (why !== undefined) throw invalid(why);
      return `enum(${(field.enumValues ?? []).map(quoteLiteral).join(',')})`;
    }
    case 'uuid':
      return UUID_COLUMN;
    default:
      return columnTypes[type];
  }
}

const LABELS = String.raw`'(?:[^'\\]|'')*'(?:, ?'(?:[^'\\]|'')*')*`;
const NATIVE = new RegExp(
  String.raw`^(?<type>[a-z]\w*(?: precision)? ?(?:\((?:\d+(?:, ?\d+)?|${LABELS})\))?(?: unsigned)?(?: zerofill)?` +
    String.raw`(?: character set \w+)?(?: collate \w+)?(?: srid \d+| ref_system_id ?= ?\d+)?)` +
    String.raw`(?: (?<source>generated always as \((?<expression>.+)\) (?:virtual|stored)))?` +
    String.raw`(?<attributes>(?: invisible)?(?: on update current_timestamp(?:\(\d?\))?)?)$`,
  'is',
);

/** The parts of a native type; undefined for a text with anything else. */
function parseNative(native: string): { readonly type: string; readonly attributes: string } | undefined {
  const { type, source = '', expression, attributes = '' } = NATIVE.exec(native)?.groups ?? {};
  if (type === undefined || (expression !== undefined && expressionProblem(expression) !== undefined)) return undefined;
  return { type, attributes: `${source} ${attributes.trim()}`.trim() };
}

/** What follows the type of a native one and whether the column may be null. Empty for any other field. */
export const nativeAttributes = ({ native }: Pick<Field, 'native'>): string =>
  native === undefined ? '' : (parseNative(native)?.attributes ?? '');

/** Why the server would store different values, as a sentence. */
function labelProblem(values: readonly string[]): string | undefined {
  const labels = new Map<string, string>();
  for (const value of values) {
    const quoted = JSON.stringify(value);
    if (/ $/.test(value)) return `The value ${quoted} ends in a space, which the server removes.`;
    if (!isBasicMultilingual(value))
      return `The value ${quoted} contains a character beyond the Basic Multilingual Plane, which the catalog replaces.`;
    if ([...value].length > 255) return `The value ${quoted} has more than 255 characters.`;
    const folded = value.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();
    const equal = labels.get(folded);
    if (equal !== undefined) return `The values ${JSON.stringify(equal)} and ${quoted} are equal to the server.`;
    labels.set(folded, value);
  }
  return undefined;
}

export type ReadType = Pick<Field, 'type' | 'length' | 'precision' | 'scale' | 'enumValues' | 'native'> & {
  /** The type is only the nearest match. */
  readonly inexact?: true;
};

const EXACT_TYPES: Readonly<Record<string, FieldType>> = {
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

/** Types that svc does not create, with the nearest one that it does. */
const NEAREST_TYPES: readonly (readonly [RegExp, FieldType])[] = [
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

/** How wide the catalog of MariaDB says that integers are if nobody said how wide they are shown. */
const WIDTHS: Readonly<Record<string, readonly [signed: string, unsigned: string]>> = {
  tinyint: ['4', '3'],
  smallint: ['6', '5'],
  mediumint: ['9', '8'],
  int: ['11', '10'],
  bigint: ['20', '20'],
};

/** The type as svc writes it, from `column_type`. */
export function canonicalType(written: string): string {
  const [, name = '', width, unsigned = '', zerofill] = /^(\w+)\((\d+)\)( unsigned)?( zerofill)?$/.exec(written) ?? [];
  if (written === 'year(4)') return 'year';
  return zerofill === undefined && width !== undefined && width === WIDTHS[name]?.[unsigned === '' ? 0 : 1]
    ? name + unsigned
    : written;
}

/** The field type of a column, from `column_type`. */
export function readType(written: string, charset: string | null): ReadType {
  const type = canonicalType(written);
  const plain = EXACT_TYPES[type];
  if (plain) return { type: plain };
  if (type === 'uuid') return { type: 'uuid', inexact: true };
  if (type === 'char(36)' && charset === 'ascii') return { type: 'uuid' };
  const sized = /^(varchar|varbinary|char|binary)\((\d+)\)$/.exec(type);
  if (sized) {
    const [, name = '', length] = sized;
    const text = name.endsWith('char');
    const read = { type: text ? 'string' : 'binary' } as const;
    if (Number(length) === 0) return { ...read, inexact: true };
    const fits = name.startsWith('var') && Number(length) <= (text ? MAX_STRING : MAX_BINARY);
    return { ...read, length: Number(length), ...(!fits && { inexact: true }) };
  }
  const decimal = /^decimal\((\d+),(\d+)\)( .*)?$/.exec(type);
  if (decimal) {
    const [, precision, scale, more] = decimal;
    return { type: 'decimal', precision: Number(precision), scale: Number(scale), ...(more && { inexact: true }) };
  }
  const labels = /^enum\((.*)\)$/s.exec(type)?.[1];
  if (labels !== undefined) {
    const enumValues = parseLabels(labels);
    return { type: 'enum', enumValues, ...(labelProblem(enumValues) !== undefined && { inexact: true }) };
  }
  const nearest = NEAREST_TYPES.find(([pattern]) => pattern.test(type));
  return { type: nearest?.[1] ?? 'text', inexact: true };
}

/** The values of an enum, from `column_type`. */
export function parseLabels(list: string): string[] {
  return [...list.matchAll(/'(?:[^'\\]|\\.|'')*'/gs)].map(([literal]) => parseString(literal) ?? '');
}

/** Whether a string or binary column may be too short for the values of another column. */
export function isShorter(from: Field, to: Field): boolean {
  if (to.type === 'binary' && to.length === undefined) return false;
  if (from.type !== to.type) return true;
  return (from.length ?? (to.type === 'string' ? STRING_LENGTH : Infinity)) > (to.length ?? STRING_LENGTH);
}
