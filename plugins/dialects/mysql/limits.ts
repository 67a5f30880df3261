import { SvcError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json.ts';
import { isExpression } from '../../../core/schema/default.ts';
import { defineCollection, defineField } from '../../../core/schema/define.ts';
import { changedField } from '../../../core/schema/field-changes.ts';
import { exists } from '../../../core/schema/lookup.ts';
import type { Collection, Field, SchemaModel } from '../../../core/schema/model.ts';
import type { Operation } from '../../../core/schema/operation.ts';
import { primaryKeyFields, uniqueName } from '../../sql/names.ts';
import { rowBytes } from './bytes.ts';
import { canonicalDefault } from './default.ts';
import { plainText } from './literal.ts';
import { columnType } from './types.ts';

const ROW_BYTES = 65_535;
const INDEXES = 64;

/** Refuses more than a table of the server holds: behind another step its own refusal comes too late. */
export function refuseBeyond(operation: Operation, before: SchemaModel): void {
  if (operation.type === 'createCollection') {
    const made = defineCollection(operation);
    // One that cannot be by itself is told of as that.
    for (const field of made.fields.values()) columnType(field, made.name);
    refuseRow(made);
    const names = [...made.fields.keys()];
    for (const [index, name] of names.entries()) refuseAlike('field', name, names.slice(0, index), made.name);
    for (const field of made.fields.values()) refuseDefault(field, made.name);
    refuseIndexes(made, 0);
    return;
  }
  const collection = 'collection' in operation ? before.get(operation.collection) : undefined;
  if (!collection) return;
  const { name: table, fields } = collection;
  switch (operation.type) {
    case 'addField': {
      const { name, ...definition } = operation.field;
      const field = defineField(name, definition, table);
      refuseAlike('field', name, fields.keys(), table);
      refuseDefault(field, table);
      refuseIndexes(collection, field.unique ? 1 : 0);
      break;
    }
    case 'renameField':
      refuseAlike(
        'field',
        operation.to,
        [...fields.keys()].filter((name) => name !== operation.from),
        table,
      );
      break;
    case 'modifyField': {
      const field = fields.get(operation.field);
      if (field) refuseDefault(changedField(field, operation.changes, table), table);
      break;
    }
    case 'createIndex':
      refuseAlike('index', operation.index, indexNames(collection), table);
      refuseIndexes(collection, 1);
      break;
    case 'addConstraint':
      if (operation.constraint.type === 'unique') refuseIndexes(collection, 1);
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

function refuseIndexes(collection: Collection, more: number): void {
  const key = primaryKeyFields(collection).length > 0 || [...collection.constraints.values()].some(isPrimary);
  const found = indexNames(collection).length - (key ? 0 : 1) + more;
  if (found <= INDEXES) return;
  throw new SvcError('not_supported', `The table "${collection.name}" cannot have one more index.`, {
    why: `It would have ${found}, with keys and unique fields; the limit is ${INDEXES}.`,
    next: ['Drop one that nobody needs.'],
  });
}

const isPrimary = ({ type }: { readonly type: string }): boolean => type === 'primaryKey';

/** Names of columns and indexes know no case. */
function refuseAlike(kind: 'field' | 'index', name: string, others: Iterable<string>, table: string): void {
  for (const other of others) {
    if (other !== name && other.toLowerCase() === name.toLowerCase()) throw exists(kind, other, table);
  }
  if (kind === 'index' && name === 'PRIMARY') throw exists(kind, name, table);
}

function refuseRow({ name, fields }: Collection): void {
  const bytes = rowBytes([...fields.values()]);
  if (bytes <= ROW_BYTES) return;
  throw new SvcError('not_supported', `The fields of "${name}" do not fit into a row.`, {
    why: `They have up to ${bytes} bytes, four for each character of a string; the limit is ${ROW_BYTES}.`,
    next: ['Give strings a smaller length, or the type text, which is stored beside the row.'],
  });
}

function refuseDefault(field: Field, table: string): void {
  const value = field.default;
  if (value === undefined || value === null || value === 'now' || isExpression(value)) return;
  const why = outOfRange(field, value);
  if (why === undefined) return;
  throw new SvcError('field_invalid', `The default of "${table}.${field.name}" does not fit its type.`, {
    why,
    next: ['Write another default, or give the field a type that has room for it.'],
  });
}

const LAST_MOMENT = Date.parse('2038-01-19T03:14:07.999Z');
const MOST_FLOAT = 3.4028234663852886e38;

function outOfRange(field: Field, value: NonNullable<Json>): string | undefined {
  const { type, precision = 0, scale = 0 } = field;
  if (type === 'float' && Math.abs(Number(value)) > MOST_FLOAT) return `A float is at most ${MOST_FLOAT}.`;
  if (type === 'timestamp') {
    const at = Date.parse(`${plainText(value, field).replace(' ', 'T')}Z`);
    if (at <= 0 || at > LAST_MOMENT)
      return 'A timestamp is from 1970-01-01T00:00:01Z to 2038-01-19T03:14:07.999Z; a datetime has more room.';
  }
  if (type === 'decimal' && wholeDigits(String(canonicalDefault(value, field))) > precision - scale)
    return `It has more than ${precision - scale} digits before the point.`;
  return undefined;
}

const wholeDigits = (decimal: string): number => decimal.replace(/^-?0*/, '').split('.')[0]?.length ?? 0;
