import { isDeepStrictEqual } from 'node:util';
import { SvcError } from '../errors.ts';
import { isObjectOperation } from './database-object.ts';
import { defineCollection, defineConstraint, defineField, defineIndex } from './define.ts';
import { applyFieldChanges } from './define-field.ts';
import { alreadyExistsError, collectionOf, fieldOf, unknownError } from './find-or-throw.ts';
import { assertFieldUnused, assertForeignKey, assertKeysIntact, assertPrimaryKey, referencesTo } from './keys.ts';
import { addMirror, assertNotMirrored, endMirror, isUntouchedMirror } from './mirror.ts';
import type { Collection, Constraint, Field, Index, SchemaModel } from './model.ts';
import { MutableSchema } from './mutable-schema.ts';
import { assertName, assertTableName, isKeptName } from './names.ts';
import { textsReading } from './native.ts';
import type {
  AddConstraint,
  AddField,
  CreateCollection,
  CreateIndex,
  DropCollection,
  DropConstraint,
  DropField,
  DropIndex,
  MigrationOperation,
  ModifyField,
  Operation,
  RenameCollection,
  RenameField,
} from './operation.ts';
import { renameFieldsInOptions } from './options.ts';

/** The model after an operation. Throws an `SvcError` if the operation is not valid for the model. */
export function apply(model: SchemaModel, operation: Operation): SchemaModel {
  const draft = new Map(model);
  applyInPlace(draft, operation);
  return draft;
}

/** The model after operations in order. The time depends on their number, not on the number of tables. */
export function applyAll(operations: Iterable<MigrationOperation>, onto: SchemaModel = new Map()): SchemaModel {
  const draft = new MutableSchema(onto);
  for (const operation of operations) if (!isObjectOperation(operation)) applyInPlace(draft, operation);
  return new Map(draft);
}

/** Applies an operation to a mutable model. If it throws, the model is unchanged. */
export function applyInPlace(draft: Map<string, Collection>, operation: Operation): void {
  switch (operation.type) {
    case 'createCollection':
      createCollection(draft, operation);
      break;
    case 'dropCollection':
      dropCollection(draft, operation);
      break;
    case 'renameCollection':
      renameCollection(draft, operation);
      break;
    case 'addField':
      addField(draft, operation);
      break;
    case 'dropField':
      dropField(draft, operation);
      break;
    case 'renameField':
      renameField(draft, operation);
      break;
    case 'modifyField':
      modifyField(draft, operation);
      break;
    case 'createIndex':
      createIndex(draft, operation);
      break;
    case 'dropIndex':
      dropIndex(draft, operation);
      break;
    case 'addConstraint':
      addConstraint(draft, operation);
      break;
    case 'dropConstraint':
      dropConstraint(draft, operation);
      break;
    case 'raw':
      break;
    default:
      operation satisfies never;
  }
}

type MutableModel = Map<string, Collection>;

function createCollection(draft: MutableModel, operation: CreateCollection): void {
  const collection = defineCollection(operation);
  assertTableName(operation.name);
  const { temporary, ifNotExists } = operation.options?.sqlOptions ?? {};
  if (temporary) return;
  const existing = draft.get(operation.name);
  if (existing && ifNotExists) {
    const { fields, options } = existing;
    if (isDeepStrictEqual({ fields, options }, { fields: collection.fields, options: collection.options })) return;
    throw new SvcError(
      'table_differs',
      `The table "${operation.name}" already exists and differs from the definition.`,
      {
        next: ['Change the definition to match the existing table, or use another name.'],
      },
    );
  }
  if (existing) throw alreadyExistsError('collection', operation.name);
  draft.set(operation.name, collection);
}

function dropCollection(draft: MutableModel, { collection, cascade }: DropCollection): void {
  assertNotMirrored(collectionOf(draft, collection));
  const others = referencesTo(draft, collection).filter((reference) => reference.collection !== collection);
  if (others.length > 0 && !cascade) {
    throw new SvcError(
      'collection_referenced',
      `The table "${collection}" cannot be dropped because foreign keys reference it.`,
      {
        why: others.map((other) => `"${other.foreignKey.name}" of "${other.collection}" references it.`).join(' '),
        next: ['Drop those foreign keys first.', 'Or drop the table with cascade, which drops them as well.'],
      },
    );
  }
  for (const other of others)
    dropConstraint(draft, { collection: other.collection, constraint: other.foreignKey.name });
  draft.delete(collection);
}

function renameCollection(draft: MutableModel, { collection: from, to }: RenameCollection): void {
  const collection = collectionOf(draft, from);
  assertNotMirrored(collection);
  if (!isKeptName(to)) assertTableName(to);
  if (draft.has(to)) throw alreadyExistsError('collection', to);
  const referring = new Set(referencesTo(draft, from).map((reference) => reference.collection));
  draft.delete(from);
  draft.set(to, { ...collection, name: to });
  for (const name of referring) {
    const referrer = collectionOf(draft, name === from ? to : name);
    draft.set(referrer.name, {
      ...referrer,
      constraints: mapValues(referrer.constraints, (constraint) =>
        constraint.type === 'foreignKey' && constraint.references.table === from
          ? { ...constraint, references: { ...constraint.references, table: to } }
          : constraint,
      ),
    });
  }
}

function addField(draft: MutableModel, operation: AddField): void {
  const collection = collectionOf(draft, operation.collection);
  const { name, ...definition } = operation.field;
  const field = defineField(name, definition, collection.name);
  if (collection.fields.has(name)) throw alreadyExistsError('field', name, collection.name);
  const mirrors = operation.mirrors === undefined ? {} : addMirror(collection, field, operation.mirrors);
  const next = { ...collection, fields: new Map(collection.fields).set(name, field), ...mirrors };
  assertPrimaryKey(next);
  assertKeysIntact(draft, collection, next);
  draft.set(collection.name, next);
}

function dropField(draft: MutableModel, { collection: name, field, mirrors }: DropField): void {
  const collection = collectionOf(draft, name);
  fieldOf(collection, field);
  if (mirrors === undefined) assertNotMirrored(collection, field);
  const left = mirrors === undefined ? {} : endMirror(collection, field, mirrors);
  assertFieldUnused(draft, collection, field);
  draft.set(name, { ...collection, fields: without(collection.fields, field), ...left });
}

function renameField(draft: MutableModel, { collection: name, from, to, changes }: RenameField): void {
  const before = collectionOf(draft, name);
  fieldOf(before, from);
  assertNotMirrored(before, from);
  assertName(to, 'field');
  if (before.fields.has(to)) throw alreadyExistsError('field', to, name);
  const [reader] = textsReading(before, from);
  if (reader !== undefined) {
    throw new SvcError('field_in_use', `The field "${name}.${from}" cannot be renamed because ${reader} reads it.`, {
      why: 'Its expression is text that some engines do not update on a rename.',
      next: [`Drop ${reader}, rename the field, and add it again with the new name.`],
    });
  }
  if (changes) modifyField(draft, { collection: name, field: from, changes });
  const collection = collectionOf(draft, name);
  const field = fieldOf(collection, from);
  const renamed = (column: string) => (column === from ? to : column);
  const fields = [...collection.fields].map(([key, value]): [string, Field] =>
    key === from ? [to, { ...field, name: to }] : [key, value],
  );
  const referring = new Set(referencesTo(draft, name).map((reference) => reference.collection));
  draft.set(name, {
    ...collection,
    fields: new Map(fields),
    indexes: mapValues(collection.indexes, (index) => ({
      ...index,
      columns: index.columns.map((column) => ({ ...column, name: renamed(column.name) })),
    })),
    constraints: mapValues(collection.constraints, (constraint) => ({
      ...constraint,
      columns: constraint.columns.map(renamed),
    })),
    options: renameFieldsInOptions(collection.options, renamed),
  });
  for (const referrer of referring) {
    const other = collectionOf(draft, referrer);
    draft.set(referrer, {
      ...other,
      constraints: mapValues(other.constraints, (constraint) =>
        constraint.type === 'foreignKey' && constraint.references.table === name
          ? {
              ...constraint,
              references: { ...constraint.references, columns: constraint.references.columns.map(renamed) },
            }
          : constraint,
      ),
    });
  }
}

function modifyField(draft: MutableModel, operation: Omit<ModifyField, 'type'>): void {
  const collection = collectionOf(draft, operation.collection);
  const field = fieldOf(collection, operation.field);
  const changed = applyFieldChanges(field, operation.changes, collection.name);
  if (!isUntouchedMirror(field, changed)) assertNotMirrored(collection, field.name);
  const next = { ...collection, fields: new Map(collection.fields).set(field.name, changed) };
  assertPrimaryKey(next);
  assertKeysIntact(draft, collection, next);
  draft.set(collection.name, next);
}

function createIndex(draft: MutableModel, operation: CreateIndex): void {
  const collection = collectionOf(draft, operation.collection);
  const index = defineIndex(operation);
  if (collection.indexes.has(index.name)) throw alreadyExistsError('index', index.name, collection.name);
  for (const column of index.columns) fieldOf(collection, column.name);
  draft.set(collection.name, { ...collection, indexes: new Map(collection.indexes).set(index.name, index) });
}

function dropIndex(draft: MutableModel, { collection: name, index }: Pick<DropIndex, 'collection' | 'index'>): void {
  const collection = collectionOf(draft, name);
  if (!collection.indexes.has(index)) throw unknownError('index', index, collection.indexes.keys(), name);
  const next = { ...collection, indexes: without<Index>(collection.indexes, index) };
  assertKeysIntact(draft, collection, next);
  draft.set(name, next);
}

function addConstraint(draft: MutableModel, operation: AddConstraint): void {
  const collection = collectionOf(draft, operation.collection);
  const constraint = defineConstraint(operation.constraint, collection.name, collection.fields.keys());
  if (collection.constraints.has(constraint.name))
    throw alreadyExistsError('constraint', constraint.name, collection.name);
  for (const column of constraint.columns) fieldOf(collection, column);
  if (constraint.type === 'foreignKey') assertForeignKey(draft, collection, constraint);
  const next = { ...collection, constraints: new Map(collection.constraints).set(constraint.name, constraint) };
  assertPrimaryKey(next);
  draft.set(collection.name, next);
}

function dropConstraint(draft: MutableModel, operation: Pick<DropConstraint, 'collection' | 'constraint'>): void {
  const collection = collectionOf(draft, operation.collection);
  const { constraint } = operation;
  if (!collection.constraints.has(constraint)) {
    throw unknownError('constraint', constraint, collection.constraints.keys(), collection.name);
  }
  const next = { ...collection, constraints: without<Constraint>(collection.constraints, constraint) };
  assertKeysIntact(draft, collection, next);
  draft.set(collection.name, next);
}

function without<V>(map: ReadonlyMap<string, V>, key: string): Map<string, V> {
  const copy = new Map(map);
  copy.delete(key);
  return copy;
}

function mapValues<V>(map: ReadonlyMap<string, V>, transform: (value: V) => V): Map<string, V> {
  return new Map([...map].map(([key, value]) => [key, transform(value)]));
}
