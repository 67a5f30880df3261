import { SvcError } from '../../../../core/errors.ts';
import type { Json } from '../../../../core/json.ts';
import { defineField } from '../../../../core/schema/define.ts';
import { applyFieldChanges } from '../../../../core/schema/define-field.ts';
import { alreadyExistsError } from '../../../../core/schema/find-or-throw.ts';
import { primaryKeyFields } from '../../../../core/schema/keys.ts';
import { isExpression } from '../../../../core/schema/literal.ts';
import type { Collection, Field, SchemaModel } from '../../../../core/schema/model.ts';
import type { CreateCollection, Operation } from '../../../../core/schema/operation.ts';
import { uniqueName } from '../../sql/names.ts';
import { canonicalDefault } from '../catalog/defaults.ts';
import { plainText } from './literal.ts';
import { columnType, columnTypes, isLong, STRING_LENGTH } from './types.ts';

const MAX_ROW_BYTES = 65_535;
const MAX_INDEXES = 64;

/** Throws for a new table that exceeds the limits of tables. */
export function assertNewWithinLimits(created: Collection): void {
  // An invalid field is reported before the row that contains it.
  for (const field of created.fields.values()) columnType(field, created.name);
  assertRowSize(created);
  const names = [...created.fields.keys()];
  for (const [index, name] of names.entries()) assertNameFree('field', name, names.slice(0, index), created.name);
  for (const field of created.fields.values()) assertDefaultInRange(field, created.name);
  assertIndexCount(created, 0);
}

/** Throws for changes that exceed a table's limits: after another step, the server's own error would come too late. */
export function assertWithinLimits(operation: Exclude<Operation, CreateCollection>, before: SchemaModel): void {
  if (operation.type === 'raw') return;
  const collection = before.get(operation.collection);
  if (!collection) return;
  const { name: table, fields } = collection;
  switch (operation.type) {
    case 'addField': {
      const { name, ...definition } = operation.field;
      const field = defineField(name, definition, table);
      assertNameFree('field', name, fields.keys(), table);
      assertDefaultInRange(field, table);
      assertIndexCount(collection, field.unique ? 1 : 0);
      break;
    }
    case 'renameField':
      assertNameFree(
        'field',
        operation.to,
        [...fields.keys()].filter((name) => name !== operation.from),
        table,
      );
      break;
    case 'modifyField': {
      const field = fields.get(operation.field);
      if (field) assertDefaultInRange(applyFieldChanges(field, operation.changes, table), table);
      break;
    }
    case 'createIndex':
      assertNameFree('index', operation.index, indexNames(collection), table);
      assertIndexCount(collection, 1);
      break;
    case 'addConstraint':
      if (operation.constraint.type === 'unique') assertIndexCount(collection, 1);
      break;
    case 'dropCollection':
    case 'renameCollection':
    case 'dropField':
    case 'dropIndex':
    case 'dropConstraint':
      break;
    default:
      operation satisfies never;
  }
}

function indexNames({ name, fields, indexes, constraints }: Collection): string[] {
  return [
    'PRIMARY',
    ...indexes.keys(),
    ...[...constraints.values()].filter(({ type }) => type === 'unique').map((constraint) => constraint.name),
    ...[...fields.values()].filter(({ unique }) => unique).map((field) => uniqueName(name, field.name)),
  ];
}

function assertIndexCount(collection: Collection, more: number): void {
  const key = primaryKeyFields(collection).length > 0 || [...collection.constraints.values()].some(isPrimary);
  const found = indexNames(collection).length - (key ? 0 : 1) + more;
  if (found <= MAX_INDEXES) return;
  throw new SvcError('not_supported', `The table "${collection.name}" cannot have another index.`, {
    why: `It would have ${found}, including keys and unique fields; the limit is ${MAX_INDEXES}.`,
    next: ['Drop an index that no query uses.'],
  });
}

const isPrimary = ({ type }: { readonly type: string }): boolean => type === 'primaryKey';

/** Names of columns and indexes ignore case. */
function assertNameFree(kind: 'field' | 'index', name: string, others: Iterable<string>, table: string): void {
  for (const other of others) {
    if (other !== name && other.toLowerCase() === name.toLowerCase()) throw alreadyExistsError(kind, other, table);
  }
  if (kind === 'index' && name === 'PRIMARY') throw alreadyExistsError(kind, name, table);
}

function assertRowSize(collection: Collection): void {
  const { name, fields } = collection;
  const perCharacter = bytesPerCharacter(collection);
  const bytes = maxRowBytes([...fields.values()], perCharacter);
  if (bytes <= MAX_ROW_BYTES) return;
  throw new SvcError('not_supported', `The fields of "${name}" do not fit into a row.`, {
    why: `They have up to ${bytes} bytes, ${perCharacter} for each character of a string; the limit is ${MAX_ROW_BYTES}.`,
    next: ['Reduce the length of strings, or use the type text, which is stored outside the row.'],
  });
}

function assertDefaultInRange(field: Field, table: string): void {
  const value = field.default;
  if (value === undefined || value === null || value === 'now' || isExpression(value)) return;
  const why = outOfRange(field, value);
  if (why === undefined) return;
  throw new SvcError('field_invalid', `The default of "${table}.${field.name}" does not fit its type.`, {
    why,
    next: ['Use another default, or a type with a larger range.'],
  });
}

const MAX_TIMESTAMP = Date.parse('2038-01-19T03:14:07.999Z');
const MAX_FLOAT = 3.4028234663852886e38;

function outOfRange(field: Field, value: NonNullable<Json>): string | undefined {
  const { type, precision = 0, scale = 0 } = field;
  if (type === 'float' && Math.abs(Number(value)) > MAX_FLOAT) return `A float is at most ${MAX_FLOAT}.`;
  if (type === 'timestamp') {
    const at = Date.parse(`${plainText(value, field).replace(' ', 'T')}Z`);
    if (at <= 0 || at > MAX_TIMESTAMP)
      return 'A timestamp is from 1970-01-01T00:00:01Z to 2038-01-19T03:14:07.999Z; a datetime has a larger range.';
  }
  if (type === 'decimal' && wholeDigits(String(canonicalDefault(value, field))) > precision - scale)
    return `It has more than ${precision - scale} digits before the point.`;
  return undefined;
}

const wholeDigits = (decimal: string): number => decimal.replace(/^-?0*/, '').split('.')[0]?.length ?? 0;

const TYPE_BYTES: Readonly<Record<string, number>> = {
  smallint: 2,
  int: 4,
  bigint: 8,
  float: 4,
  double: 8,
  'tinyint(1)': 1,
  date: 3,
  'time(3)': 5,
  'datetime(3)': 7,
  'timestamp(3)': 6,
  'char(36)': 36,
};

/** The maximum size of a character in the table's texts. */
export function bytesPerCharacter({ options }: Pick<Collection, 'options'>): number {
  const [charset = ''] = options.sqlOptions?.collation?.split('_') ?? [];
  if (
    /^(latin\d|ascii|binary|cp\d+|koi8[ru]|hebrew|greek|tis620|armscii8|keybcs2|geostd8|mac\w+|hp8|dec8|swe7)$/.test(
      charset,
    )
  )
    return 1;
  return /^utf8(mb3)?$/.test(charset) ? 3 : 4;
}

/** The maximum size of a value in a key or a row. */
export function maxValueBytes(field: Field, perCharacter: number): number {
  const { type, length, precision = 0, scale = 0, enumValues = [], native } = field;
  // Only the server knows the size of its own types.
  if (native !== undefined) return 0;
  // A pointer to the value.
  if (isLong(field)) return 12;
  if (type === 'string') return perCharacter * (length ?? STRING_LENGTH);
  if (type === 'binary') return length ?? 0;
  if (type === 'decimal') return digitBytes(precision - scale) + digitBytes(scale);
  if (type === 'enum') return enumValues.length > 255 ? 2 : 1;
  return TYPE_BYTES[columnTypes[type]] ?? 0;
}

const digitBytes = (digits: number): number => 4 * Math.floor(digits / 9) + Math.ceil((digits % 9) / 2);

/** The maximum size of a row. */
function maxRowBytes(fields: readonly Field[], perCharacter: number): number {
  const values = fields.map((field) => {
    const bytes = maxValueBytes(field, perCharacter);
    const counted = field.type === 'string' || (field.type === 'binary' && !isLong(field));
    return bytes + (counted ? (bytes > 255 ? 2 : 1) : 0);
  });
  const optional = fields.filter(({ required, primaryKey }) => !required && !primaryKey);
  return values.reduce((sum, bytes) => sum + bytes, Math.ceil(optional.length / 8));
}
