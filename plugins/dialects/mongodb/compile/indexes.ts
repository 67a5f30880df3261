import { isDeepStrictEqual } from 'node:util';
import type { Document } from 'mongodb';
import type { Json } from '../../../../core/json.ts';
import { primaryKeyFields } from '../../../../core/schema/keys.ts';
import type { Collection, Index, IndexColumn } from '../../../../core/schema/model.ts';
import { type MongoServer, toExtendedJson } from '../connection/server.ts';
import { bsonTypes, ID, minimumValues } from './types.ts';

/** An index without its name: MongoDB has only one index of each structure. */
export interface IndexStructure {
  readonly key: readonly (readonly [field: string, order: Json])[];
  readonly unique?: true;
  readonly partial?: Json;
  /** Seconds. */
  readonly expires?: number;
}

export interface IndexSpec extends IndexStructure {
  readonly name: string;
}

/** The indexes of the primary key, unique fields, unique constraints and indexes, in that order; each structure once. */
export function indexSpecs(collection: Collection): IndexSpec[] {
  const specs: IndexSpec[] = [];
  for (const spec of allIndexSpecs(collection)) if (!specs.some((other) => isSameIndex(other, spec))) specs.push(spec);
  return specs;
}

/** One for each part of the model that needs an index, even if two have the same structure. */
export function allIndexSpecs(collection: Collection): IndexSpec[] {
  const key = primaryKeyFields(collection);
  const constraints = [...collection.constraints.values()];
  return [
    ...(key.length > 0 ? [keySpec(collection, PRIMARY_KEY_INDEX, key)] : []),
    ...[...collection.fields.values()].flatMap(({ name, unique }) =>
      unique ? [keySpec(collection, `${name}_key`, [name])] : [],
    ),
    ...constraints.flatMap((constraint) =>
      constraint.type === 'unique' || constraint.type === 'primaryKey'
        ? [keySpec(collection, constraint.name, constraint.columns)]
        : [],
    ),
    ...[...collection.indexes.values()].map((index) => indexSpec(collection, index)),
  ].filter(({ key: [first, second] }) => first?.[0] !== ID || second !== undefined);
}

export const PRIMARY_KEY_INDEX = 'pkey';

export function indexSpec(collection: Collection, { name, columns, unique, mongoOptions }: Index): IndexSpec {
  const expires = mongoOptions?.expireAfterSeconds;
  return { name, ...structureOf(collection, columns, unique), ...(expires !== undefined && { expires }) };
}

export function keySpec(collection: Collection, name: string, columns: readonly string[]): IndexSpec {
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
 * A unique index leaves out documents without a value in an optional column, as in SQL: MongoDB treats missing values
 * and nulls as equal.
 */
function structureOf(collection: Collection, columns: readonly IndexColumn[], unique?: true): IndexStructure {
  const key = columns.map(({ name, order }): [string, number] => [name, order === 'desc' ? -1 : 1]);
  if (!unique) return { key };
  const optional = columns.flatMap(({ name }) => {
    const field = collection.fields.get(name);
    return field && !field.required ? [[name, hasValueCondition(bsonTypes[field.type])] as const] : [];
  });
  return { key, unique, ...(optional.length > 0 && { partial: Object.fromEntries(optional) }) };
}

/** Types that a field of type `json` has only in an adopted collection. */
const OTHER_TYPES = ['decimal', 'date', 'objectId', 'binData'];

/** The filter of a partial index. `$type` is the last resort, because queries then do not use the index. */
function hasValueCondition(types: readonly string[]): Json {
  const [first = ''] = types;
  if (types.includes('object')) return { $type: [...types, ...OTHER_TYPES] };
  const value = minimumValues[first];
  return value === undefined ? { $type: [...types] } : { $gte: value };
}

export function isSameIndex(a: IndexStructure, b: IndexStructure): boolean {
  const parts = ({ key, unique, partial, expires }: IndexStructure) => [key, unique, partial, expires];
  return isDeepStrictEqual(parts(a), parts(b));
}

/** The specs that have no index of the same structure among the others. */
export function indexesNotIn<T extends IndexStructure>(specs: readonly T[], others: readonly IndexStructure[]): T[] {
  return specs.filter((spec) => !others.some((other) => isSameIndex(spec, other)));
}

/** The spec in the form of the command `createIndexes`, as extended JSON. */
export function createIndexesSpec({ name, key, unique, partial, expires }: IndexSpec): {
  readonly [key: string]: Json;
} {
  return {
    name,
    key: Object.fromEntries(key),
    ...(unique && { unique }),
    ...(partial !== undefined && { partialFilterExpression: partial }),
    ...(expires !== undefined && { expireAfterSeconds: expires }),
  };
}

/** The structure of an index that the server lists. */
export function readIndexStructure(server: Pick<MongoServer, 'bson'>, index: Document): IndexStructure {
  return {
    key: Object.entries(index.key as object).map(([field, order]): [string, Json] => [field, order as Json]),
    ...(index.unique === true && { unique: true as const }),
    ...(index.partialFilterExpression && { partial: toExtendedJson(server, index.partialFilterExpression) }),
    ...(index.expireAfterSeconds !== undefined && { expires: Number(index.expireAfterSeconds) }),
  };
}
