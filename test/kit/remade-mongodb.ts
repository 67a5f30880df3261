import { type Db, type Document, MongoServerError } from 'mongodb';
import { freshMongo, type MongoTestDatabase } from './mongodb.ts';
import type { Facts } from './remake-files.ts';

/** Commands on a collection each; `@` is its name. */
type Case = readonly Document[];

const indexes = (...specs: readonly Document[]): Case => [
  { create: '@' },
  { createIndexes: '@', indexes: specs.map((spec, at) => ({ name: `@_${at}`, ...spec })) },
];

const validated = (validator: Document, options: Document = {}): Case => [{ create: '@', validator, ...options }];

const PERSON = {
  bsonType: 'object',
  required: ['name'],
  properties: { name: { bsonType: 'string' }, age: { bsonType: 'int', minimum: 0 } },
};

const CASES: Readonly<Record<string, Case>> = {
  plain: [{ create: '@' }],
  index_one: indexes({ key: { a: 1 } }),
  index_down: indexes({ key: { a: -1 } }),
  index_compound: indexes({ key: { a: 1, b: -1, c: 1 } }),
  index_unique: indexes({ key: { a: 1 }, unique: true }),
  index_unique_sparse: indexes({ key: { a: 1 }, unique: true, sparse: true }),
  index_unique_partial: indexes({ key: { a: 1 }, unique: true, partialFilterExpression: { a: { $exists: true } } }),
  index_unique_compound: indexes({ key: { a: 1, b: 1 }, unique: true }),
  index_sparse: indexes({ key: { a: 1 }, sparse: true }),
  index_partial: indexes({ key: { a: 1 }, partialFilterExpression: { b: { $gt: 5 }, c: 'x' } }),
  index_partial_double: indexes({ key: { a: 1 }, partialFilterExpression: { b: { $lt: 0.5 } } }),
  index_ttl: indexes({ key: { at: 1 }, expireAfterSeconds: 3600 }),
  index_ttl_zero: indexes({ key: { at: 1 }, expireAfterSeconds: 0 }),
  index_ttl_partial: indexes({ key: { at: 1 }, expireAfterSeconds: 60, partialFilterExpression: { done: true } }),
  index_hidden: indexes({ key: { a: 1 }, hidden: true }),
  index_hashed: indexes({ key: { a: 'hashed' } }),
  index_text: indexes({ key: { title: 'text' } }),
  index_text_weights: indexes({
    key: { title: 'text', body: 'text' },
    weights: { title: 10 },
    default_language: 'german',
  }),
  index_text_prefix: indexes({ key: { kind: 1, body: 'text' } }),
  index_text_language: indexes({ key: { body: 'text' }, language_override: 'lang', default_language: 'none' }),
  index_2dsphere: indexes({ key: { place: '2dsphere' } }),
  index_2dsphere_compound: indexes({ key: { place: '2dsphere', kind: 1 } }),
  index_2d: indexes({ key: { point: '2d' } }),
  index_2d_options: indexes({ key: { point: '2d' }, bits: 20, min: -10, max: 10 }),
  index_wildcard: indexes({ key: { '$**': 1 } }),
  index_wildcard_path: indexes({ key: { 'data.$**': 1 } }),
  index_wildcard_projection: indexes({ key: { '$**': 1 }, wildcardProjection: { a: 1, b: 1 } }),
  index_path: indexes({ key: { 'a.b': 1 } }),
  index_path_unique: indexes({ key: { 'a.b': 1, c: 1 }, unique: true }),
  index_collation: indexes({ key: { a: 1 }, collation: { locale: 'de', strength: 2 } }),
  index_named: indexes({ key: { a: 1 }, name: 'some other name' }),
  index_several: indexes({ key: { a: 1 } }, { key: { a: -1 } }, { key: { a: 1, b: 1 } }, { key: { b: 'hashed' } }),
  validator_schema: validated({ $jsonSchema: PERSON }),
  validator_moderate: validated({ $jsonSchema: PERSON }, { validationLevel: 'moderate', validationAction: 'warn' }),
  validator_off: validated({ $jsonSchema: PERSON }, { validationLevel: 'off' }),
  validator_query: validated({ age: { $gte: 0 }, name: { $type: 'string' } }),
  validator_both: validated({ $and: [{ $jsonSchema: PERSON }, { $expr: { $gt: ['$age', 1] } }] }),
  validator_objectid: validated({ $jsonSchema: { ...PERSON, properties: { owner: { bsonType: 'objectId' } } } }),
  validator_typed_id: validated({ $jsonSchema: { ...PERSON, properties: { _id: { bsonType: 'string' } } } }),
  validator_enum: validated({ $jsonSchema: { properties: { kind: { enum: ['a', 'b', 3] } } } }),
  validator_nested: validated({
    $jsonSchema: {
      properties: {
        lines: { bsonType: 'array', items: { bsonType: 'object', properties: { n: { bsonType: 'int' } } } },
      },
    },
  }),
  validator_closed: validated({ $jsonSchema: { ...PERSON, additionalProperties: false, title: 'Person' } }),
  validator_indexed: [
    ...validated({ $jsonSchema: PERSON }),
    { createIndexes: '@', indexes: [{ key: { name: 1 }, name: 'names', unique: true }] },
  ],
  capped: [{ create: '@', capped: true, size: 4096, max: 10 }],
  clustered: [{ create: '@', clusteredIndex: { key: { _id: 1 }, unique: true, name: 'by id' } }],
  collated: [
    { create: '@', collation: { locale: 'fr_CA', strength: 1 } },
    {
      createIndexes: '@',
      indexes: [
        { key: { a: 1 }, name: 'inherits' },
        { key: { b: 1 }, name: 'simple', collation: { locale: 'simple' } },
      ],
    },
  ],
  images: [{ create: '@', changeStreamPreAndPostImages: { enabled: true } }],
  series: [
    {
      create: '@',
      timeseries: { timeField: 'at', metaField: 'sensor', granularity: 'minutes' },
      expireAfterSeconds: 60,
    },
  ],
  series_plain: [{ create: '@', timeseries: { timeField: 'at' } }],
  view_plain: [{ create: '@', viewOn: 'plain', pipeline: [{ $match: { a: { $gt: 5 } } }, { $project: { a: 1 } }] }],
  view_of_view: [{ create: '@', viewOn: 'view_plain', pipeline: [{ $sort: { b: -1, a: 1 } }] }],
  view_empty: [{ create: '@', viewOn: 'plain', pipeline: [] }],
  view_join: [
    {
      create: '@',
      viewOn: 'plain',
      pipeline: [
        { $lookup: { from: 'capped', localField: 'a', foreignField: '_id', as: 'found' } },
        { $unwind: '$found' },
      ],
    },
  ],
  view_collated: [{ create: '@', viewOn: 'plain', pipeline: [], collation: { locale: 'de' } }],
};

/** Command not supported, not implemented, and keywords that the server does not know. */
const NOT_OF_THIS_SERVER: ReadonlySet<unknown> = new Set([9, 115, 238, 40415]);

/** A database of one feature for each collection, with documents. What its server does not have is left out. */
export async function grownMongo(): Promise<MongoTestDatabase> {
  const database = await freshMongo();
  try {
    await database.on(async (client, name) => grow(client.db(name)));
    return database;
  } catch (error) {
    await database.drop();
    throw error;
  }
}

async function grow(db: Db): Promise<void> {
  for (const [name, commands] of Object.entries(CASES)) {
    try {
      for (const command of named(commands, name)) await db.command(command);
    } catch (error) {
      if (!(error instanceof MongoServerError) || !NOT_OF_THIS_SERVER.has(error.code)) throw error;
      await db.dropCollection(name).catch(() => undefined);
    }
  }
  const documents = [1, 2, 3].map((n) => ({ name: 'x', age: n, a: n, b: 'y', at: new Date(n), place: [n, n] }));
  for (const name of ['plain', 'index_unique', 'index_ttl', 'index_2dsphere', 'validator_schema', 'validator_query'])
    await db.collection(name).insertMany(documents.map((document) => ({ ...document })));
}

const named = (commands: Case, name: string): Case =>
  JSON.parse(JSON.stringify(commands).replaceAll('@', name)) as Case;

/** The facts of the catalog by collection and view. */
export function mongoFacts(database: MongoTestDatabase): Promise<Facts> {
  return database.on(async (client, name) => {
    const db = client.db(name);
    const facts = new Map<string, Set<string>>();
    for (const { name: collection, type, options } of (await db.listCollections().toArray()) as Document[]) {
      if (/^(_svc_|system\.)/.test(collection)) continue;
      // The server keeps what is empty, and lists what it takes by itself.
      const { validator = {}, validationLevel = 'strict', validationAction = 'error', ...others } = options ?? {};
      const hasValidator = Object.keys(validator).length > 0;
      const known = hasValidator ? { validator, validationLevel, validationAction, ...others } : others;
      const found = new Set([`${type} ${JSON.stringify(known)}`]);
      facts.set(collection, found);
      if (type === 'view') continue;
      for (const { ns: _, ...index } of (await db.collection(collection).listIndexes().toArray()) as Document[])
        found.add(
          `index ${JSON.stringify(sorted({ ...index, ...(index.weights && { weights: sorted(index.weights) }) }))}`,
        );
    }
    return facts;
  });
}

const sorted = (document: Document): [string, unknown][] =>
  Object.entries(document).sort(([a], [b]) => (a < b ? -1 : 1));
