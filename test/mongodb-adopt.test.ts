import * as assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { Binary, type Db, Decimal128, type Document, Double, Long, ObjectId, UUID } from 'mongodb';
import { freshMongo, type MongoTestDatabase, missing } from './kit/mongodb.ts';
import { assertExit, json, type Project, project } from './kit/project.ts';
import { test } from './kit/test.ts';

/** Each test starts a dozen commands. */
const SLOW = { timeoutMs: 600_000 };

const day = new Date('2026-01-31T00:00:00Z');
const point = { type: 'Point', coordinates: [13.4, 52.5] };

interface RealCollection {
  readonly make: (db: Db) => Promise<unknown>;
  /** The types of some fields, as pulled. */
  readonly fields: Readonly<Record<string, string>>;
  readonly indexes?: readonly string[];
  /** What the warnings of the collection say, in any order. */
  readonly warnings: readonly RegExp[];
}

const insert =
  (name: string, ...documents: readonly Document[]) =>
  (db: Db) =>
    db.collection(name).insertMany([...documents]);
const all =
  (...steps: readonly ((db: Db) => Promise<unknown>)[]) =>
  async (db: Db) => {
    for (const step of steps) await step(db);
  };
const index =
  (name: string, key: Document, options: Document = {}) =>
  (db: Db) =>
    db.collection(name).createIndex(key as never, options);
const validated =
  (name: string, validator: Document, options: Document = {}) =>
  async (db: Db) =>
    void (await db.createCollection(name, { validator, ...options }));

const SAMPLE = /has no validator: its fields are read from a sample of its documents/;
const KEPT = /has a validator that fields do not describe completely/;

/** Collections as Mongoose, Rails with Mongoid and programs with the plain driver leave them. */
const COLLECTIONS: Readonly<Record<string, RealCollection>> = {
  plain: {
    make: insert('plain', { _id: 1 as never, name: 'x' }),
    fields: { _id: 'integer', name: 'string' },
    warnings: [SAMPLE],
  },
  mongoose_users: {
    make: all(
      insert('mongoose_users', {
        email: 'a@example.com',
        roles: ['admin'],
        address: { city: 'Kyiv' },
        owner: new ObjectId(),
        createdAt: day,
        __v: 0,
      }),
      index('mongoose_users', { email: 1 }, { unique: true }),
      index('mongoose_users', { roles: 1, createdAt: -1 }),
      index('mongoose_users', { 'address.city': 1 }),
    ),
    fields: {
      _id: 'json',
      email: 'string',
      roles: 'json',
      address: 'json',
      owner: 'json',
      createdAt: 'timestamp',
      __v: 'integer',
    },
    indexes: ['email_1', 'roles_1_createdAt_-1', 'address.city_1'],
    warnings: [SAMPLE, /owner" has values of the type objectId, which svc cannot create; it is read as json/],
  },
  'fs.files': {
    make: all(
      insert('fs.files', { length: 5, chunkSize: 261120, uploadDate: day, filename: 'a', metadata: {} }),
      index('fs.files', { filename: 1, uploadDate: 1 }),
    ),
    fields: { _id: 'json', length: 'integer', uploadDate: 'timestamp' },
    indexes: ['filename_1_uploadDate_1'],
    warnings: [SAMPLE],
  },
  'fs.chunks': {
    make: all(
      insert('fs.chunks', { files_id: new ObjectId(), n: 0, data: new Binary(Buffer.from('x')) }),
      index('fs.chunks', { files_id: 1, n: 1 }, { unique: true }),
    ),
    fields: { _id: 'json', files_id: 'json', n: 'integer', data: 'binary' },
    indexes: ['files_id_1_n_1'],
    warnings: [SAMPLE, /files_id" has values of the type objectId/],
  },
  string_keys: {
    make: insert('string_keys', { _id: 'sku-1' as never, price: new Decimal128('9.50'), stock: Long.fromNumber(5) }),
    fields: { _id: 'string', price: 'decimal', stock: 'bigint' },
    warnings: [SAMPLE],
  },
  uuid_keys: {
    make: insert('uuid_keys', { _id: new UUID() as never, active: true }),
    fields: { _id: 'binary', active: 'boolean' },
    warnings: [SAMPLE],
  },
  compound_keys: {
    make: insert('compound_keys', { _id: { tenant: 1, no: 7 } as never, total: new Double(5) }),
    fields: { _id: 'json', total: 'double' },
    warnings: [SAMPLE],
  },
  mixed_keys: {
    make: insert(
      'mixed_keys',
      { _id: 1 as never },
      { _id: 'two' as never },
      { _id: new ObjectId() },
      { _id: day as never },
    ),
    fields: { _id: 'json' },
    warnings: [SAMPLE],
  },
  mixed_values: {
    make: insert(
      'mixed_values',
      { v: 1, n: 1 },
      { v: 'x', n: 1.5 },
      { v: null, n: Long.fromNumber(2 ** 40) },
      { 'a.b': 1 },
    ),
    fields: { v: 'json', n: 'double' },
    warnings: [
      SAMPLE,
      /v" has values of several types, int and string; it is read as json/,
      /a\.b" is left out: MongoDB reads a dot as a path/,
    ],
  },
  mongoid_validated: {
    make: all(
      validated('mongoid_validated', {
        $jsonSchema: {
          bsonType: 'object',
          required: ['_id', 'name', 'owner_id', 'note'],
          properties: {
            _id: { bsonType: 'objectId' },
            name: { bsonType: 'string', pattern: '^[a-z]' },
            age: { bsonType: 'int', minimum: 0 },
            owner_id: { bsonType: 'objectId' },
            status: { enum: ['open', 'closed', null] },
            score: { type: 'number' },
            note: { bsonType: ['string', 'null'] },
            extra: {},
            address: { bsonType: 'object', required: ['city'], properties: { city: { bsonType: 'string' } } },
          },
        },
      }),
      insert('mongoid_validated', { name: 'a', owner_id: new ObjectId(), note: null, score: new Decimal128('1') }),
      index('mongoid_validated', { owner_id: 1, name: 1 }, { unique: true }),
    ),
    fields: {
      _id: 'json',
      name: 'string',
      age: 'integer',
      owner_id: 'json',
      status: 'enum',
      score: 'double',
      note: 'string',
      address: 'json',
    },
    indexes: ['owner_id_1_name_1'],
    warnings: [KEPT, /extra" is described only by the validator, which allows values of every type/],
  },
  described_exactly: {
    make: all(
      validated('described_exactly', {
        $jsonSchema: {
          bsonType: 'object',
          required: ['name'],
          properties: { name: { bsonType: 'string' }, at: { bsonType: ['date', 'null'] } },
        },
      }),
      insert('described_exactly', { name: 'x', at: day }, { name: 'y' }),
      index('described_exactly', { name: 1 }, { unique: true }),
    ),
    fields: { _id: 'json', name: 'string', at: 'timestamp' },
    indexes: ['name_1'],
    warnings: [],
  },
  query_validated: {
    make: all(
      validated(
        'query_validated',
        { status: { $in: ['a', 'b'] } },
        { validationLevel: 'moderate', validationAction: 'warn' },
      ),
      insert('query_validated', { status: 'a' }),
      index('query_validated', { status: 1 }),
    ),
    fields: { _id: 'json' },
    indexes: ['status_1'],
    warnings: [KEPT],
  },
  sparse_unique: {
    make: all(
      insert('sparse_unique', { phone: '1' }, {}, {}),
      index('sparse_unique', { phone: 1 }, { unique: true, sparse: true }),
      index('sparse_unique', { code: 1 }, { sparse: true }),
    ),
    fields: { phone: 'string', code: 'json' },
    indexes: ['phone_1', 'code_1'],
    warnings: [SAMPLE],
  },
  partial: {
    make: all(insert('partial', { n: 1 }), index('partial', { n: 1 }, { partialFilterExpression: { n: { $gt: 0 } } })),
    fields: { n: 'integer' },
    indexes: ['n_1'],
    warnings: [SAMPLE],
  },
  sessions: {
    make: all(
      insert('sessions', { token: 'x', expiresAt: day, seen: 'yesterday' }),
      index('sessions', { expiresAt: 1 }, { expireAfterSeconds: 1_000_000_000 }),
      index('sessions', { seen: 1 }, { expireAfterSeconds: 60 }),
    ),
    fields: { expiresAt: 'timestamp', seen: 'string' },
    indexes: ['expiresAt_1', 'seen_1'],
    warnings: [SAMPLE],
  },
  articles: {
    make: all(
      insert('articles', { title: 'a', body: 'b' }),
      index('articles', { title: 'text', body: 'text' }),
      index('articles', { '$**': 1 }),
      index('articles', { title: 'hashed' }),
    ),
    fields: { title: 'string', body: 'string' },
    indexes: ['title_text_body_text', '$**_1', 'title_hashed'],
    warnings: [SAMPLE],
  },
  places: {
    make: all(insert('places', { location: point }), index('places', { location: '2dsphere' })),
    fields: { location: 'json' },
    indexes: ['location_2dsphere'],
    warnings: [SAMPLE],
  },
  empty: {
    make: async (db) => {
      await db.createCollection('empty');
      await index('empty', { email: 1 }, { unique: true })(db);
      await index('empty', { at: 1 }, { expireAfterSeconds: 3600 })(db);
    },
    fields: { _id: 'json', email: 'json', at: 'timestamp' },
    indexes: ['email_1', 'at_1'],
    warnings: [SAMPLE],
  },
  capped: {
    // A server without capped collections gets a plain one: the next test says so.
    make: async (db) => {
      await db
        .createCollection('capped', { capped: true, size: 4096, max: 10 })
        .catch(() => db.createCollection('capped'));
      await db.collection('capped').insertOne({ line: 'x' });
    },
    fields: { _id: 'json', line: 'string' },
    warnings: [SAMPLE],
  },
};

interface Adopted extends Project {
  readonly fresh: MongoTestDatabase;
  on<T>(work: (db: Db) => Promise<T>): Promise<T>;
  readonly pulled: {
    readonly warnings: readonly string[];
    readonly leftOut: readonly string[];
    readonly tables: readonly string[];
  };
  /** The entry of the schema file. */
  schemaFile(): Document;
}

async function adopted(make: (db: Db) => Promise<unknown>, work: (project: Adopted) => Promise<void>): Promise<void> {
  const fresh = await freshMongo();
  try {
    const on = <T>(run: (db: Db) => Promise<T>) => fresh.on((client, name) => run(client.db(name)));
    await on(make);
    const shop = project({ main: fresh.url });
    const pulled = json(assertExit(await shop.svc('db', 'schema', 'pull', '--json')));
    assertExit(await shop.svc('db', 'migrate', 'baseline'));
    const schemaFile = () => JSON.parse(shop.read('svc/database/schema.json'))[0];
    await work({ ...shop, fresh, on, pulled, schemaFile });
  } finally {
    await fresh.drop();
  }
}

async function assertAligned({ svc }: Pick<Project, 'svc'>): Promise<void> {
  assert.match(assertExit(await svc('db', 'schema', 'check')).stdout, /^OK/);
  assert.match(assertExit(await svc('db', 'schema', 'generate')).stdout, /^Nothing to generate/);
}

if (missing) test.skip('adopting a database on MongoDB', missing);
else {
  test(
    'nineteen collections of other programs are adopted, changed and rolled back',
    () =>
      adopted(
        async (db) => {
          for (const { make } of Object.values(COLLECTIONS)) await make(db);
          await db.createCollection('seen', { viewOn: 'plain', pipeline: [] });
        },
        async (shop) => {
          const { svc, pulled, on, schemaFile, write } = shop;
          const names = Object.keys(COLLECTIONS);
          assert.equal(names.length, 19);
          assert.deepEqual(pulled.leftOut, []);
          assert.deepEqual(pulled.tables.toSorted(), names.toSorted());
          const schema = schemaFile();
          for (const [name, { fields, indexes = [], warnings }] of Object.entries(COLLECTIONS)) {
            for (const [field, type] of Object.entries(fields))
              assert.equal(schema.tables[name][field]?.type.toLowerCase(), type, `${name}.${field}`);
            assert.equal(schema.tables[name]._id.primaryKey, true, name);
            assert.deepEqual(
              (schema.indexes?.[name] ?? []).map((one: Document) => one.name).toSorted(),
              indexes.toSorted(),
            );
            const said = pulled.warnings.filter((line) => line.includes(`"${name}"`) || line.includes(`"${name}.`));
            assert.equal(said.length, warnings.length, `${name}: ${said.join('\n')}`);
            for (const part of warnings)
              assert.ok(
                said.some((line) => part.test(line)),
                `${part}: ${said.join('\n')}`,
              );
          }
          assert.ok(!pulled.warnings.some((line) => line.includes('"seen"')), 'a view is a file');
          for (const line of pulled.warnings) assert.match(line, /[^.]\.$/);
          await assertAligned(shop);
          const before = await on((db) => contents(db, names));

          for (const name of names) {
            schema.tables[name].added = { type: 'Integer', default: 5 };
            schema.indexes ??= {};
            schema.indexes[name] = [...(schema.indexes[name] ?? []), { columns: ['added'] }];
          }
          write('svc/database/schema.json', [schema]);
          assertExit(await svc('db', 'schema', 'generate'));
          assertExit(await svc('db', 'migrate'));
          await assertAligned(shop);
          const filled = (db: Db) => db.collection('mixed_keys').countDocuments({ added: 5 });
          assert.equal(await on(filled), 4);
          // What a program writes stays valid.
          await on(async (db) => {
            await db.collection('plain').insertOne({ _id: 'other' as never, name: 7 });
            await db.collection('mongoose_users').insertOne({ email: 5, owner: new ObjectId(), more: day });
            const note = { name: 'b', owner_id: new ObjectId(), note: null, score: new Decimal128('2'), extra: day };
            await db.collection('mongoid_validated').insertOne(note);
            await assert.rejects(
              db.collection('mongoid_validated').insertOne({ ...note, _id: 5 as never }),
              /121|valid/,
            );
            await assert.rejects(db.collection('described_exactly').insertOne({ name: 5 }), /121|valid/);
            await assert.rejects(db.collection('described_exactly').insertOne({ name: 'x' }), /11000|uplicate/);
            await db.collection('plain').deleteOne({ _id: 'other' as never });
            await db.collection('mongoose_users').deleteOne({ email: 5 });
            await db.collection('mongoid_validated').deleteOne({ name: 'b' });
          });
          assertExit(await svc('db', 'migrate', 'rollback', '--yes', '--allow-destructive'));
          assert.match(assertExit(await svc('db', 'schema', 'check')).stdout, /^OK/);
          assert.deepEqual(await on((db) => contents(db, names)), before);
        },
      ),
    SLOW,
  );

  test(
    'the pulled migration creates the collections in an empty database, which takes the same documents',
    () =>
      adopted(
        async (db) => {
          for (const { make } of Object.values(COLLECTIONS)) await make(db);
        },
        async ({ on, read, files }) => {
          const empty = await freshMongo();
          try {
            const copy = project({ main: empty.url });
            copy.write('svc/database/schema.json', read('svc/database/schema.json'));
            for (const file of files()) {
              const path = `svc/database/migrations/main/${file}`;
              copy.write(path, read(path));
            }
            assertExit(await copy.svc('db', 'migrate'));
            await assertAligned(copy);
            await empty.on(async (client, database) => {
              const db = client.db(database);
              for (const name of Object.keys(COLLECTIONS)) {
                const documents = await on((from) => from.collection(name).find().toArray());
                if (documents.length > 0) await db.collection(name).insertMany(documents);
              }
              await assert.rejects(db.collection('mongoid_validated').insertOne({ name: 5 }), /121|valid/);
              await assert.rejects(
                db.collection('mongoose_users').insertOne({ email: 'a@example.com' }),
                /11000|uplicate/,
              );
              const chunk = await db.collection('fs.chunks').findOne({}, { projection: { _id: 0 } });
              await assert.rejects(db.collection('fs.chunks').insertOne({ ...chunk }), /11000|uplicate/);
            });
            await assertAligned(copy);
          } finally {
            await empty.drop();
          }
        },
      ),
    SLOW,
  );

  test(
    'a collection without a validator stays as adopted, whatever its documents become',
    () =>
      adopted(insert('people', { name: 'a', age: 5 }), async (shop) => {
        const { svc, on, schemaFile, write } = shop;
        await on((db) => db.collection('people').deleteMany({}));
        await on((db) => db.collection('people').insertOne({ _id: 7 as never, name: new ObjectId(), nickname: 'b' }));
        await assertAligned(shop);
        assert.deepEqual(json(assertExit(await svc('db', 'schema', 'pull', '--json'))).migrations, []);

        const schema = schemaFile();
        write('svc/database/schema.json', [{ ...schema, indexes: { people: [{ columns: ['name'] }] } }]);
        assertExit(await svc('db', 'schema', 'generate'));
        assertExit(await svc('db', 'migrate'));
        await assertAligned(shop);
        await on((db) => db.collection('people').dropIndexes());
        assert.match(assertExit(await svc('db', 'schema', 'check'), 5).stdout, /people_name_idx is missing/);
      }),
    SLOW,
  );

  test(
    'a table declared by hand for a collection that exists: each advice leads to the adopted collection',
    async () => {
      const fresh = await freshMongo();
      try {
        await fresh.on((client, name) => insert('people', { _id: 1, name: 'x' })(client.db(name)));
        const shop = project({ main: fresh.url });
        const { svc, schema, root, files } = shop;
        schema({ people: { _id: { type: 'Integer', primaryKey: true }, name: { type: 'String', required: true } } });
        assertExit(await svc('db', 'schema', 'generate'));
        const refused = json(assertExit(await svc('db', 'migrate', '--json'), 2));
        assert.equal(refused.code, 'collection_exists');
        assert.match(refused.nextActions[0], /^Adopt the existing table: delete the pending migration file/);
        const differs = json(assertExit(await svc('db', 'migrate', 'baseline', '--json'), 5));
        const [file] = files();
        const path = `svc/database/migrations/main/${file}`;
        assert.ok(
          differs.nextActions[0].startsWith(`Delete ${path}, then: svc db schema pull`),
          differs.nextActions[0],
        );
        rmSync(join(root, path));
        assertExit(await svc('db', 'schema', 'pull'));
        assertExit(await svc('db', 'migrate', 'baseline'));
        await assertAligned(shop);
        const adoptedSchema = JSON.parse(shop.read('svc/database/schema.json'));
        adoptedSchema[0].tables.people.name.required = true;
        shop.write('svc/database/schema.json', adoptedSchema);
        assertExit(await svc('db', 'schema', 'generate'));
        assertExit(await svc('db', 'migrate'));
        await assertAligned(shop);
      } finally {
        await fresh.drop();
      }
    },
    SLOW,
  );
}

async function contents(db: Db, names: readonly string[]): Promise<readonly unknown[]> {
  return Promise.all(
    names.map(async (name) => [
      name,
      await db.collection(name).find().sort({ _id: 1 }).toArray(),
      (await db.collection(name).listIndexes().toArray()).map((one) => one.name).toSorted(),
    ]),
  );
}
