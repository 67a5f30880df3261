import { isDeepStrictEqual } from 'node:util';
import type { Document } from 'mongodb';
import type { UnsupportedObject } from '../../../../core/dialect.ts';
import type { Json } from '../../../../core/json.ts';
import { primaryKeyFields } from '../../../../core/schema/keys.ts';
import type { Collection, Constraint, Field, Index, SchemaModel } from '../../../../core/schema/model.ts';
import type { MongoOptions } from '../../../../core/schema/options.ts';
import {
  type IndexSpec,
  indexSpec,
  isSameIndex,
  keySpec,
  PRIMARY_KEY_INDEX,
  readIndexStructure,
} from '../compile/indexes.ts';
import { type Validator, validatorOf } from '../compile/validator.ts';
import { codeOf, NAMESPACE_NOT_FOUND } from '../connection/errors.ts';
import { type MongoServer, TIME_LIMIT, toExtendedJson } from '../connection/server.ts';
import type { Settings } from '../connection/settings.ts';
import { canonicalExtendedJson, readValidator, sampleFields } from './read-fields.ts';
import { collectionFromEntry, registryCollection } from './registry.ts';

interface IntrospectedCatalog {
  readonly model: SchemaModel;
  readonly unsupportedObjects: readonly UnsupportedObject[];
}

/** Number of collections whose indexes are read at the same time. */
const PARALLEL_COLLECTIONS = 16;

/**
 * The catalog as a model: collections as described by the registry, except where their validators or indexes differ.
 */
export async function introspect(
  server: MongoServer,
  settings: Settings,
  names?: readonly string[],
): Promise<IntrospectedCatalog> {
  const named = names ? { name: { $in: [...names] } } : {};
  const [listed, entries] = await Promise.all([
    server.db.listCollections({ type: 'collection', ...named }).toArray() as Promise<Document[]>,
    registryCollection(server)
      .find(names ? { _id: { $in: [...names] } } : {}, TIME_LIMIT)
      .toArray(),
  ]);
  const fromRegistry = new Map(entries.map(({ _id, entry }) => [_id, collectionFromEntry(_id, entry)]));
  // A collection that is still being created is left out.
  const creating = new Set(entries.filter((entry) => entry.creating).map(({ _id }) => _id));
  const visible = listed.filter(({ name }) => !/^(_svc_|system\.)/.test(String(name)) && !creating.has(String(name)));
  visible.sort((a, b) => (String(a.name) < String(b.name) ? -1 : 1));
  const model = new Map<string, Collection>();
  const unsupportedObjects: UnsupportedObject[] = [];
  for (let at = 0; at < visible.length; at += PARALLEL_COLLECTIONS) {
    const batch = visible.slice(at, at + PARALLEL_COLLECTIONS);
    const read = await Promise.all(
      batch.map((info) => readCollection(server, settings, info, fromRegistry.get(String(info.name)))),
    );
    for (const result of read) {
      if (!result) continue;
      model.set(result.collection.name, result.collection);
      unsupportedObjects.push(...result.unsupportedObjects);
    }
  }
  return { model, unsupportedObjects };
}

async function readCollection(
  server: MongoServer,
  settings: Settings,
  info: Document,
  fromRegistry: Collection | undefined,
): Promise<{ collection: Collection; unsupportedObjects: readonly UnsupportedObject[] } | undefined> {
  const name = String(info.name);
  const listed = await listIndexSpecs(server, name);
  // The collection was dropped after it was listed.
  if (!listed) return undefined;
  const unsupportedObjects: UnsupportedObject[] = [];
  const report: Report = (what, part) => unsupportedObjects.push({ collection: name, what, ...part });
  const base = await readFieldsAndOptions(server, settings, info, fromRegistry, report);
  return { collection: withIndexes(base, listed, report), unsupportedObjects };
}

type Report = (what: string, part?: Pick<UnsupportedObject, 'field' | 'name'>) => void;

/** Fields, checks and options. */
async function readFieldsAndOptions(
  server: MongoServer,
  settings: Settings,
  { name, options = {} }: Document,
  fromRegistry: Collection | undefined,
  report: Report,
): Promise<Collection> {
  const validator = isEmpty(options.validator) ? undefined : (toExtendedJson(server, options.validator) as Validator);
  const hasNoValidators = fromRegistry !== undefined && !settings.validators && validator === undefined;
  const expected = fromRegistry && validatorOf(fromRegistry);
  if (
    fromRegistry &&
    (hasNoValidators || isDeepStrictEqual(validator, expected && canonicalExtendedJson(server, expected)))
  ) {
    const { mongoOptions: _, ...others } = fromRegistry.options;
    return {
      ...fromRegistry,
      options: { ...others, ...readMongoOptions(options, fromRegistry, fromRegistry.options.mongoOptions?.validator) },
    };
  }
  const empty = { name, fields: new Map(), indexes: new Map(), constraints: new Map(), options: {} };
  if (!validator) {
    const read = fromRegistry ? { fields: new Map<string, Field>(), inexact: [] } : await sampleFields(server, name);
    if (!fromRegistry) report('has no validator: its fields are read from a sample of its documents');
    for (const field of read.inexact)
      report('has values of several types, or of a type that svc cannot create', { field });
    // No validator enforces the sampled fields, so a migration from this model must not begin to enforce them.
    const level = fromRegistry ? {} : { mongoOptions: { validationLevel: 'off' } };
    const constraints = new Map([...(fromRegistry?.constraints ?? [])].filter(([, { type }]) => type !== 'check'));
    return {
      ...empty,
      ...fromRegistry,
      fields: read.fields,
      constraints,
      options: { ...readMongoOptions(options, fromRegistry), ...level },
    };
  }
  const { fields, checks, inexact, rest } = readValidator(server, fromRegistry, validator);
  for (const field of inexact) report('has a rule that svc cannot create', { field });
  const userOption = rest ?? fromRegistry?.options.mongoOptions?.validator;
  return {
    ...empty,
    ...fromRegistry,
    fields,
    constraints: checks,
    options: readMongoOptions(options, fromRegistry, userOption),
  };
}

const isEmpty = (value: unknown): boolean => value === undefined || Object.keys(value as object).length === 0;

/** The options as the registry has them where the server's are equal; the server also lists defaults. */
function readMongoOptions(
  { capped, size, max, validationLevel, validationAction }: Document,
  fromRegistry: Collection | undefined,
  validator?: MongoOptions['validator'],
): Collection['options'] {
  const registered = fromRegistry?.options.mongoOptions ?? {};
  const optionOf = (listed: unknown, inRegistry: string | undefined, byDefault: string): string | undefined => {
    const value = typeof listed === 'string' ? listed : byDefault;
    return value === (inRegistry ?? byDefault) ? inRegistry : value;
  };
  const level = optionOf(validationLevel, registered.validationLevel, 'strict');
  const action = optionOf(validationAction, registered.validationAction, 'error');
  // The server rounds a size up to a multiple of 256.
  const isSameSize = registered.size !== undefined && Math.ceil(registered.size / 256) * 256 === Number(size);
  const bytes = isSameSize ? registered.size : Number(size);
  const found: MongoOptions = {
    ...(capped && { capped: true, size: bytes, ...(max > 0 && { max: Number(max) }) }),
    ...(validator && { validator }),
    ...(level !== undefined && { validationLevel: level }),
    ...(action !== undefined && { validationAction: action }),
  };
  return Object.keys(found).length > 0 ? { mongoOptions: found } : {};
}

async function listIndexSpecs(server: MongoServer, name: string): Promise<IndexSpec[] | undefined> {
  try {
    const listed = await server.db.collection(name).listIndexes().toArray();
    return listed.map((index) => ({ name: String(index.name), ...readIndexStructure(server, index) }));
  } catch (error) {
    if (codeOf(error) === NAMESPACE_NOT_FOUND) return undefined;
    throw error;
  }
}

/** Keeps keys, unique flags and constraints whose index exists; every other index of the server becomes an index of the model. */
function withIndexes(base: Collection, listed: readonly IndexSpec[], report: Report): Collection {
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
    const index = toIndex(spec);
    if (index) indexes.set(spec.name, index);
    else report(`has the index "${spec.name}", which svc cannot create`, { name: spec.name });
    if (index && spec.partial !== undefined && !isSameIndex(spec, indexSpec(base, index)))
      report(
        `has the index "${spec.name}" with a filter that svc cannot create: it is read as an index of all documents`,
      );
  }
  return { ...base, fields, constraints, indexes };
}

/** An index that svc did not create may have another partial filter. */
const isSameExceptFilter = (spec: IndexSpec, wanted: IndexSpec): boolean =>
  spec.name === wanted.name &&
  isDeepStrictEqual([spec.key, spec.unique, spec.expires], [wanted.key, wanted.unique, wanted.expires]);

const isIdIndex = ({ key: [first, second] }: IndexSpec): boolean => first?.[0] === '_id' && second === undefined;

function toIndex({ name, key, unique, expires }: IndexSpec): Index | undefined {
  const columns = key.map(([field, order]: readonly [string, Json]) =>
    order === -1 ? { name: field, order: 'desc' as const } : { name: field },
  );
  return key.every(([, order]) => order === 1 || order === -1)
    ? {
        name,
        columns,
        ...(unique && { unique }),
        ...(expires !== undefined && { mongoOptions: { expireAfterSeconds: expires } }),
      }
    : undefined;
}
