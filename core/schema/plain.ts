import type { Collection, Constraint, Field, Index, SchemaModel } from './model.ts';

/** A collection without maps: what JSON keeps of it is all of it. */
export interface PlainCollection extends Pick<Collection, 'name' | 'options'> {
  readonly fields: readonly Field[];
  readonly indexes: readonly Index[];
  readonly constraints: readonly Constraint[];
}

export function plainModel(model: SchemaModel): PlainCollection[] {
  return [...model.values()].map(({ name, fields, indexes, constraints, options }) => ({
    name,
    fields: [...fields.values()],
    indexes: [...indexes.values()],
    constraints: [...constraints.values()],
    options,
  }));
}

export function modelOfPlain(collections: readonly PlainCollection[]): SchemaModel {
  return byName(
    collections.map(({ name, fields, indexes, constraints, options }) => ({
      name,
      fields: byName(fields),
      indexes: byName(indexes),
      constraints: byName(constraints),
      options,
    })),
  );
}

function byName<T extends { readonly name: string }>(all: readonly T[]): ReadonlyMap<string, T> {
  return new Map(all.map((one) => [one.name, one]));
}
