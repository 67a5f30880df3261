import { isDeepStrictEqual } from 'node:util';
import type { Json } from '../../../core/json.ts';
import { primaryFields } from '../../../core/schema/keys.ts';
import type { Collection, Index, IndexColumn } from '../../../core/schema/model.ts';
import { bsonTypes, least } from './types.ts';

/** What an index is, whatever its name: two of the same structure are one on MongoDB. */
export interface Structure {
  readonly key: readonly (readonly [field: string, order: Json])[];
  readonly unique?: true;
  readonly partial?: Json;
  /** Seconds. */
  readonly expires?: number;
}

export interface Spec extends Structure {
  readonly name: string;
}

/** Of the key, of unique fields, of unique constraints and of the indexes, in that order; each structure once. */
export function specsOf(collection: Collection): Spec[] {
  const found: Spec[] = [];
  for (const spec of everySpec(collection)) if (!found.some((one) => isSame(one, spec))) found.push(spec);
  return found;
}

/** One for each thing in the model that needs an index. */
export function everySpec(collection: Collection): Spec[] {
  const key = primaryFields(collection);
  const constraints = [...collection.constraints.values()];
  return [
    ...(key.length > 0 ? [keySpec(collection, KEY_NAME, key)] : []),
    ...[...collection.fields.values()].flatMap(({ name, unique }) =>
      unique ? [keySpec(collection, `${name}_key`, [name])] : [],
    ),
    ...constraints.flatMap((constraint) =>
      constraint.type === 'unique' || constraint.type === 'primaryKey'
        ? [keySpec(collection, constraint.name, constraint.columns)]
        : [],
    ),
    ...[...collection.indexes.values()].map((index) => indexSpec(collection, index)),
  ].filter(({ key: [first, second] }) => first?.[0] !== '_id' || second !== undefined);
}

export const KEY_NAME = 'pkey';

export function indexSpec(collection: Collection, { name, columns, unique, mongoOptions }: Index): Spec {
  const expires = mongoOptions?.expireAfterSeconds;
  return { name, ...structureOf(collection, columns, unique), ...(expires !== undefined && { expires }) };
}

export function keySpec(collection: Collection, name: string, columns: readonly string[]): Spec {
  return {
    name,
    ...structureOf(
      collection,
      columns.map((column) => ({ name: column })),
      true,
    ),
  };
}

/**
 * Unique: documents without a value in a column that may be without are left out, as SQL has it. Missing and null would
 * count as equal.
 */
function structureOf(collection: Collection, columns: readonly IndexColumn[], unique?: true): Structure {
  const key = columns.map(({ name, order }): [string, number] => [name, order === 'desc' ? -1 : 1]);
  if (!unique) return { key };
  const optional = columns.flatMap(({ name }) => {
    const field = collection.fields.get(name);
    return field && !field.required ? [[name, hasValue(bsonTypes[field.type])] as const] : [];
  });
  return { key, unique, ...(optional.length > 0 && { partial: Object.fromEntries(optional) }) };
}

/** By `$type` only where there is no other way: it keeps queries from the index. */
function hasValue(types: readonly string[]): Json {
  const [first = ''] = types;
  const value = types.includes('object') ? undefined : least[first];
  return value === undefined ? { $type: [...types] } : { $gte: value };
}

export function isSame(a: Structure, b: Structure): boolean {
  const parts = ({ key, unique, partial, expires }: Structure) => [key, unique, partial, expires];
  return isDeepStrictEqual(parts(a), parts(b));
}

/** Those of the first that are not among the second. */
export function without<T extends Structure>(specs: readonly T[], others: readonly Structure[]): T[] {
  return specs.filter((spec) => !others.some((other) => isSame(spec, other)));
}

/** As the command `createIndexes` takes it, in extended JSON. */
export function writtenSpec({ name, key, unique, partial, expires }: Spec): { readonly [key: string]: Json } {
  return {
    name,
    key: Object.fromEntries(key),
    ...(unique && { unique }),
    ...(partial !== undefined && { partialFilterExpression: partial }),
    ...(expires !== undefined && { expireAfterSeconds: expires }),
  };
}
