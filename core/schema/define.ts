import { SvcError } from '../errors.ts';
import { defineField, writtenField } from './field.ts';
import type { Collection, Field, Index, TableOptions } from './model.ts';
import { checkName } from './names.ts';
import type { CreateCollection, CreateIndex, NamedField } from './operation.ts';
import type { CreateOptions } from './options.ts';

export { defineConstraint, writtenConstraint } from './constraint.ts';
export { defineField, writtenField } from './field.ts';

/** What the option `timestamps` adds. */
export const TIMESTAMPS: readonly NamedField[] = ['createdAt', 'updatedAt'].map((name) => ({
  name,
  type: 'timestamp',
  required: true,
  default: 'now',
}));

/** A new table in normal form, without indexes and constraints: those are operations of their own. */
export function defineCollection(operation: Omit<CreateCollection, 'type'>): Collection {
  checkName(operation.name, 'table');
  const { name, options = {} } = operation;
  const fields = new Map<string, Field>();
  const written = options.timestamps ? [...operation.fields, ...TIMESTAMPS] : operation.fields;
  for (const [index, { name: fieldName, ...definition }] of written.entries()) {
    if (fields.has(fieldName)) {
      throw new SvcError('field_exists', `The table "${name}" has the field "${fieldName}" twice.`, {
        ...(index >= operation.fields.length && { why: 'The option "timestamps" adds it.' }),
        next: ['Remove one of the two.'],
        details: { path: ['fields', Math.min(index, operation.fields.length - 1)] },
      });
    }
    fields.set(fieldName, defineField(fieldName, definition, name));
  }
  return { name, fields, indexes: new Map(), constraints: new Map(), options: tableOptions(options, name) };
}

/** Options that stay true: without what says nothing, `timestamps` and `ifNotExists`. */
export function tableOptions(written: CreateOptions, table: string): TableOptions {
  const entries: [string, object][] = [];
  for (const [engine, settings] of Object.entries(written)) {
    if (engine === 'timestamps' || settings === undefined) continue;
    // A copy with plain prototypes, so that models compare; the order of keys is kept, MongoDB looks at it.
    const kept = Object.entries(JSON.parse(JSON.stringify(settings)) as object).filter(
      ([key, value]) => value !== false && key !== 'ifNotExists',
    );
    if (kept.length > 0) entries.push([engine, Object.fromEntries(kept)]);
  }
  const options: TableOptions = Object.fromEntries(entries);
  const { mongoOptions } = options;
  if (mongoOptions?.capped && mongoOptions.size === undefined) {
    throw new SvcError('schema_invalid', `The table "${table}" is capped and has no size.`, {
      why: 'MongoDB needs the size of a capped collection, in bytes.',
      next: ['Add "size" to its mongoOptions.'],
      details: { path: ['mongoOptions', 'capped'] },
    });
  }
  return options;
}

/** The operation that gives the table; its indexes and constraints are not in it. */
export function writtenCollection(collection: Collection): CreateCollection {
  const { name, fields, options } = collection;
  return {
    type: 'createCollection',
    name,
    fields: [...fields.values()].map(writtenField),
    ...(Object.keys(options).length > 0 && { options }),
  };
}

export function defineIndex(operation: Omit<CreateIndex, 'type'>): Index {
  checkName(operation.index, 'index');
  const { collection, index: name, columns, unique, cassandraOptions, mongoOptions } = operation;
  const refuse = (why: string) =>
    new SvcError('schema_invalid', `The index "${name}" of "${collection}" is not valid.`, {
      why,
      details: { path: ['columns'] },
    });
  if (columns.length === 0) throw refuse('It has no columns.');
  if (new Set(columns.map((column) => column.name)).size < columns.length) throw refuse('It names a column twice.');
  return {
    name,
    columns: columns.map((column) => {
      const order = column.order?.toLowerCase() ?? 'asc';
      if (order !== 'asc' && order !== 'desc') throw refuse(`The order "${column.order}" is neither asc nor desc.`);
      return { name: column.name, ...(order === 'desc' && { order }) };
    }),
    ...(unique && { unique }),
    ...(cassandraOptions?.using && { cassandraOptions: { using: cassandraOptions.using } }),
    ...(mongoOptions?.expireAfterSeconds !== undefined && {
      mongoOptions: { expireAfterSeconds: mongoOptions.expireAfterSeconds },
    }),
  };
}

export function writtenIndex(collection: string, index: Index): CreateIndex {
  const { name, ...rest } = index;
  return { type: 'createIndex', collection, index: name, ...rest };
}
