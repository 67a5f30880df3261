import { isDeepStrictEqual } from 'node:util';
import type { Document } from 'mongodb';
import type { UnsupportedObject } from '../../../../core/dialect.ts';
import type { Json } from '../../../../core/json.ts';
import { primaryKeyFields } from '../../../../core/schema/keys.ts';
import type { Collection, Constraint, Field, Index } from '../../../../core/schema/model.ts';
import {
  type IndexSpec,
  indexSpec,
  isSameIndex,
  keySpec,
  PRIMARY_KEY_INDEX,
  readIndexStructure,
} from '../compile/indexes.ts';
import { nameRules } from '../compile/names.ts';
import { ID } from '../compile/types.ts';
import { codeOf, NAMESPACE_NOT_FOUND } from '../connection/errors.ts';
import type { MongoServer } from '../connection/server.ts';

/** An index of the server, with the options that svc cannot create, as they complete "which …". */
export interface ListedIndex extends IndexSpec {
  readonly traits: readonly string[];
}

/** Reports a part of a collection that the model lacks or only approximates. */
export type Report = (what: string, part?: Pick<UnsupportedObject, 'field' | 'name'>) => void;

/** Undefined if the collection does not exist. */
export async function listIndexSpecs(server: MongoServer, name: string): Promise<ListedIndex[] | undefined> {
  try {
    const listed = await server.db.collection(name).listIndexes().toArray();
    return listed.map((index) => ({
      name: String(index.name),
      ...readIndexStructure(server, index),
      traits: traitsOf(index),
    }));
  } catch (error) {
    if (codeOf(error) === NAMESPACE_NOT_FOUND) return undefined;
    throw error;
  }
}

const traitsOf = ({ sparse, hidden, collation }: Document): string[] => [
  ...(sparse ? ['is sparse'] : []),
  ...(hidden ? ['is hidden'] : []),
  ...(collation ? [`has the collation ${collation.locale}`] : []),
];

/** Adds the fields that only indexes name: an empty collection shows no others. For collections without a validator. */
export function withIndexedFields(
  fields: ReadonlyMap<string, Field>,
  listed: readonly ListedIndex[],
): ReadonlyMap<string, Field> {
  const result = new Map(fields);
  for (const { key, expires } of listed) {
    for (const [name, order] of key) {
      const isPlain = (order === 1 || order === -1) && nameRules.problem?.(name, 'field') === undefined;
      if (isPlain && !result.has(name)) result.set(name, { name, type: expires === undefined ? 'json' : 'timestamp' });
    }
  }
  return result;
}

/** Keeps keys, unique flags and constraints whose index exists; every other index of the server becomes an index of the model. */
export function withIndexes(base: Collection, listed: readonly ListedIndex[], report: Report): Collection {
  const used = new Set<IndexSpec>();
  const exists = (wanted: IndexSpec): boolean => {
    const found = listed.filter((spec) => isSameIndex(spec, wanted) || isSameExceptFilter(spec, wanted));
    for (const spec of found) used.add(spec);
    return found.length > 0 || isIdIndex(wanted);
  };
  const key = primaryKeyFields(base);
  const keyExists = key.length === 0 || exists(keySpec(base, PRIMARY_KEY_INDEX, key));
  const fields = new Map<string, Field>();
  for (const [name, field] of base.fields) {
    const { primaryKey, unique, ...plain } = field;
    const isUnique = unique && exists(keySpec(base, `${name}_key`, [name]));
    fields.set(name, { ...plain, ...(primaryKey && keyExists && { primaryKey }), ...(isUnique && { unique }) });
  }
  const constraints = new Map<string, Constraint>();
  for (const [name, constraint] of base.constraints) {
    const isKey = constraint.type === 'unique' || constraint.type === 'primaryKey';
    if (!isKey || exists(keySpec(base, name, constraint.columns))) constraints.set(name, constraint);
  }
  const indexes = new Map<string, Index>();
  for (const [name, index] of base.indexes) {
    if (exists(indexSpec(base, index))) indexes.set(name, index);
  }
  for (const spec of listed) {
    if (used.has(spec) || spec.name === '_id_') continue;
    const problem = indexProblem(base, spec);
    if (problem !== undefined) {
      report(`has the index "${spec.name}", which svc cannot create: ${problem}`, { name: spec.name });
      continue;
    }
    const index = toIndex(spec);
    indexes.set(spec.name, index);
    for (const difference of differencesOf(spec, indexSpec(base, index)))
      report(`has the index "${spec.name}", which ${difference}`);
  }
  return { ...base, fields, constraints, indexes };
}

/** An index that svc did not create may have another partial filter. */
const isSameExceptFilter = (spec: IndexSpec, wanted: IndexSpec): boolean =>
  spec.name === wanted.name &&
  isDeepStrictEqual([spec.key, spec.unique, spec.expires], [wanted.key, wanted.unique, wanted.expires]);

const isIdIndex = ({ key: [first, second] }: IndexSpec): boolean => first?.[0] === ID && second === undefined;

/** Why the model cannot have an index; undefined if it can. */
function indexProblem({ fields }: Collection, { key, expires }: IndexSpec): string | undefined {
  const special = key.find(([, order]) => order !== 1 && order !== -1);
  // A text index lists internal fields in place of its own.
  if (special) return `it is of the type ${special[0] === '_fts' ? 'text' : special[1]}`;
  const [path] = key.find(([name]) => !fields.has(name)) ?? [];
  if (path?.endsWith('$**')) return 'it is a wildcard index';
  if (path?.includes('.')) return `"${path}" is a path into an embedded document`;
  if (path !== undefined) return `the table has no field "${path}"`;
  const type = fields.get(key[0]?.[0] ?? '')?.type ?? '';
  const isExpiry = expires === undefined || (key.length === 1 && ['date', 'datetime', 'timestamp'].includes(type));
  return isExpiry ? undefined : 'it deletes documents by a field that is not a date';
}

function toIndex({ name, key, unique, expires }: IndexSpec): Index {
  return {
    name,
    columns: key.map(([field, order]: readonly [string, Json]) =>
      order === -1 ? { name: field, order: 'desc' as const } : { name: field },
    ),
    ...(unique && { unique }),
    ...(expires !== undefined && { mongoOptions: { expireAfterSeconds: expires } }),
  };
}

/** How an index differs from the one that svc creates in its place. */
function differencesOf(found: ListedIndex, wanted: IndexSpec): string[] {
  const plain = wanted.partial === undefined ? 'a plain one' : 'one that leaves out documents without a value';
  const traits = found.traits.map((trait) => `${trait}; svc creates ${plain}`);
  if (isDeepStrictEqual(found.partial, wanted.partial) || (found.partial === undefined && traits.length > 0))
    return traits;
  const why = found.partial === undefined ? 'allows only one document without a value' : 'has a filter';
  return [...traits, `${why}; svc creates ${found.partial === undefined ? plain : 'one of all documents'}`];
}
