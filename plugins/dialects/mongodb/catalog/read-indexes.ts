import { isDeepStrictEqual } from 'node:util';
import type { UnsupportedObject } from '../../../../core/dialect.ts';
import type { Json } from '../../../../core/json.ts';
import { primaryKeyFields } from '../../../../core/schema/keys.ts';
import type { Collection, Constraint, Field, Index } from '../../../../core/schema/model.ts';
import {
  type IndexSpec,
  indexSpec,
  isSameIndex,
  keySpec,
  listedOptions,
  PRIMARY_KEY_INDEX,
  plainNumbers,
  readIndexStructure,
} from '../compile/indexes.ts';
import { nameRules } from '../compile/names.ts';
import { ID } from '../compile/types.ts';
import { codeOf, NAMESPACE_NOT_FOUND } from '../connection/errors.ts';
import type { MongoServer } from '../connection/server.ts';

/** An index of the server. */
export interface ListedIndex extends IndexSpec {
  /** Its options other than those of the structure, as `createIndexes` has them. */
  readonly options: { readonly [option: string]: Json };
}

/** Reports a part of a collection that the model lacks or only approximates. */
export type Report = (what: string, part?: Pick<UnsupportedObject, 'field' | 'name'>) => void;

/** Undefined if the collection does not exist. */
export async function listIndexSpecs(server: MongoServer, name: string): Promise<ListedIndex[] | undefined> {
  try {
    const listed = await server.db.collection(name).listIndexes().toArray();
    // The index of a clustered collection is the collection.
    return listed
      .filter(({ clustered }) => clustered !== true)
      .map((index) => ({
        name: String(index.name),
        ...readIndexStructure(server, index),
        options: listedOptions(server, index),
      }));
  } catch (error) {
    if (codeOf(error) === NAMESPACE_NOT_FOUND) return undefined;
    throw error;
  }
}

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
export function withIndexes(base: Collection, listed: readonly ListedIndex[]): Collection {
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
    indexes.set(spec.name, toIndex(base, spec));
  }
  return { ...base, fields, constraints, indexes };
}

/** An index that svc did not create may have another partial filter. */
const isSameExceptFilter = (spec: IndexSpec, wanted: IndexSpec): boolean =>
  spec.name === wanted.name &&
  isDeepStrictEqual([spec.key, spec.unique, spec.expires], [wanted.key, wanted.unique, wanted.expires]);

const isIdIndex = ({ key: [first, second] }: IndexSpec): boolean => first?.[0] === ID && second === undefined;

/** The index with the words of svc, or, where those make another one, as `createIndexes` has it. */
function toIndex(base: Collection, spec: ListedIndex): Index {
  const { name, key, unique, expires, partial, options } = spec;
  const columns = key.map(([field, order]) =>
    order === -1 ? { name: field, order: 'desc' as const } : { name: field },
  );
  const plain: Index = {
    name,
    columns,
    ...(unique && { unique }),
    ...(expires !== undefined && { mongoOptions: { expireAfterSeconds: expires } }),
  };
  const isPlainKey = key.every(([field, order]) => (order === 1 || order === -1) && base.fields.has(field));
  if (isPlainKey && isSameIndex(indexSpec(base, plain), spec) && isDate(base, spec)) return plain;
  const paths = [...new Set(key.map(([path]) => path.split('.', 1)[0] ?? path))];
  const inherited = base.options.mongoOptions?.collation;
  const collation = options.collation ?? (inherited && { locale: 'simple' });
  const isInherited = isDeepStrictEqual(collation, inherited);
  const { collation: _, ...others } = options;
  return {
    name,
    columns: paths.filter((path) => base.fields.has(path)).map((path) => ({ name: path })),
    ...(unique && { unique }),
    mongoOptions: {
      key: Object.fromEntries(key),
      ...others,
      ...(collation !== undefined && !isInherited && { collation: collation as { readonly [key: string]: Json } }),
      ...(partial !== undefined && {
        partialFilterExpression: plainNumbers(partial) as { readonly [key: string]: Json },
      }),
      ...(expires !== undefined && { expireAfterSeconds: expires }),
    },
  };
}

const isDate = ({ fields }: Collection, { key, expires }: IndexSpec): boolean =>
  expires === undefined ||
  (key.length === 1 && ['date', 'datetime', 'timestamp'].includes(fields.get(key[0]?.[0] ?? '')?.type ?? ''));
