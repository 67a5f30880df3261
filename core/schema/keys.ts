import { referrers } from './draft.ts';
import type { Collection, Constraint, Field, ForeignKey, Index, SchemaModel } from './model.ts';
import type { FieldType } from './types.ts';

/** A foreign key with the table that has it. */
export interface Reference {
  readonly collection: string;
  readonly foreignKey: ForeignKey;
}

/** Foreign keys that point at a table, its own included. */
export function referencesTo(model: SchemaModel, table: string): Reference[] {
  const found: Reference[] = [];
  for (const collection of referrers(model, table)) {
    for (const constraint of model.get(collection)?.constraints.values() ?? []) {
      if (constraint.type === 'foreignKey' && constraint.references.table === table) {
        found.push({ collection, foreignKey: constraint });
      }
    }
  }
  return found;
}

/** A set of columns of which no two rows have the same values, and what makes it so. */
export interface UniqueKey {
  readonly columns: ReadonlySet<string>;
  readonly by:
    | { readonly primaryKey: true }
    | { readonly field: Field }
    | { readonly constraint: Constraint }
    | { readonly index: Index };
}

export function uniqueKeys(collection: Collection): UniqueKey[] {
  const keys: UniqueKey[] = [];
  const primary = primaryFields(collection);
  if (primary.length > 0) keys.push({ columns: new Set(primary), by: { primaryKey: true } });
  for (const field of collection.fields.values()) {
    if (field.unique) keys.push({ columns: new Set([field.name]), by: { field } });
  }
  for (const constraint of collection.constraints.values()) {
    if (constraint.type === 'unique' || constraint.type === 'primaryKey') {
      keys.push({ columns: new Set(constraint.columns), by: { constraint } });
    }
  }
  for (const index of collection.indexes.values()) {
    if (index.unique) keys.push({ columns: new Set(index.columns.map(({ name }) => name)), by: { index } });
  }
  return keys;
}

/** Fields that say `primaryKey: true`, in the order of the key. */
export function primaryFields(collection: Collection): string[] {
  return [...collection.fields.values()].filter((field) => field.primaryKey).map((field) => field.name);
}

export function isKey(collection: Collection, columns: readonly string[]): boolean {
  return uniqueKeys(collection).some((key) => sameColumns(key.columns, columns));
}

export function sameColumns(key: ReadonlySet<string>, columns: readonly string[]): boolean {
  return key.size === columns.length && columns.every((column) => key.has(column));
}

const FAMILIES: readonly ReadonlySet<FieldType>[] = [
  new Set<FieldType>(['smallint', 'integer', 'bigint', 'decimal', 'float', 'double']),
  new Set<FieldType>(['string', 'text', 'enum']),
  new Set<FieldType>(['date', 'datetime', 'timestamp']),
  new Set<FieldType>(['binary', 'blob']),
];

/** Whether values of two fields can be equal at all; an engine may ask for more. */
export function comparable(a: Field, b: Field): boolean {
  if (a.type === b.type) return a.items === b.items;
  return FAMILIES.some((family) => family.has(a.type) && family.has(b.type));
}
