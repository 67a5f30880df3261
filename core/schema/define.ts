import { SvcError } from '../errors.ts';
import { defineConstraint } from './constraint.ts';
import { defineNamedField, toFieldDefinition } from './define-field.ts';
import { fieldOf } from './find-or-throw.ts';
import { assertPrimaryKey } from './keys.ts';
import type { Collection, Field, Index } from './model.ts';
import { assertName } from './names.ts';
import { nativeText } from './native.ts';
import type { CreateCollection, CreateIndex, NamedFieldDefinition } from './operation.ts';
import type { CreateOptions, TableOptions } from './options.ts';

export { defineConstraint } from './constraint.ts';
export { defineField, toFieldDefinition } from './define-field.ts';

/** The fields added by the option `timestamps`. */
export const TIMESTAMP_FIELDS: readonly NamedFieldDefinition[] = ['createdAt', 'updatedAt'].map((name) => ({
  name,
  type: 'timestamp',
  required: true,
  default: 'now',
}));

/** A new table in normal form. Indexes and constraints, except a primary key, have operations of their own. */
export function defineCollection(operation: Omit<CreateCollection, 'type'>): Collection {
  assertName(operation.name, 'table');
  const { name, options = {} } = operation;
  const fields = new Map<string, Field>();
  const input = options.timestamps ? [...operation.fields, ...TIMESTAMP_FIELDS] : operation.fields;
  for (const [index, named] of input.entries()) {
    const { name: fieldName } = named;
    if (fields.has(fieldName)) {
      throw new SvcError('field_exists', `The table "${name}" has the field "${fieldName}" twice.`, {
        ...(index >= operation.fields.length && { why: 'The option "timestamps" adds it.' }),
        next: ['Remove one of the two.'],
        details: { path: ['fields', Math.min(index, operation.fields.length - 1)] },
      });
    }
    fields.set(fieldName, defineNamedField(named, name));
  }
  const created = { name, fields, indexes: new Map(), constraints: new Map(), options: tableOptions(options) };
  if (!operation.primaryKey) return created;
  const key = defineConstraint({ type: 'primaryKey', ...operation.primaryKey }, name);
  for (const column of key.columns) fieldOf(created, column);
  const keyed = { ...created, constraints: new Map([[key.name, key]]) };
  assertPrimaryKey(keyed);
  return keyed;
}

/** Options in normal form, without `timestamps`, `ifNotExists` and options that are false. */
export function tableOptions(input: CreateOptions): TableOptions {
  const entries: [string, object][] = [];
  for (const [engine, settings] of Object.entries(input)) {
    if (engine === 'timestamps' || settings === undefined) continue;
    // The copy has plain prototypes, so that models can be compared. The order of keys matters to MongoDB.
    const effective = Object.entries(JSON.parse(JSON.stringify(settings)) as object).filter(
      ([key, value]) => value !== false && key !== 'ifNotExists',
    );
    if (effective.length > 0) entries.push([engine, Object.fromEntries(effective)]);
  }
  return Object.fromEntries(entries);
}

/** The operation that creates the table with its primary key, without its indexes and other constraints. */
export function toCreateCollection(collection: Collection): CreateCollection {
  const { name, fields, constraints, options } = collection;
  const key = [...constraints.values()].find(({ type }) => type === 'primaryKey');
  return {
    type: 'createCollection',
    name,
    fields: [...fields.values()].map(toFieldDefinition),
    ...(key && {
      primaryKey: { name: key.name, columns: key.columns, ...(key.native !== undefined && { native: key.native }) },
    }),
    ...(Object.keys(options).length > 0 && { options }),
  };
}

export function defineIndex(operation: Omit<CreateIndex, 'type'>): Index {
  assertName(operation.index, 'index');
  const { collection, index: name, columns, unique, native, cassandraOptions, mongoOptions } = operation;
  const invalid = (why: string) =>
    new SvcError('schema_invalid', `The index "${name}" of "${collection}" is not valid.`, {
      why,
      details: { path: ['columns'] },
    });
  const definition = nativeText(native, invalid);
  if (columns.length === 0 && native === undefined && mongoOptions?.key === undefined)
    throw invalid('It has no columns.');
  if (new Set(columns.map((column) => column.name)).size < columns.length) throw invalid('It names a column twice.');
  return {
    name,
    columns: columns.map((column) => {
      const order = column.order?.toLowerCase() ?? 'asc';
      if (order !== 'asc' && order !== 'desc') throw invalid(`The order "${column.order}" is neither asc nor desc.`);
      return { name: column.name, ...(order === 'desc' && { order }) };
    }),
    ...(unique && { unique }),
    ...definition,
    ...(cassandraOptions?.using && { cassandraOptions: { using: cassandraOptions.using } }),
    ...(mongoOptions && Object.keys(mongoOptions).length > 0 && { mongoOptions }),
  };
}

export function toCreateIndex(collection: string, index: Index): CreateIndex {
  const { name, ...rest } = index;
  return { type: 'createIndex', collection, index: name, ...rest };
}
