import { SvcError } from '../../../../core/errors.ts';
import type { Field, FieldType } from '../../../../core/schema/model.ts';
import { expressionProblem } from './raw.ts';

export const DEFAULT_STRING_LENGTH = 255;
/** The highest precision of a numeric. */
const NUMERIC_LIMIT = 1000;

/** Column types; `string` and `decimal` take their length, precision and scale from the field. */
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
  const { type, length, precision, scale, native } = field;
  if (native !== undefined) {
    const { type: written, collation } = parseNative(field, where);
    return collation === undefined ? written : `${written} COLLATE ${collation}`;
  }
  switch (type) {
    case 'string':
      if (length !== undefined && length > 10_485_760)
        throw invalidFieldError(field, where, 'A varchar has at most 10,485,760 characters.');
      return `varchar(${length ?? DEFAULT_STRING_LENGTH})`;
    case 'decimal':
      if (precision === undefined || scale === undefined) {
        throw invalidFieldError(
          field,
          where,
          'A decimal needs "precision" and "scale": their defaults differ between engines.',
        );
      }
      if (precision > NUMERIC_LIMIT)
        throw invalidFieldError(field, where, `The precision is at most ${NUMERIC_LIMIT}.`);
      return `numeric(${precision},${scale})`;
    case 'array':
      // Array items have no precision: an unconstrained numeric keeps every digit.
      return `${field.items === 'decimal' ? 'numeric' : columnType({ type: field.items ?? 'string' }, where)}[]`;
    default:
      return columnTypes[type];
  }
}

/** The type of the values: a serial is an integer with a default. */
export function storedType(field: Field, where: string): string {
  const type = columnType(field, where);
  return SERIALS.get(type.toLowerCase()) ?? type;
}

const SERIALS: ReadonlyMap<string, string> = new Map([
  ['smallserial', 'smallint'],
  ['serial', 'integer'],
  ['bigserial', 'bigint'],
]);

export const isSerial = ({ native = '' }: Pick<Field, 'native'>): boolean => SERIALS.has(native.toLowerCase());

/** Where the values come from, in the language of the server: an identity or an expression. Empty for any other field. */
export const nativeSource = (field: Field): string => (field.native === undefined ? '' : parseNative(field, '').source);

export const isVirtual = (field: Field): boolean => / VIRTUAL$/i.test(nativeSource(field));

const NAME = String.raw`(?:"(?:[^"]|"")+"|[a-z_\u0080-\uffff][\w$\u0080-\uffff]*)`;
const INTERVAL_FIELD = '(?:year|month|day|hour|minute|second)';
const TYPE =
  String.raw`(?:national )?${NAME}(?:\.${NAME})?(?: varying| precision| ${INTERVAL_FIELD}(?: to ${INTERVAL_FIELD})?)?` +
  String.raw` ?(?:\([\w.-]+(?:, ?[\w.-]+)*\))?(?: with(?:out)? time zone)?(?:\[\d*\])*`;
const NATIVE = new RegExp(
  String.raw`^(?<type>${TYPE})(?: COLLATE (?<collation>${NAME}(?:\.${NAME})?))?(?: (?<source>GENERATED .+))?$`,
  'isu',
);
const IDENTITY = /^GENERATED (?:ALWAYS|BY DEFAULT) AS IDENTITY(?: \([\w -]+\))?$/i;
const COMPUTED = /^GENERATED ALWAYS AS \((?<expression>.+)\) (?:STORED|VIRTUAL)$/is;

/** The parts of a native type, and nothing else that could follow in the definition of a column. */
function parseNative(field: Omit<Field, 'name'> & { readonly name?: string }, where: string) {
  const { native = '' } = field;
  const invalid = (why: string) => invalidFieldError(field, where, `${JSON.stringify(native)} is not a type: ${why}`);
  const { type, collation, source = '' } = NATIVE.exec(native)?.groups ?? {};
  if (type === undefined) throw invalid('write a type, and then at most COLLATE and GENERATED.');
  if (source === '' || IDENTITY.test(source)) return { type, collation, source };
  const why = expressionProblem(COMPUTED.exec(source)?.groups?.expression ?? ')');
  if (why !== undefined) throw invalid('GENERATED is followed by neither an identity nor an expression.');
  return { type, collation, source };
}

function invalidFieldError({ name }: { readonly name?: string }, where: string, why: string): SvcError {
  const field = where === '' ? name : `${where}.${name ?? ''}`;
  return new SvcError('field_invalid', `The definition of the field "${field}" cannot be used on PostgreSQL.`, { why });
}

/** The default `now`, as the catalog shows it. Another expression for the same moment is not the same default. */
export function nowSql({ type, native }: Pick<Field, 'type' | 'native'>): string {
  if (native !== undefined) return type === 'time' ? 'LOCALTIME' : 'now()';
  return NOW[type] ?? 'CURRENT_TIMESTAMP(3)';
}

const NOW: Readonly<Partial<Record<FieldType, string>>> = {
  date: 'CURRENT_DATE',
  time: 'LOCALTIME(3)',
  datetime: 'LOCALTIMESTAMP(3)',
  timestamp: 'CURRENT_TIMESTAMP(3)',
};

const EXACT_TYPES: Readonly<Record<string, FieldType>> = {
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

/** Types that svc does not create, with the nearest one that it does. */
const NEAREST_TYPES: readonly (readonly [RegExp, FieldType])[] = [
  [/^numeric/, 'decimal'],
  [/^character varying$/, 'text'],
  [/^time(\(\d\))? with/, 'time'],
  [/^timestamp(\(\d\))? without/, 'datetime'],
  [/^timestamp(\(\d\))? with/, 'timestamp'],
  [/^json$/, 'json'],
];

export type ReadType = Pick<Field, 'type' | 'length' | 'precision' | 'scale' | 'items' | 'enumValues' | 'native'> & {
  /** The type is only the nearest one. */
  readonly inexact?: true;
  /** Only the text of the values is the same: a check constraint on one type is not valid on the other. */
  readonly incompatible?: true;
};

/** The field type of a column from the output of `format_type`. */
export function readType(formatted: string): ReadType {
  if (formatted.endsWith('[]')) {
    const { type, inexact, incompatible: incompatibleItem, length } = readType(formatted.slice(0, -2));
    const numeric = formatted === 'numeric[]';
    const lossy =
      !numeric && (inexact || type === 'decimal' || (type === 'string' && length !== DEFAULT_STRING_LENGTH));
    // Unlike those of their items, operators of arrays need two operands of the same type.
    const incompatible = incompatibleItem || /^character(\(| varying\[)/.test(formatted);
    return { type: 'array', items: type, ...(lossy && { inexact: true }), ...(incompatible && { incompatible: true }) };
  }
  const plain = EXACT_TYPES[formatted];
  if (plain) return { type: plain };
  const varying = /^character varying\((\d+)\)$/.exec(formatted);
  if (varying) return { type: 'string', length: Number(varying[1]) };
  const numeric = /^numeric\((\d+),(\d+)\)$/.exec(formatted);
  if (numeric) return { type: 'decimal', precision: Number(numeric[1]), scale: Number(numeric[2]) };
  const fixed = /^character\((\d+)\)$/.exec(formatted);
  if (fixed) return { type: 'string', length: Number(fixed[1]), inexact: true };
  const nearest = NEAREST_TYPES.find(([pattern]) => pattern.test(formatted));
  if (!nearest) return { type: 'text', inexact: true, incompatible: true };
  return { type: nearest[1], inexact: true, ...(nearest[1] === 'json' && { incompatible: true }) };
}
