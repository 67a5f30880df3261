import { isDeepStrictEqual } from 'node:util';
import type { Document } from 'mongodb';
import { isPlainObject, type Json } from '../../../../core/json.ts';
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
  /** Other options, without those that have the server's default. */
  readonly more?: Json;
}

export interface IndexSpec extends IndexStructure {
  readonly name: string;
  /** The options as they are written, for an index that is as `createIndexes` has it. */
  readonly written?: { readonly [key: string]: Json };
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

export function indexSpec(collection: Collection, index: Index): IndexSpec {
  const { name, columns, unique, mongoOptions = {} } = index;
  const { key, expireAfterSeconds: expires, ...written } = mongoOptions;
  const isExact = key !== undefined || written.sparse === true || written.partialFilterExpression !== undefined;
  const structure: IndexStructure = isExact
    ? { key: key ? Object.entries(key) : keyOf(columns), ...(unique && { unique }) }
    : structureOf(collection, columns, unique);
  const inherited = collection.options.mongoOptions?.collation;
  const more = chosenOptions({ ...(inherited && { collation: inherited }), ...written });
  const options = Object.keys(written).length > 0 ? { written: written as { readonly [key: string]: Json } } : {};
  const partial = written.partialFilterExpression;
  return {
    name,
    ...withTextKey(structure),
    ...(partial !== undefined && { partial: canonicalNumbers(partial) }),
    ...(expires !== undefined && { expires }),
    ...(more && { more }),
    ...options,
  };
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

const keyOf = (columns: readonly IndexColumn[]): [string, number][] =>
  columns.map(({ name, order }) => [name, order === 'desc' ? -1 : 1]);

/** The order of the fields of a text index among each other has no effect, and the server does not keep it. */
function withTextKey<T extends IndexStructure>(structure: T): T {
  const texts = structure.key.filter(([, order]) => order === 'text').sort(([a], [b]) => (a < b ? -1 : 1));
  if (texts.length < 2) return structure;
  const first = structure.key.findIndex(([, order]) => order === 'text');
  const others = structure.key.filter(([, order]) => order !== 'text');
  return { ...structure, key: [...others.slice(0, first), ...texts, ...others.slice(first)] };
}

/** What the server takes for an option that is absent. */
const DEFAULTS: { readonly [option: string]: Json } = {
  sparse: false,
  hidden: false,
  default_language: 'english',
  language_override: 'language',
  bits: 26,
  min: -180,
  max: 180,
};

const COLLATION_DEFAULTS: { readonly [option: string]: Json } = {
  caseLevel: false,
  caseFirst: 'off',
  strength: 3,
  numericOrdering: false,
  alternate: 'non-ignorable',
  maxVariable: 'punct',
  normalization: false,
  backwards: false,
};

/** The options that differ from what the server takes itself, which also has a version of its own; undefined if none does. */
function chosenOptions(options: { readonly [option: string]: unknown }): Json | undefined {
  const { partialFilterExpression: _, collation, weights, textIndexVersion: __, ...kept } = options;
  const { '2dsphereIndexVersion': ___, ...others } = kept;
  const chosen: Record<string, Json> = {};
  for (const [name, value] of Object.entries(others) as [string, Json][]) {
    const isPlain = Array.isArray(value) || typeof value !== 'object' || Object.keys(value ?? {}).length > 0;
    if (isPlain && !isDeepStrictEqual(value, DEFAULTS[name])) chosen[name] = canonicalNumbers(value);
  }
  const { version: ____, ...found } = (collation ?? {}) as { readonly [option: string]: Json };
  const named = Object.entries(found).filter(([name, value]) => value !== COLLATION_DEFAULTS[name]);
  if (named.length > 0 && found.locale !== 'simple') chosen.collation = Object.fromEntries(named);
  const heavy = Object.entries((weights ?? {}) as { readonly [path: string]: Json }).filter(([, one]) => one !== 1);
  if (heavy.length > 0) chosen.weights = Object.fromEntries(heavy);
  return Object.keys(chosen).length > 0 ? chosen : undefined;
}

/** Numbers as the server's are read: `{ "$numberInt": "5" }`. */
export function canonicalNumbers(value: Json): Json {
  if (typeof value === 'number') {
    if (!Number.isInteger(value) || Object.is(value, -0)) return { $numberDouble: String(value) };
    return value === Math.trunc(value) && Math.abs(value) < 2 ** 31
      ? { $numberInt: String(value) }
      : { $numberLong: String(value) };
  }
  if (Array.isArray(value)) return value.map((one: Json) => canonicalNumbers(one));
  if (!isPlainObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, canonicalNumbers(one as Json)]));
}

/** Whole numbers as they are written. */
export function plainNumbers(value: Json): Json {
  if (Array.isArray(value)) return value.map((one: Json) => plainNumbers(one));
  if (!isPlainObject(value)) return value;
  if (typeof value.$numberInt === 'string') return Number(value.$numberInt);
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, plainNumbers(one as Json)]));
}

/**
 * A unique index leaves out documents without a value in an optional column, as in SQL: MongoDB treats missing values
 * and nulls as equal.
 */
function structureOf(collection: Collection, columns: readonly IndexColumn[], unique?: true): IndexStructure {
  const key = keyOf(columns);
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
  const parts = ({ key, unique, partial, expires, more }: IndexStructure) => [
    ...[key, unique, expires, more],
    partial === undefined ? undefined : canonicalNumbers(partial),
  ];
  return isDeepStrictEqual(parts(a), parts(b));
}

/** The specs that have no index of the same structure among the others. */
export function indexesNotIn<T extends IndexStructure>(specs: readonly T[], others: readonly IndexStructure[]): T[] {
  return specs.filter((spec) => !others.some((other) => isSameIndex(spec, other)));
}

/** The spec in the form of the command `createIndexes`, as extended JSON. */
export function createIndexesSpec({ name, key, unique, partial, expires, written }: IndexSpec): {
  readonly [key: string]: Json;
} {
  return {
    name,
    key: Object.fromEntries(key),
    ...(unique && { unique }),
    ...(partial !== undefined && { partialFilterExpression: partial }),
    ...(expires !== undefined && { expireAfterSeconds: expires }),
    ...written,
  };
}

/** The structure of an index that the server lists. */
export function readIndexStructure(server: Pick<MongoServer, 'bson'>, index: Document): IndexStructure {
  const more = chosenOptions(listedOptions(server, index));
  return {
    ...withTextKey({ key: listedKey(index) }),
    ...(index.unique === true && { unique: true as const }),
    ...(index.partialFilterExpression && { partial: toExtendedJson(server, index.partialFilterExpression) }),
    ...(index.expireAfterSeconds !== undefined && { expires: Number(index.expireAfterSeconds) }),
    ...(more && { more }),
  };
}

/** What the server lists of itself. */
const NO_OPTIONS: ReadonlySet<string> = new Set([
  'v',
  'ns',
  'key',
  'name',
  'unique',
  'background',
  'clustered',
  'expireAfterSeconds',
  'partialFilterExpression',
]);

/** The options of a listed index, as `createIndexes` has them. */
export function listedOptions(server: Pick<MongoServer, 'bson'>, index: Document): { readonly [option: string]: Json } {
  const known = Object.entries(index).filter(([name]) => !NO_OPTIONS.has(name));
  const { storageEngine, collation, ...options } = Object.fromEntries(
    known.map(([name, value]) => [name, plainJson(server, value)]),
  );
  const { version: _, ...named } = (collation ?? {}) as { readonly [option: string]: Json };
  // DocumentDB lists how it stores the index.
  const isOwn = isDeepStrictEqual(storageEngine, { enableOrderedIndex: true });
  return {
    ...options,
    ...(collation !== undefined && { collation: named }),
    ...(storageEngine !== undefined && !isOwn && { storageEngine }),
  };
}

/** A text index lists internal fields in place of its own, which are in its weights. */
function listedKey({ key, weights }: Document): [string, Json][] {
  return Object.entries(key as object).flatMap(([field, order]): [string, Json][] => {
    if (field === '_fts') return Object.keys(weights as object).map((name): [string, Json] => [name, 'text']);
    return field === '_ftsx' ? [] : [[field, order as Json]];
  });
}

/** Numbers of an option are numbers. */
const plainJson = (server: Pick<MongoServer, 'bson'>, value: unknown): Json =>
  JSON.parse(server.bson.EJSON.stringify(value as object, { relaxed: true })) as Json;
