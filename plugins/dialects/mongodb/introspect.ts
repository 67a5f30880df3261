import { isDeepStrictEqual } from 'node:util';
import type { Document } from 'mongodb';
import type { Unreadable } from '../../../core/dialect.ts';
import type { Json } from '../../../core/json.ts';
import { primaryFields } from '../../../core/schema/keys.ts';
import type { Collection, Constraint, Field, Index, SchemaModel } from '../../../core/schema/model.ts';
import type { MongoOptions } from '../../../core/schema/options.ts';
import { BOUNDED } from './bounds.ts';
import { codeOf, NAMESPACE_NOT_FOUND } from './errors.ts';
import { indexSpec, isSame, KEY_NAME, keySpec, type Spec } from './indexes.ts';
import { type Server, toExtended } from './open.ts';
import { readStructure } from './read-index.ts';
import { canonical } from './read-rule.ts';
import { readValidator } from './read-validator.ts';
import { registryOf } from './registry.ts';
import { sampledFields } from './sample.ts';
import type { Settings } from './settings.ts';
import { collectionOfEntry } from './step.ts';
import { type Validator, validatorOf } from './validator.ts';

export interface Read {
  readonly model: SchemaModel;
  readonly unreadable: readonly Unreadable[];
}

/** How many collections are asked for their indexes at once. */
const AT_ONCE = 16;

/**
 * The catalog as a model: what the registry keeps of a collection as far as its validator and its indexes say the same,
 * and as they are where they do not.
 */
export async function readCatalog(server: Server, settings: Settings, names?: readonly string[]): Promise<Read> {
  const named = names ? { name: { $in: [...names] } } : {};
  const [listed, entries] = await Promise.all([
    server.db.listCollections({ type: 'collection', ...named }).toArray() as Promise<Document[]>,
    registryOf(server)
      .find(names ? { _id: { $in: [...names] } } : {}, BOUNDED)
      .toArray(),
  ]);
  const known = new Map(entries.map(({ _id, entry }) => [_id, collectionOfEntry(_id, entry)]));
  // One that is being made counts once it is whole.
  const making = new Set(entries.filter((entry) => entry.making).map(({ _id }) => _id));
  const own = listed.filter(({ name }) => !/^(_svc_|system\.)/.test(String(name)) && !making.has(String(name)));
  own.sort((a, b) => (String(a.name) < String(b.name) ? -1 : 1));
  const model = new Map<string, Collection>();
  const unreadable: Unreadable[] = [];
  for (let at = 0; at < own.length; at += AT_ONCE) {
    const some = own.slice(at, at + AT_ONCE);
    const read = await Promise.all(
      some.map((info) => readCollection(server, settings, info, known.get(String(info.name)))),
    );
    for (const one of read) {
      if (!one) continue;
      model.set(one.collection.name, one.collection);
      unreadable.push(...one.unreadable);
    }
  }
  return { model, unreadable };
}

async function readCollection(
  server: Server,
  settings: Settings,
  info: Document,
  known: Collection | undefined,
): Promise<{ collection: Collection; unreadable: readonly Unreadable[] } | undefined> {
  const name = String(info.name);
  const listed = await indexesOf(server, name);
  // Dropped since it was listed.
  if (!listed) return undefined;
  const unreadable: Unreadable[] = [];
  const note = (what: string, field?: string) =>
    unreadable.push({ collection: name, what, ...(field !== undefined && { field }) });
  const base = await described(server, settings, info, known, note);
  return { collection: withIndexes(base, listed, note), unreadable };
}

type Note = (what: string, field?: string) => void;

/** Fields, checks and options. */
async function described(
  server: Server,
  settings: Settings,
  { name, options = {} }: Document,
  known: Collection | undefined,
  note: Note,
): Promise<Collection> {
  const validator = isEmpty(options.validator) ? undefined : (toExtended(server, options.validator) as Validator);
  const unchecked = known !== undefined && !settings.validators && validator === undefined;
  const expected = known && validatorOf(known);
  if (known && (unchecked || isDeepStrictEqual(validator, expected && canonical(server, expected)))) {
    const { mongoOptions: _, ...others } = known.options;
    return { ...known, options: { ...others, ...mongoOptions(options, known, known.options.mongoOptions?.validator) } };
  }
  const empty = { name, fields: new Map(), indexes: new Map(), constraints: new Map(), options: {} };
  if (!validator) {
    const read = known ? { fields: new Map<string, Field>(), odd: [] } : await sampledFields(server, name);
    if (!known) note('has no validator: its fields are those of a sample of its documents');
    for (const field of read.odd) note('has values of types that svc does not make, or of several', field);
    // Nothing holds the fields of a sample: a validator made of them must not begin to.
    const level = known ? {} : { mongoOptions: { validationLevel: 'off' } };
    const constraints = new Map([...(known?.constraints ?? [])].filter(([, { type }]) => type !== 'check'));
    return {
      ...empty,
      ...known,
      fields: read.fields,
      constraints,
      options: { ...mongoOptions(options, known), ...level },
    };
  }
  const { fields, checks, inexact, rest } = readValidator(server, known, validator);
  for (const field of inexact) note('has a rule that svc does not make', field);
  const kept = rest ?? known?.options.mongoOptions?.validator;
  return { ...empty, ...known, fields, constraints: checks, options: mongoOptions(options, known, kept) };
}

const isEmpty = (value: unknown): boolean => value === undefined || Object.keys(value as object).length === 0;

/** As the registry has them where the server says the same; a server tells defaults too. */
function mongoOptions(
  { capped, size, max, validationLevel, validationAction }: Document,
  known: Collection | undefined,
  validator?: MongoOptions['validator'],
): Collection['options'] {
  const written = known?.options.mongoOptions ?? {};
  const said = (value: unknown, ours: string | undefined, otherwise: string): { said?: string } => {
    const found = typeof value === 'string' ? value : otherwise;
    if (found === (ours ?? otherwise)) return ours === undefined ? {} : { said: ours };
    return { said: found };
  };
  const level = said(validationLevel, written.validationLevel, 'strict').said;
  const action = said(validationAction, written.validationAction, 'error').said;
  // A server rounds the size up to a multiple of 256.
  const bytes =
    written.size !== undefined && Math.ceil(written.size / 256) * 256 === Number(size) ? written.size : Number(size);
  const found: MongoOptions = {
    ...(capped && { capped: true, size: bytes, ...(max > 0 && { max: Number(max) }) }),
    ...(validator && { validator }),
    ...(level !== undefined && { validationLevel: level }),
    ...(action !== undefined && { validationAction: action }),
  };
  return Object.keys(found).length > 0 ? { mongoOptions: found } : {};
}

async function indexesOf(server: Server, name: string): Promise<Spec[] | undefined> {
  try {
    const listed = await server.db.collection(name).listIndexes().toArray();
    return listed.map((index) => ({ name: String(index.name), ...readStructure(server, index) }));
  } catch (error) {
    if (codeOf(error) === NAMESPACE_NOT_FOUND) return undefined;
    throw error;
  }
}

/** What needs an index is there as far as the index is; what is left is an index of its own. */
function withIndexes(base: Collection, listed: readonly Spec[], note: Note): Collection {
  const used = new Set<Spec>();
  const holds = (wanted: Spec): boolean => {
    const found = listed.filter((spec) => isSame(spec, wanted) || isNearly(spec, wanted));
    for (const spec of found) used.add(spec);
    return found.length > 0 || isIdIndex(wanted);
  };
  const key = primaryFields(base);
  const keyStands = key.length === 0 || holds(keySpec(base, KEY_NAME, key));
  const fields = new Map<string, Field>();
  for (const [name, field] of base.fields) {
    const { primaryKey, unique, ...plain } = field;
    const stays = unique && holds(keySpec(base, `${name}_key`, [name]));
    fields.set(name, { ...plain, ...(primaryKey && keyStands && { primaryKey }), ...(stays && { unique }) });
  }
  const constraints = new Map<string, Constraint>();
  for (const [name, constraint] of base.constraints) {
    const isKey = constraint.type === 'unique' || constraint.type === 'primaryKey';
    if (!isKey || holds(keySpec(base, name, constraint.columns))) constraints.set(name, constraint);
  }
  const indexes = new Map<string, Index>();
  for (const [name, index] of base.indexes) {
    if (holds(indexSpec(base, index))) indexes.set(name, index);
  }
  for (const spec of listed) {
    if (used.has(spec) || spec.name === '_id_') continue;
    const index = readIndex(spec);
    if (index) indexes.set(spec.name, index);
    else note(`has the index "${spec.name}" of a kind that svc does not make`);
  }
  return { ...base, fields, constraints, indexes };
}

/** An index that svc did not make may hold more than svc would have it hold. */
const isNearly = (spec: Spec, wanted: Spec): boolean =>
  spec.name === wanted.name &&
  isDeepStrictEqual([spec.key, spec.unique, spec.expires], [wanted.key, wanted.unique, wanted.expires]);

const isIdIndex = ({ key: [first, second] }: Spec): boolean => first?.[0] === '_id' && second === undefined;

function readIndex({ name, key, unique, expires }: Spec): Index | undefined {
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
