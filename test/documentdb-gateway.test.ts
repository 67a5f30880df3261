import * as assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { Binary, Long } from 'bson';
import { type Document, type MongoClient, MongoServerError } from 'mongodb';
import { freshMongo, missing } from './kit/mongodb.ts';
import { startMongoProxy } from './kit/mongodb-proxy.ts';
import { test } from './kit/test.ts';
import { decode, readRequest, splitMessages, writeRequest } from './servers/documentdb/wire.ts';

// Tests the gateway that replaces a missing mongod, through the official driver: the dialect tests rely on it.

interface Stored extends Document {
  readonly _id?: string | number | Binary;
}

type Database = ReturnType<MongoClient['db']>;

const on = (name: string, body: (db: Database, client: MongoClient, url: string) => Promise<void>): void =>
  test(
    name,
    async () => {
      const database = await freshMongo();
      try {
        await database.on((client, address) => body(client.db(address), client, database.url));
      } finally {
        await database.drop();
      }
    },
    { timeoutMs: 60_000 },
  );

const codeOf = (work: Promise<unknown>): Promise<number | string> =>
  work.then(
    () => 'no error',
    (error: unknown) => (error instanceof MongoServerError ? Number(error.code) : String(error)),
  );

/** Whether the server is the gateway; these tests do not apply to a mongod. */
async function isGateway(): Promise<boolean> {
  const database = await freshMongo();
  return database.on(async (client, name) => (await client.db(name).command({ buildInfo: 1 })).gateway !== undefined);
}

if (missing) test.skip('the gateway to DocumentDB', missing);
else if (!(await isGateway())) test.skip('the gateway to DocumentDB', 'a mongod was found, which is preferred');
else {
  on('it identifies itself', async (db) => {
    const { gateway } = await db.command({ buildInfo: 1 });
    assert.match(gateway, /^DocumentDB \S+ on PostgreSQL 1[0-9.]+$/);
    assert.equal((await db.command({ hello: 1 })).gateway, gateway);
  });

  on('collections, indexes and documents as the driver requests them', async (db) => {
    const validator = { $jsonSchema: { bsonType: 'object', required: ['n'], properties: { n: { bsonType: 'int' } } } };
    await db.createCollection('made', { validator });
    const [listed] = await db.listCollections({ name: 'made' }).toArray();
    assert.deepEqual((listed as Document).options.validator, validator);
    await db.command({ collMod: 'made', validationLevel: 'moderate' });
    const created = db.collection('made');
    await created.createIndex({ n: 1, m: -1 }, { unique: true, name: 'both' });
    await created.createIndex({ at: 1 }, { expireAfterSeconds: 60 });
    await created.createIndex({ m: 1 }, { partialFilterExpression: { m: { $gte: '' } } });
    assert.deepEqual(
      (await created.indexes()).map(({ name }) => name),
      ['_id_', 'both', 'at_1', 'm_1'],
    );
    await created.bulkWrite([
      { insertOne: { document: { n: 1 } } },
      { updateOne: { filter: { n: 2 }, update: { $set: { m: 'x' } }, upsert: true } },
      { deleteOne: { filter: { n: 1 } } },
    ]);
    await created.updateMany({}, [{ $set: { both: { $concat: ['$m', '!'] } } }]);
    const found = await created.findOneAndUpdate({ n: 2 }, { $inc: { n: 5 } }, { returnDocument: 'after' });
    assert.equal(found?.n, 7);
    assert.equal(found?.both, 'x!');
    assert.deepEqual(await created.distinct('m'), ['x']);
    assert.equal(await created.countDocuments(), 1);
    await created.rename('other');
    assert.deepEqual(
      (await db.listCollections().toArray()).map(({ name }) => name),
      ['other'],
    );
    await db.collection('other').dropIndex('both');
    assert.equal(await db.dropCollection('other'), true);
    assert.deepEqual(await db.listCollections().toArray(), []);
  });

  on('every value is read back as it was sent', async (db) => {
    const values = {
      _id: new Binary(Buffer.from([1, 2, 3]), 0),
      long: Long.fromString('9007199254740993'),
      nested: { '': [null, true, -0.5, 'sélect 😀'], ['__proto__']: 1 },
      at: new Date(1),
    };
    await db.collection<Stored>('values').insertOne(values);
    const [found] = await db.collection<Stored>('values').find({}, { promoteValues: false }).toArray();
    assert.equal(String(found?.long), '9007199254740993');
    assert.deepEqual(Object.keys(found?.nested), ['', '__proto__']);
    assert.deepEqual(found?.at, new Date(1));
  });

  on('its error codes are MongoDB error codes', async (db) => {
    await db.createCollection('there', { validator: { n: { $type: 'int' } } });
    const there = db.collection<Stored>('there');
    await there.insertOne({ _id: 1, n: 1 });
    await there.createIndex({ a: 1 }, { name: 'a' });
    const codes: readonly (readonly [number, Promise<unknown>])[] = [
      [2, db.command({ collMod: 'there', validationLevel: 'no' })],
      [9, db.command({ collMod: 'there', validator: { $jsonSchema: { nonsense: 1 } } })],
      [26, db.command({ collMod: 'nowhere', validator: {} })],
      [26, db.command({ listIndexes: 'nowhere' })],
      [27, there.dropIndex('none')],
      [43, db.command({ getMore: Long.fromNumber(12345), collection: 'there' })],
      [48, db.createCollection('there', { validator: { n: { $type: 'string' } } })],
      [59, db.command({ nonsense: 1 })],
      [67, there.createIndex({ b: 0 } as never)],
      [73, db.createCollection('a$b')],
      [85, there.createIndex({ a: 1 }, { name: 'b' })],
      [86, there.createIndex({ b: 1 }, { name: 'a' })],
      [115, db.createCollection('small', { capped: true, size: 4096 })],
      [121, there.insertOne({ n: 'text' })],
      [11000, there.insertOne({ _id: 1, n: 1 })],
      [40415, db.command({ collMod: 'there', nonsense: 1 })],
    ];
    assert.deepEqual(
      await Promise.all(codes.map(([, work]) => codeOf(work))),
      codes.map(([code]) => code),
    );
    const bulk = await there
      .insertMany([
        { _id: 2, n: 1 },
        { _id: 1, n: 1 },
        { _id: 3, n: 1 },
      ])
      .catch((error) => error);
    assert.equal(bulk.code, 11000);
    assert.equal(bulk.writeErrors[0].index, 1);
    assert.equal(await there.countDocuments(), 2);
  });

  on('concurrent cursors return every document once, over many pages', async (db) => {
    const many = db.collection<Stored>('many');
    await many.insertMany(Array.from({ length: 3000 }, (_, _id) => ({ _id, text: 'x'.repeat(100) })));
    for (let index = 0; index < 60; index += 1) await db.createCollection(`c${index}`);
    const ids = async (cursor: AsyncIterable<Document>) => {
      const found: unknown[] = [];
      for await (const { _id } of cursor) found.push(_id);
      return found;
    };
    const all = Array.from({ length: 3000 }, (_, id) => id);
    const batch = { batchSize: 70 };
    const [one, other, sorted] = await Promise.all([
      ids(many.find({}, batch)),
      ids(many.aggregate([{ $match: { _id: { $lt: 1000 } } }], batch)),
      ids(many.find({}, { ...batch, sort: { text: 1, _id: -1 } })),
    ]);
    assert.deepEqual(
      (one as number[]).sort((a, b) => a - b),
      all,
    );
    assert.equal(new Set(other).size, 1000);
    assert.deepEqual(sorted, [...all].reverse());
    assert.equal((await db.listCollections({}, { batchSize: 7 }).toArray()).length, 61);
    const abandoned = many.find({}, batch);
    await abandoned.next();
    await abandoned.close();
    assert.equal(await many.countDocuments(), 3000);
  });

  test('the increments of twenty concurrent clients add up', async () => {
    const database = await freshMongo();
    try {
      await Promise.all(
        Array.from({ length: 20 }, (_, who) =>
          database.on(async (client, name) => {
            const documents = client.db(name).collection<Stored>('shared');
            for (let round = 0; round < 5; round += 1) {
              await documents.insertOne({ who, round });
              await documents.updateOne({ _id: 'sum' }, { $inc: { n: 1 } }, { upsert: true }).catch(async (error) => {
                // Two clients that find no document both insert one.
                if (error.code !== 11000) throw error;
                await documents.updateOne({ _id: 'sum' }, { $inc: { n: 1 } });
              });
            }
            assert.equal(await documents.countDocuments({ who }), 5);
          }),
        ),
      );
      await database.on(async (client, name) => {
        const shared = client.db(name).collection<Stored>('shared');
        assert.equal((await shared.findOne({ _id: 'sum' }))?.n, 100);
      });
    } finally {
      await database.drop();
    }
  });

  on('a repeated write is applied once', async (db, _client, url) => {
    const { hostname, port } = new URL(url);
    const update = {
      update: 'counted',
      updates: [{ q: { _id: 'one' }, u: { $inc: { n: 1 } }, upsert: true }],
      lsid: { id: new Binary(Buffer.from(randomUUID().replaceAll('-', ''), 'hex'), 4) },
      txnNumber: Long.fromNumber(1),
      $db: db.databaseName,
    };
    const socket = connect(Number(port), hostname);
    for (const id of [1, 2]) {
      socket.write(writeRequest(id, update));
      let bytes: Buffer = Buffer.alloc(0);
      while (splitMessages(bytes).messages.length === 0)
        bytes = Buffer.concat([bytes, (await once(socket, 'data'))[0]]);
      const { command } = readRequest(splitMessages(bytes).messages[0]!);
      assert.equal(Number(command.n), 1, JSON.stringify(decode(Buffer.from(bytes.subarray(21)))));
    }
    socket.destroy();
    assert.equal((await db.collection<Stored>('counted').findOne({ _id: 'one' }))?.n, 1);
  });

  on('the driver retries a write without a reply, and it is applied once', async (db, _client, url) => {
    let lostReply = 0;
    const proxy = await startMongoProxy(url, ({ name }) => (name === 'update' && ++lostReply === 1 ? 'lose' : 'pass'));
    const { MongoClient } = await import('mongodb');
    const client = new MongoClient(proxy.url);
    const counted = client.db(db.databaseName).collection<Stored>('counted');
    await counted.updateOne({ _id: 'one' }, { $inc: { n: 1 } }, { upsert: true });
    assert.equal(lostReply, 2);
    assert.equal((await counted.findOne({ _id: 'one' }))?.n, 1);
    await client.close();
    await proxy.close();
  });

  on('other clients see all of a transaction or nothing', async (db, client) => {
    const documents = db.collection<Stored>('documents');
    await documents.insertOne({ _id: 'a', n: 0 });
    const session = client.startSession();
    session.startTransaction();
    await documents.updateOne({ _id: 'a' }, { $inc: { n: 1 } }, { session });
    await documents.insertOne({ _id: 'b' }, { session });
    assert.equal((await documents.findOne({ _id: 'a' }))?.n, 0);
    assert.equal((await documents.findOne({ _id: 'a' }, { session }))?.n, 1);
    await session.commitTransaction();
    await session.commitTransaction();
    assert.deepEqual(await documents.find({}, { sort: { _id: 1 } }).toArray(), [{ _id: 'a', n: 1 }, { _id: 'b' }]);
    session.startTransaction();
    await documents.deleteMany({}, { session });
    await session.abortTransaction();
    assert.equal(await documents.countDocuments(), 2);
    session.startTransaction();
    assert.equal(await codeOf(documents.insertOne({ _id: 'b' }, { session })), 11000);
    assert.equal(await codeOf(documents.insertOne({ _id: 'c' }, { session })), 251);
    await session.abortTransaction();
    await session.endSession();
  });

  on('of two transactions that write one document, the later one gets a transient error', async (db, client) => {
    const documents = db.collection<Stored>('documents');
    await documents.insertOne({ _id: 'a', n: 0 });
    const [one, other] = [client.startSession(), client.startSession()];
    one.startTransaction();
    other.startTransaction();
    await documents.findOne({}, { session: other });
    await documents.updateOne({ _id: 'a' }, { $inc: { n: 1 } }, { session: one });
    const latecomer = documents.updateOne({ _id: 'a' }, { $inc: { n: 1 } }, { session: other }).catch((error) => error);
    await one.commitTransaction();
    const error = await latecomer;
    assert.equal(error.code, 112);
    assert.ok(error.hasErrorLabel('TransientTransactionError'));
    await Promise.all([one.endSession(), other.endSession()]);
    const counts = await Promise.all(
      [1, 2, 3, 4].map(() =>
        client.withSession((session) =>
          session.withTransaction(async () => {
            await documents.updateOne({ _id: 'a' }, { $inc: { n: 1 } }, { session });
            return 1;
          }),
        ),
      ),
    );
    assert.equal(counts.length, 4);
    assert.equal((await documents.findOne({ _id: 'a' }))?.n, 5);
  });

  test('an invalid message closes its connection and affects no other', async () => {
    const database = await freshMongo();
    const { hostname, port } = new URL(database.url);
    const socket = connect(Number(port), hostname);
    socket.write('GET / HTTP/1.1\r\n\r\n');
    await once(socket, 'close');
    await database.on(async (client, name) => void (await client.db(name).command({ ping: 1 })));
  });
}
