import { SvcError } from '../errors.ts';
import { referencesTo } from './keys.ts';
import { collectionOf } from './lookup.ts';
import type { Collection, SchemaModel } from './model.ts';
import type { DropConstraint, DropIndex } from './operation.ts';
import { optionFields } from './option-fields.ts';

/** What has to be dropped before a field can be, foreign keys first. */
export function dependents(model: SchemaModel, collection: string, field: string): (DropConstraint | DropIndex)[] {
  const own = collectionOf(model, collection);
  const drops = new Map<string, DropConstraint | DropIndex>();
  const drop = (table: string, constraint: string) =>
    drops.set(JSON.stringify([table, constraint]), { type: 'dropConstraint', collection: table, constraint });
  for (const { collection: name, foreignKey } of referencesTo(model, collection)) {
    if (foreignKey.references.columns.includes(field)) drop(name, foreignKey.name);
  }
  const constraints = [...own.constraints.values()].filter((constraint) => constraint.columns.includes(field));
  for (const constraint of constraints) if (constraint.type === 'foreignKey') drop(collection, constraint.name);
  for (const constraint of constraints) if (constraint.type !== 'foreignKey') drop(collection, constraint.name);
  const indexes = [...own.indexes.values()].filter((index) => index.columns.some((column) => column.name === field));
  return [
    ...drops.values(),
    ...indexes.map((index): DropIndex => ({ type: 'dropIndex', collection, index: index.name })),
  ];
}

/** Foreign keys of other tables that have to be dropped before a table can be. */
export function dependentsOfCollection(model: SchemaModel, collection: string): DropConstraint[] {
  return referencesTo(model, collection)
    .filter((reference) => reference.collection !== collection)
    .map((reference) => ({
      type: 'dropConstraint',
      collection: reference.collection,
      constraint: reference.foreignKey.name,
    }));
}

export function refuseFieldInUse(model: SchemaModel, collection: Collection, field: string): void {
  const refuse = (why: string, next: readonly string[]) =>
    new SvcError('field_in_use', `The field "${collection.name}.${field}" cannot be dropped: something uses it.`, {
      why,
      next,
    });
  if (optionFields(collection.options).has(field)) {
    throw refuse('The options of the table name it.', ['Options cannot be changed: create a new table instead.']);
  }
  const using = dependents(model, collection.name, field);
  if (using.length === 0) return;
  const names = using.map((drop) =>
    drop.type === 'dropIndex'
      ? `the index "${drop.index}"`
      : `the constraint "${drop.constraint}" of "${drop.collection}"`,
  );
  throw refuse(`Used by ${names.join(', ')}.`, ['Drop those first.']);
}
