import { isDeepStrictEqual } from 'node:util';
import type { Document } from 'mongodb';
import type { UnsupportedObject } from '../../../../core/dialect.ts';
import type { Collection, Field, SchemaModel } from '../../../../core/schema/model.ts';
import { isKeptName, KEPT_PREFIX } from '../../../../core/schema/names.ts';
import type { MongoOptions } from '../../../../core/schema/options.ts';
import { userValidator, type Validator, validatorOf } from '../compile/validator.ts';
import { type MongoServer, TIME_LIMIT, toExtendedJson } from '../connection/server.ts';
import type { Settings } from '../connection/settings.ts';
import { readFixedOptions } from './fixed-options.ts';
import { canonicalExtendedJson, readValidator, sampleFields } from './read-fields.ts';
import { type ListedIndex, listIndexSpecs, type Report, withIndexedFields, withIndexes } from './read-indexes.ts';
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
    server.db.listCollections(named).toArray() as Promise<Document[]>,
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
  const collections = visible.filter(isCollection);
  // Views are objects.
  const unsupportedObjects: UnsupportedObject[] = visible
    .filter((info) => !isCollection(info) && info.type !== 'view')
    .map(({ name, type }) => ({ collection: String(name), what: `is a ${type}, which svc cannot create` }));
  for (let at = 0; at < collections.length; at += PARALLEL_COLLECTIONS) {
    const batch = collections.slice(at, at + PARALLEL_COLLECTIONS);
    const read = await Promise.all(
      batch.map((info) => readCollection(server, settings, info, fromRegistry.get(String(info.name)))),
    );
    for (const result of read) {
      if (!result) continue;
      model.set(result.collection.name, withoutKept(result.collection));
      unsupportedObjects.push(...result.unsupportedObjects);
    }
  }
  return { model, unsupportedObjects };
}

function withoutKept(collection: Collection): Collection {
  const fields = [...collection.fields].filter(([name]) => !isKeptName(name));
  return fields.length === collection.fields.size ? collection : { ...collection, fields: new Map(fields) };
}

/** The collections and fields that are kept: by the name of each, the collection of a field. */
export async function readKeptNames(server: MongoServer): Promise<ReadonlyMap<string, string | undefined>> {
  const [listed, entries] = await Promise.all([
    server.db.listCollections({ name: new RegExp(`^${KEPT_PREFIX}`) }, { nameOnly: true }).toArray(),
    registryCollection(server)
      .find({ entry: new RegExp(KEPT_PREFIX) }, TIME_LIMIT)
      .toArray(),
  ]);
  const fields = entries.flatMap(({ _id, entry }) =>
    [...collectionFromEntry(_id, entry).fields.keys()].filter(isKeptName).map((name): [string, string] => [name, _id]),
  );
  return new Map<string, string | undefined>([
    ...listed.map(({ name }): [string, undefined] => [name, undefined]),
    ...fields,
  ]);
}

const isCollection = ({ type }: Document): boolean => type === 'collection' || type === 'timeseries';

/** As `Connection.introspectAs`. */
export async function introspectAs(
  server: MongoServer,
  settings: Settings,
  collection: Collection,
): Promise<Collection | undefined> {
  const { name } = collection;
  const [[info], entry] = await Promise.all([
    server.db.listCollections({ name }).toArray() as Promise<Document[]>,
    registryCollection(server).findOne({ _id: name }, TIME_LIMIT),
  ]);
  if (entry || !info || !isCollection(info)) return undefined;
  return (await readCollection(server, settings, info, collection))?.collection;
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
  const base = await readFieldsAndOptions(server, settings, info, fromRegistry, listed, report);
  if (info.options?.encryptedFields) report('has encrypted fields, which svc cannot create');
  return { collection: withIndexes(base, listed), unsupportedObjects };
}

/** Fields, checks and options. */
async function readFieldsAndOptions(
  server: MongoServer,
  settings: Settings,
  { name, options = {} }: Document,
  fromRegistry: Collection | undefined,
  listed: readonly ListedIndex[],
  report: Report,
): Promise<Collection> {
  const validator = isEmpty(options.validator) ? undefined : (toExtendedJson(server, options.validator) as Validator);
  const isUnenforced = fromRegistry?.options.mongoOptions?.validationLevel === 'off';
  const hasNoValidators = fromRegistry && !validator && (isUnenforced || !settings.validators);
  // Without a validator the level has no effect, and the server lists its default.
  const hasLevel = validator || options.timeseries || (fromRegistry && !isUnenforced);
  const listedOptions = hasLevel ? options : { ...options, validationLevel: 'off' };
  const expected = fromRegistry && validatorOf(fromRegistry);
  if (
    fromRegistry &&
    (hasNoValidators || isDeepStrictEqual(validator, expected && canonicalExtendedJson(server, expected)))
  ) {
    const { mongoOptions: _, ...others } = fromRegistry.options;
    const userOption = fromRegistry.options.mongoOptions?.validator;
    return {
      ...fromRegistry,
      options: { ...others, ...readMongoOptions(server, listedOptions, fromRegistry, userOption) },
    };
  }
  const empty = { name, fields: new Map(), indexes: new Map(), constraints: new Map(), options: {} };
  if (!validator && fromRegistry) {
    const constraints = new Map([...fromRegistry.constraints].filter(([, { type }]) => type !== 'check'));
    return {
      ...fromRegistry,
      fields: new Map(),
      constraints,
      options: readMongoOptions(server, listedOptions, fromRegistry),
    };
  }
  if (!validator) {
    report('has no validator: its fields are read from a sample of its documents');
    const sampled = await sampleFields(server, name);
    const fields = options.timeseries ? fieldsOfSeries(options, sampled.fields) : sampled.fields;
    const { omissions } = sampled;
    for (const { field, why } of omissions) report(why, { field });
    // No validator enforces the sampled fields, so a migration from this model must not begin to enforce them.
    return {
      ...empty,
      fields: withIndexedFields(fields, listed),
      options: readMongoOptions(server, listedOptions, undefined),
    };
  }
  const { fields, checks, inexact, untyped, rest } = readValidator(server, fromRegistry, validator);
  if (rest && !fromRegistry) report(KEPT_VALIDATOR);
  for (const field of fromRegistry ? inexact : []) report('has a rule that svc cannot create', { field });
  for (const field of untyped)
    report('is described only by the validator, which allows values of every type', { field });
  const ofUser = fromRegistry && userValidator(fromRegistry);
  const isRegistered = !rest || (ofUser && isDeepStrictEqual(rest, canonicalExtendedJson(server, ofUser)));
  return {
    ...empty,
    ...fromRegistry,
    fields,
    constraints: checks,
    options: readMongoOptions(
      server,
      options,
      fromRegistry,
      isRegistered ? fromRegistry?.options.mongoOptions?.validator : rest,
    ),
  };
}

const KEPT_VALIDATOR =
  'has a validator that fields do not describe completely: it is kept in its mongoOptions, and the fields that it names cannot be dropped or renamed';

const isEmpty = (value: unknown): boolean => value === undefined || Object.keys(value as object).length === 0;

/** The measurements of a time series have a time, and `_id` is not its key. */
function fieldsOfSeries({ timeseries }: Document, sampled: ReadonlyMap<string, Field>): ReadonlyMap<string, Field> {
  const { timeField, metaField } = timeseries as { readonly timeField: string; readonly metaField?: string };
  const fields = new Map<string, Field>([
    [timeField, { name: timeField, type: 'timestamp', required: true }],
    ...(metaField === undefined ? [] : [[metaField, { name: metaField, type: 'json' }] as const]),
  ]);
  for (const [name, field] of sampled) {
    const { primaryKey: _, required: __, ...plain } = field;
    if (name !== timeField) fields.set(name, plain);
  }
  return fields;
}

/** The options as the registry has them where the server's are equal; the server also lists defaults. */
function readMongoOptions(
  server: MongoServer,
  { capped, size, max, validationLevel, validationAction, ...others }: Document,
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
    ...(validator && (fromRegistry ? registered.validatorDescribesFields : true) && { validatorDescribesFields: true }),
    ...(level !== undefined && { validationLevel: level }),
    ...(action !== undefined && { validationAction: action }),
    ...readFixedOptions(server, others, registered),
  };
  return Object.keys(found).length > 0 ? { mongoOptions: found } : {};
}
