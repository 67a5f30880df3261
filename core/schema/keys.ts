import { SvcError } from '../errors.ts';
import { collectionOf, fieldOf, unknownError } from './find-or-throw.ts';
import type { Collection, Constraint, Field, FieldType, ForeignKey, Index, SchemaModel } from './model.ts';
import { referringTables } from './mutable-schema.ts';
import { computedFrom, fieldsInTextOfConstraint } from './native.ts';
import type { DropConstraint, DropIndex } from './operation.ts';
import { fieldsNamedInOptions } from './options.ts';

/** A foreign key and the table it belongs to. */
export interface Reference {
  readonly collection: string;
  readonly foreignKey: ForeignKey;
}

/** Foreign keys that reference a table, including its own. */
export function referencesTo(model: SchemaModel, table: string): Reference[] {
  const found: Reference[] = [];
  for (const collection of referringTables(model, table)) {
    for (const constraint of model.get(collection)?.constraints.values() ?? []) {
      if (constraint.type === 'foreignKey' && constraint.references.table === table) {
        found.push({ collection, foreignKey: constraint });
      }
    }
  }
  return found;
}

/** A set of columns whose values are unique, and the definition that makes them unique. */
export interface UniqueKey {
  readonly columns: ReadonlySet<string>;
  readonly source:
    | { readonly primaryKey: true }
    | { readonly field: Field }
    | { readonly constraint: Constraint }
    | { readonly index: Index };
}

export function uniqueKeys(collection: Collection): UniqueKey[] {
  const keys: UniqueKey[] = [];
  const primary = primaryKeyFields(collection);
  if (primary.length > 0) keys.push({ columns: new Set(primary), source: { primaryKey: true } });
  for (const field of collection.fields.values()) {
    if (field.unique) keys.push({ columns: new Set([field.name]), source: { field } });
  }
  for (const constraint of collection.constraints.values()) {
    if (constraint.type === 'unique' || constraint.type === 'primaryKey') {
      keys.push({ columns: new Set(constraint.columns), source: { constraint } });
    }
  }
  for (const index of collection.indexes.values()) {
    // The engine may count a row only if it meets a condition.
    if (index.unique && index.native === undefined)
      keys.push({ columns: new Set(index.columns.map(({ name }) => name)), source: { index } });
  }
  return keys;
}

/** Fields with `primaryKey: true`, in the order of the key. */
export function primaryKeyFields(collection: Pick<Collection, 'fields'>): string[] {
  return [...collection.fields.values()].filter((field) => field.primaryKey).map((field) => field.name);
}

export function isKey(collection: Collection, columns: readonly string[]): boolean {
  return (
    uniqueKeys(collection).some((key) => sameColumns(key.columns, columns)) ||
    [...collection.indexes.values()].some((index) => mayBeKey(index, columns))
  );
}

/** Only the engine knows which of the fields that a native index reads are its key, and whether all rows are in it. */
function mayBeKey({ unique, native, columns }: Index, wanted: readonly string[]): boolean {
  return (
    unique === true && native !== undefined && wanted.every((name) => columns.some((column) => column.name === name))
  );
}

export function sameColumns(key: ReadonlySet<string>, columns: readonly string[]): boolean {
  return key.size === columns.length && columns.every((column) => key.has(column));
}

const COMPARABLE_TYPES: readonly ReadonlySet<FieldType>[] = [
  new Set<FieldType>(['smallint', 'integer', 'bigint', 'decimal', 'float', 'double']),
  new Set<FieldType>(['string', 'text', 'enum']),
  new Set<FieldType>(['date', 'datetime', 'timestamp']),
  new Set<FieldType>(['binary', 'blob']),
];

/** Whether values of two fields can be equal at all. An engine may be stricter. */
export function areComparable(a: Field, b: Field): boolean {
  if (a.type === b.type) return a.items === b.items;
  return COMPARABLE_TYPES.some((family) => family.has(a.type) && family.has(b.type));
}

type FindCollection = (table: string) => Collection | undefined;

/** A foreign key must reference a key of a table in the model, with comparable types. */
export function assertForeignKey(model: SchemaModel, collection: Collection, foreignKey: ForeignKey): void {
  const find: FindCollection = (table) => (table === collection.name ? collection : model.get(table));
  const { table, columns } = foreignKey.references;
  const target = find(table);
  if (!target) throw unknownError('collection', table, model.keys());
  for (const column of foreignKey.columns) fieldOf(collection, column);
  for (const column of columns) fieldOf(target, column);
  assertComparableTypes(find, collection.name, foreignKey);
  if (isKey(target, columns)) return;
  throw invalidKey(
    collection.name,
    foreignKey,
    `${quotedList(columns)} of "${table}" is neither the primary key nor unique.`,
    [`Make ${quotedList(columns)} of "${table}" the primary key or unique first.`],
  );
}

/** After a table changes, referenced columns must still be a key, and the types of foreign keys still be comparable. */
export function assertKeysIntact(model: SchemaModel, before: Collection, after: Collection): void {
  const find: FindCollection = (table) => (table === after.name ? after : model.get(table));
  for (const { collection: name, foreignKey } of referencesTo(model, before.name)) {
    // The foreign key is being dropped.
    if (!find(name)?.constraints.has(foreignKey.name)) continue;
    if (!isKey(after, foreignKey.references.columns)) {
      throw new SvcError(
        'key_in_use',
        `${quotedList(foreignKey.references.columns)} of "${before.name}" must stay unique.`,
        {
          why: `The foreign key "${foreignKey.name}" of "${name}" references it.`,
          next: ['Drop the foreign key first.'],
        },
      );
    }
    assertComparableTypes(find, name, foreignKey);
  }
  for (const constraint of after.constraints.values()) {
    if (constraint.type === 'foreignKey') assertComparableTypes(find, after.name, constraint);
  }
}

function assertComparableTypes(find: FindCollection, name: string, foreignKey: ForeignKey): void {
  const { table, columns } = foreignKey.references;
  for (const [index, column] of foreignKey.columns.entries()) {
    const own = find(name)?.fields.get(column);
    const other = find(table)?.fields.get(columns[index] ?? '');
    if (!own || !other || areComparable(own, other)) continue;
    const why = `"${name}.${column}" is ${own.type} and "${table}.${other.name}" is ${other.type}.`;
    throw invalidKey(name, foreignKey, why, [
      'Give both fields the same type, or drop the foreign key before the change and add it again afterwards.',
    ]);
  }
}

/** A table has at most one primary key, from fields or from a constraint, and its fields are required. */
export function assertPrimaryKey(collection: Collection): void {
  const constraints = [...collection.constraints.values()].filter((constraint) => constraint.type === 'primaryKey');
  const [first, second] = constraints;
  if (!first) return;
  const flagged = primaryKeyFields(collection);
  if (second || flagged.length > 0) {
    const other = second ? `the constraint "${first.name}"` : quotedList(flagged);
    throw invalidKey(collection.name, second ?? first, `The table already has a primary key: ${other}.`, [
      'Drop the existing one first, or declare one key over all columns.',
    ]);
  }
  const nullable = first.columns.filter((column) => !collection.fields.get(column)?.required);
  if (nullable.length === 0) return;
  throw invalidKey(collection.name, first, `${quotedList(nullable)} may be null, but a primary key may not.`, [
    `Set required: true on ${quotedList(nullable)}.`,
  ]);
}

function invalidKey(table: string, constraint: Constraint, why: string, next: readonly string[]): SvcError {
  return new SvcError('constraint_invalid', `The constraint "${constraint.name}" of "${table}" is not valid.`, {
    why,
    next,
  });
}

function quotedList(columns: readonly string[]): string {
  return columns.map((column) => `"${column}"`).join(', ');
}

/** The drops needed before a field can be dropped, foreign keys first. */
export function dependents(model: SchemaModel, collection: string, field: string): (DropConstraint | DropIndex)[] {
  const own = collectionOf(model, collection);
  const drops = new Map<string, DropConstraint | DropIndex>();
  const drop = (table: string, constraint: string) =>
    drops.set(JSON.stringify([table, constraint]), { type: 'dropConstraint', collection: table, constraint });
  for (const { collection: name, foreignKey } of referencesTo(model, collection)) {
    if (foreignKey.references.columns.includes(field)) drop(name, foreignKey.name);
  }
  const constraints = [...own.constraints.values()].filter(
    (constraint) => constraint.columns.includes(field) || fieldsInTextOfConstraint(constraint, [field]).includes(field),
  );
  for (const constraint of constraints) if (constraint.type === 'foreignKey') drop(collection, constraint.name);
  for (const constraint of constraints) if (constraint.type !== 'foreignKey') drop(collection, constraint.name);
  const indexes = [...own.indexes.values()].filter((index) => index.columns.some((column) => column.name === field));
  return [
    ...drops.values(),
    ...indexes.map((index): DropIndex => ({ type: 'dropIndex', collection, index: index.name })),
  ];
}

/** The foreign keys of other tables to drop before a table can be dropped. */
export function dependentsOfCollection(model: SchemaModel, collection: string): DropConstraint[] {
  return referencesTo(model, collection)
    .filter((reference) => reference.collection !== collection)
    .map((reference) => ({
      type: 'dropConstraint',
      collection: reference.collection,
      constraint: reference.foreignKey.name,
    }));
}

export function assertFieldUnused(model: SchemaModel, collection: Collection, field: string): void {
  const inUse = (why: string, next: readonly string[]) =>
    new SvcError('field_in_use', `The field "${collection.name}.${field}" cannot be dropped because it is in use.`, {
      why,
      next,
    });
  if (fieldsNamedInOptions(collection.options).has(field)) {
    throw inUse('The options of the table use it.', ['Options cannot be changed: create a new table instead.']);
  }
  const computed = computedFrom(collection, field);
  if (computed.length > 0) throw inUse(`Computed from it: ${quotedList(computed)}.`, ['Drop those first.']);
  const using = dependents(model, collection.name, field);
  if (using.length === 0) return;
  const names = using.map((drop) =>
    drop.type === 'dropIndex'
      ? `the index "${drop.index}"`
      : `the constraint "${drop.constraint}" of "${drop.collection}"`,
  );
  throw inUse(`Used by ${names.join(', ')}.`, ['Drop those first.']);
}
