import * as assert from 'node:assert/strict';
import { Binary, Decimal128, type Document, Long } from 'mongodb';
import { Database } from '../core/database/database.ts';
import type { ConnectOptions } from '../core/dialect.ts';
import { isSvcError, type SvcError } from '../core/errors.ts';
import type { Json } from '../core/json.ts';
import { migration } from '../core/migration/builder.ts';
import { drift } from '../core/migration/drift.ts';
import { historyModel } from '../core/migration/history.ts';
import { MigrationEngine } from '../core/migration/migration-engine.ts';
import type { Target } from '../core/migration/target.ts';
import type { FieldType } from '../core/schema/model.ts';
import { mongodb } from '../plugins/dialects/mongodb/dialect.ts';
import { freshMongo, type MongoTestDatabase, missing } from './kit/mongodb.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';

interface Fixture {
  readonly adapter: Target;
  readonly db: Database;
  /** A collection of a separate client. */
  documents(name: string): ReturnType<ReturnType<import('mongodb').MongoClient['db']>['collection']>;
  readonly fresh: MongoTestDatabase;
}

const on = (name: string, body: (fixture: Fixture) => Promise<void>, options: ConnectOptions = {}): void =>
  test(
    name,
    async () => {
      const fresh = await freshMongo();
      try {
        const adapter = await connectTarget(mongodb, fresh.url, { batchSize: 10, ...options });
        try {
          await fresh.on(async (client, own) => {
            const documents = (collection: string) => client.db(own).collection(collection);
            await body({ adapter, db: new Database(adapter), documents, fresh });
          });
        } finally {
          await adapter.connection.close();
        }
      } finally {
        await fresh.drop();
      }
    },
    { timeoutMs: 120_000 },
  );

async function rejectionOf(work: Promise<unknown>): Promise<SvcError> {
  try {
    await work;
  } catch (error) {
    if (isSvcError(error)) return error;
    throw error;
  }
  throw new Error('an error was expected');
}

const assertComplete = async (adapter: Target): Promise<void> =>
  assert.deepEqual(
    await drift(adapter.connection, await historyModel(adapter), await adapter.connection.introspect()),
    [],
  );

const isAccepted = async (documents: ReturnType<Fixture['documents']>, document: Document): Promise<boolean> =>
  documents.insertOne(document).then(
    () => true,
    (error) => {
      if (error.code === 121) return false;
      throw error;
    },
  );

if (missing) test.skip('operations on MongoDB', missing);
else {
  on('the values that each field type accepts', async ({ db, documents }) => {
    const uuid = '00000000-0000-4000-8000-00000000000a';
    const values: Readonly<Partial<Record<FieldType, readonly [good: readonly unknown[], bad: readonly unknown[]]>>> = {
      integer: [
        [5, -5, 5.0, Long.fromNumber(5)],
        [5.5, 3e9, 'x', null],
      ],
      smallint: [[32767], [32768]],
      bigint: [
        [5, 5n, Long.MAX_VALUE],
        [5.5, 'x'],
      ],
      double: [
        [5, 5.5, 3e9],
        ['x', Decimal128.fromString('1')],
      ],
      boolean: [[true], [0, 'true']],
      text: [['', 'sélect 😀'], [5]],
      date: [[new Date()], ['2026-01-01', 5]],
      timestamp: [[new Date()], ['2026-01-01T00:00:00Z']],
      time: [
        ['00:00', '19:59', '23:59:59.999'],
        ['99:99', '24:00', '10:60', '10:00:60', 'now', new Date()],
      ],
      uuid: [
        [uuid, uuid.toUpperCase()],
        ['x', `${uuid}0`],
      ],
      json: [[{ a: [1] }, [1], 'x', 5, true], [new Date()]],
      binary: [[new Binary(Buffer.from('x')), Buffer.from('x')], ['x']],
    };
    for (const [type, [good, bad]] of Object.entries(values)) {
      await db.schema.create(type, { value: { type: type as FieldType, required: true } });
      for (const value of good) assert.ok(await isAccepted(documents(type), { value }), `${type}: ${value}`);
      for (const value of bad) assert.ok(!(await isAccepted(documents(type), { value })), `${type}: ${value}`);
      assert.ok(!(await isAccepted(documents(type), {})), `${type} is required`);
    }
    await db.schema.create('rest', {
      short: { type: 'string', length: 3 },
      money: { type: 'decimal', precision: 5, scale: 2 },
      mood: { type: 'enum', enumValues: ['a', 'b'] },
      list: { type: 'array', items: 'integer' },
    });
    const money = (text: string) => ({ money: Decimal128.fromString(text) });
    for (const good of [
      {},
      { short: null, mood: null },
      { short: 'äöü' },
      money('-999.99'),
      { mood: 'a' },
      { list: [1, null] },
    ])
      assert.ok(await isAccepted(documents('rest'), good), JSON.stringify(good));
    for (const bad of [{ short: 'abcd' }, money('1.234'), money('1000'), { mood: 'c' }, { list: ['x'] }, { list: 1 }])
      assert.ok(!(await isAccepted(documents('rest'), bad)), JSON.stringify(bad));
  });

  on('options of a table: an additional validator, its level and its action', async ({ adapter, db, documents }) => {
    await db.schema.create(
      'strict',
      { n: 'integer' },
      {
        mongoOptions: { validator: { bsonType: 'object', required: ['m'], properties: { m: { bsonType: 'string' } } } },
      },
    );
    assert.ok(!(await isAccepted(documents('strict'), { n: 1 })));
    assert.ok(!(await isAccepted(documents('strict'), { n: 'x', m: 'x' })));
    assert.ok(await isAccepted(documents('strict'), { n: 1, m: 'x' }));
    await db.schema.create(
      'warned',
      { n: 'integer' },
      { mongoOptions: { validator: { n: { $gte: 0 } }, validationLevel: 'moderate', validationAction: 'warn' } },
    );
    assert.ok(await isAccepted(documents('warned'), { n: 'x' }));
    assert.equal((await rejectionOf(db.schema.renameField('warned', 'n', 'k'))).code, 'field_in_use');
    await db.schema.addField('strict', 'more', 'text');
    assert.ok(!(await isAccepted(documents('strict'), { more: 'x' })));
    await assertComplete(adapter);
  });

  on('the option timestamps: an insert may leave the fields out, and db.update sets one', async (fixture) => {
    const { adapter, db, documents } = fixture;
    await db.schema.create('notes', { text: { type: 'text', required: true } }, { timestamps: true });
    await documents('notes').insertOne({ text: 'a' });
    assert.ok(!(await isAccepted(documents('notes'), { text: 'b', createdAt: null })));
    assert.ok(!(await isAccepted(documents('notes'), { text: 'b', updatedAt: '2026-01-01' })));
    assert.ok(!(await isAccepted(documents('notes'), { createdAt: new Date() })));
    await db.update({ table: 'notes', data: { text: 'c' }, where: { text: 'a' } });
    assert.ok((await documents('notes').findOne({ text: 'c' }))?.updatedAt instanceof Date);
    await assertComplete(adapter);
    await db.schema.addField('notes', 'n', { type: 'integer', default: 1 });
    assert.ok(await isAccepted(documents('notes'), { text: 'd' }));
    await assertComplete(adapter);
  });

  on('a capped collection, or the error of a server without them', async ({ adapter, db, documents }) => {
    const options = { mongoOptions: { capped: true, size: 4000, max: 2 } };
    const created = await db.schema.create('small', { n: 'integer' }, options).catch((error: unknown) => error);
    if (isSvcError(created)) {
      assert.equal(created.code, 'not_supported');
      assert.match(created.state ?? '', /^None of it took effect/);
      assert.deepEqual([...(await adapter.connection.introspect()).keys()], []);
      await db.schema.create('small', { n: 'integer' });
    } else {
      await documents('small').insertMany([{ n: 1 }, { n: 2 }, { n: 3 }]);
      assert.equal(await documents('small').countDocuments(), 2);
    }
    await assertComplete(adapter);
  });

  on(
    'a new field is filled with its default, or rejected if documents have no value',
    async ({ adapter, db, documents }) => {
      await db.schema.create('users', { id: { type: 'integer', primaryKey: true } });
      await documents('users').insertMany(Array.from({ length: 25 }, (_, id) => ({ id, odd: id === 3 ? 'x' : id })));
      const required = await rejectionOf(db.schema.addField('users', 'name', { type: 'text', required: true }));
      assert.equal(required.code, 'data_violates');
      assert.match(required.why ?? '', /^25 have no value for "name", .*for example: _id \{/);
      assert.equal(required.details.count, 25);
      const odd = await rejectionOf(db.schema.addField('users', 'odd', 'integer'));
      assert.match(odd.why ?? '', /^1 have a value in "odd" that is not a valid integer/);
      const twins = await rejectionOf(
        db.schema.addField('users', 'code', { type: 'text', default: 'x', unique: true }),
      );
      assert.match(twins.why ?? '', /^25 would get the same default/);
      await assertComplete(adapter);
      assert.ok(await isAccepted(documents('users'), { id: 100, name: 5 }));
      await documents('users').deleteOne({ id: 100 });

      await db.schema.addField('users', 'name', { type: 'text', required: true, default: '$set' });
      await db.schema.addField('users', 'token', { type: 'uuid', autoGenerate: true, unique: true, required: true });
      await db.schema.addField('users', 'since', { type: 'timestamp', default: 'now' });
      await db.schema.addField('users', 'price', { type: 'decimal', precision: 6, scale: 2, default: '12.50' });
      await db.schema.addField('users', 'extra', { type: 'json', default: { $date: 'no date', a: [1] } });
      await db.schema.addField('users', 'loud', { type: 'text', default: { $expression: '{ "$toUpper": "$name" }' } });
      const found = await documents('users').find().toArray();
      assert.equal(new Set(found.map(({ token }) => token)).size, 25);
      for (const { name, since, price, extra, loud } of found) {
        assert.equal(name, '$set');
        assert.ok(since instanceof Date);
        assert.equal(String(price), '12.50');
        assert.deepEqual(extra, { $date: 'no date', a: [1] });
        assert.equal(loud, '$SET');
      }
      await assertComplete(adapter);
    },
  );

  on(
    'a change of type converts values, and is rejected if one would lose something',
    async ({ adapter, db, documents }) => {
      await db.schema.create('things', { n: 'text', at: 'text', list: 'integer' });
      const things = documents('things');
      await things.insertMany([
        { n: '5', at: '2026-01-31T10:00:00.123Z', list: 1 },
        { n: '-7', at: '2026-01-31' },
        { n: null },
        {},
      ]);
      await things.insertMany([{ n: '5.7' }, { n: '05' }, { n: 'x' }]);
      const lossy = await rejectionOf(db.schema.modifyField('things', 'n', { type: 'integer' }));
      assert.equal(lossy.code, 'data_violates');
      assert.match(lossy.why ?? '', /^3 have a value in "n" that cannot be converted to integer without loss: _id /);
      assert.match(lossy.state ?? '', /^None of it took effect/);
      assert.deepEqual((await things.distinct('n')).sort(), ['-7', '05', '5', '5.7', 'x', null].sort());
      await assertComplete(adapter);
      await things.deleteMany({ n: { $in: ['5.7', '05', 'x'] } });

      await db.schema.modifyField('things', 'n', { type: 'integer' });
      assert.deepEqual(
        (await things.find({ n: { $ne: null } }).toArray()).map(({ n }) => n),
        [5, -7],
      );
      await db.schema.modifyField('things', 'n', { type: 'decimal', precision: 4, scale: 1 });
      await db.schema.modifyField('things', 'n', { type: 'string', length: 3 });
      assert.deepEqual(
        (await things.find({ n: { $ne: null } }).toArray()).map(({ n }) => n),
        ['5', '-7'],
      );
      await db.schema.modifyField('things', 'at', { type: 'timestamp' });
      assert.deepEqual(
        (await things.find({ at: { $ne: null } }).toArray()).map(({ at }) => at.toISOString()),
        ['2026-01-31T10:00:00.123Z', '2026-01-31T00:00:00.000Z'],
      );
      await db.schema.modifyField('things', 'list', { type: 'array', items: 'text' });
      assert.deepEqual(
        (await things.find({ list: { $ne: null } }).toArray()).map(({ list }) => list),
        [['1']],
      );
      const missingValue = await rejectionOf(db.schema.modifyField('things', 'at', { required: true }));
      assert.match(missingValue.why ?? '', /^2 have no value for "at"/);
      await assertComplete(adapter);
    },
  );

  on('a double that would lose digits as a decimal or a text is rejected', async ({ adapter, db, documents }) => {
    const others = [
      { type: 'decimal', precision: 34, scale: 17 },
      { type: 'text' },
      { type: 'array', items: 'text' },
    ] as const;
    await db.schema.create('t', { n: 'double' });
    const engine = new MigrationEngine(adapter);
    const t = documents('t');
    const storedValues = async () => (await t.find({}, { sort: { _id: 1 } }).toArray()).map(({ n }) => n);
    const whole = [12345678901, 9007199254740991, 1.5, -0.25];
    await t.insertMany(whole.map((n, _id) => ({ _id, n }) as Document));
    for (const other of others) {
      await t.insertOne({ _id: 9, n: 0.1 + 0.2 } as Document);
      const lossy = await rejectionOf(db.schema.modifyField('t', 'n', other));
      assert.match(
        lossy.why ?? '',
        /^1 have a value in "n" that cannot be converted to .* without loss: _id 9/,
        other.type,
      );
      assert.equal((await storedValues()).at(-1), 0.1 + 0.2);
      await t.deleteOne({ _id: 9 } as Document);
      const { migration } = await db.schema.modifyField('t', 'n', other);
      assert.deepEqual(
        (await storedValues()).map((n) => Number(n)),
        whole,
      );
      await engine.down(migration);
      assert.deepEqual(await storedValues(), whole);
    }
    await assertComplete(adapter);
  });

  on('a value converted to a text or an array can be converted back', async ({ adapter, db, documents }) => {
    const day = new Date('1960-01-31');
    const ways = [
      ['date', 'text', day, '1960-01-31'],
      ['date', 'json', day, '1960-01-31'],
      ['date', 'array', day, ['1960-01-31']],
      ['datetime', 'text', new Date(5), '1970-01-01T00:00:00.005'],
      ['timestamp', 'text', new Date(5), '1970-01-01T00:00:00.005Z'],
      ['text', 'array', 'x', ['x']],
      ['boolean', 'array', false, ['false']],
      ['integer', 'array', 5, ['5']],
      ['time', 'array', '10:00', ['10:00']],
    ] as const;
    const fields = Object.fromEntries(ways.map(([from], index) => [`f${index}`, { type: from }]));
    await db.schema.create('t', fields);
    const engine = new MigrationEngine(adapter);
    const t = documents('t');
    const before = Object.fromEntries(ways.map(([, , value], index) => [`f${index}`, value]));
    await t.insertMany([{ ...before }, {}]);
    const storedValues = () => t.findOne({ f0: { $ne: null } }, { projection: { _id: 0 } });
    const migrations = [];
    for (const [index, [, to]] of ways.entries())
      migrations.push((await db.schema.modifyField('t', `f${index}`, { type: to })).migration);
    assert.deepEqual(
      await storedValues(),
      Object.fromEntries(ways.map(([, , , value], index) => [`f${index}`, value])),
    );
    for (const migration of migrations.reverse()) await engine.down(migration);
    assert.deepEqual(await storedValues(), before);
    await assertComplete(adapter);

    await db.schema.create('lists', { list: 'array' });
    await documents('lists').insertMany([
      { list: ['only'] },
      { list: [] },
      { list: ['a', 'b'] },
      { list: [null] },
      { list: null },
    ]);
    const several = await rejectionOf(db.schema.modifyField('lists', 'list', { type: 'text' }));
    assert.match(several.why ?? '', /^3 have a value in "list" that cannot be converted to text without loss/);
  });

  on('a new field keeps values from before it was declared', async ({ adapter, db, documents }) => {
    await db.schema.create('t', { n: 'integer' });
    const t = documents('t');
    await t.insertMany([{ n: 1, age: '5' }, { n: 2, age: 6 }, { n: 3, age: null }, { n: 4 }]);
    await db.schema.addField('t', 'age', 'integer');
    assert.deepEqual(
      (await t.find({ age: { $ne: null } }).toArray()).map(({ age }) => age),
      [5, 6],
    );
    assert.equal((await db.update({ table: 't', data: { n: 0 }, all: true })).modified, 4);
    await t.updateMany({ n: 0 }, { $set: { code: 7 } });
    await t.updateOne({ age: 5 }, { $set: { code: '7' } });
    const twins = await rejectionOf(db.schema.addField('t', 'code', { type: 'integer', unique: true }));
    assert.match(twins.why ?? '', /^3 have the same "code" as another document/);
    await assertComplete(adapter);
  });

  on('a default with no value or another type is rejected before any change', async ({ adapter, db, documents }) => {
    await db.schema.create('t', { name: 'text' });
    await documents('t').insertMany([{ name: 'a' }, { name: '5' }, {}]);
    const wrong = [
      [{ type: 'integer', required: true, default: { $expression: '"$nosuch"' } }, 3],
      [{ type: 'text', required: true, default: { $expression: '"$name"' } }, 1],
      [{ type: 'integer', default: { $expression: '{ "$concat": ["$name", "!"] }' } }, 2],
      [{ type: 'integer', default: { $expression: '5.5' } }, 3],
    ] as const;
    for (const [definition, count] of wrong) {
      const error = await rejectionOf(db.schema.addField('t', 'x', definition));
      assert.equal(error.code, 'data_violates');
      assert.match(error.why ?? '', /would get an invalid value from the default of "x"/);
      assert.equal(error.details.count, count);
    }
    assert.equal(await documents('t').countDocuments({ x: { $exists: true } }), 0);
    await assertComplete(adapter);
    await db.schema.addField('t', 'x', { type: 'text', default: { $expression: '"$name"' } });
    assert.equal(await documents('t').countDocuments({ x: { $type: 'string' } }), 2);
  });

  on('values that would become equal are reported before any is converted', async ({ adapter, db, documents }) => {
    await db.schema.create('t', {
      a: { type: 'string', unique: true },
      b: { type: 'string', unique: true, required: true },
    });
    await documents('t').insertMany([
      { a: '1.0', b: '1' },
      { a: '1.00', b: '2' },
      { a: '3', b: '2.0' },
      { a: null, b: '4' },
      { b: '5' },
    ]);
    for (const field of ['a', 'b']) {
      const twins = await rejectionOf(db.schema.modifyField('t', field, { type: 'double' }));
      assert.equal(twins.code, 'data_violates');
      assert.match(twins.why ?? '', new RegExp(`^1 have the same "${field}" as another document`));
      assert.match(twins.state ?? '', /^None of it took effect/);
    }
    await assertComplete(adapter);
    await documents('t').deleteOne({ a: '1.00' });
    for (const field of ['a', 'b']) await db.schema.modifyField('t', field, { type: 'double' });
    assert.deepEqual(
      (await documents('t').find().toArray()).map(({ b }) => b),
      [1, 2, 4, 5],
    );
    await assert.rejects(documents('t').insertOne({ a: 3, b: 7 }), /11000|uplicate/);
    await assertComplete(adapter);
  });

  on('a date has no time of day', async ({ adapter, db, documents }) => {
    await db.schema.create('t', { d: 'timestamp', s: 'text' });
    const noon = new Date('1960-01-31T12:00:00Z');
    await documents('t').insertMany([
      { d: new Date('2026-01-31T00:00:00Z'), s: '2026-01-31' },
      { d: new Date('1960-01-31T00:00:00Z') },
      { d: noon, s: '2026-01-31T10:00:00Z' },
      { d: null },
      {},
    ]);
    const timed = await rejectionOf(db.schema.modifyField('t', 'd', { type: 'date' }));
    assert.equal(timed.code, 'data_violates');
    assert.match(timed.why ?? '', /^1 have a time of day in "d", which a date would lose: _id /);
    await documents('t').insertOne({ s: '2026-02-30' });
    const text = await rejectionOf(db.schema.modifyField('t', 's', { type: 'date' }));
    assert.match(text.why ?? '', /^2 have a value in "s" that cannot be converted to date without loss: _id /);
    await assertComplete(adapter);
    await documents('t').updateMany({}, { $set: { early: noon } });
    assert.match(
      (await rejectionOf(db.schema.addField('t', 'early', 'date'))).why ?? '',
      /^6 have a time of day in "early"/,
    );
    await documents('t').deleteMany({ $or: [{ d: noon }, { s: '2026-02-30' }] });
    for (const field of ['d', 's']) await db.schema.modifyField('t', field, { type: 'date' });
    const where = { d: '2026-01-31', s: '2026-01-31' };
    assert.equal((await db.update({ table: 't', data: { s: null }, where })).matched, 1);
    await assertComplete(adapter);
  });

  on('a renamed field keeps its values, its indexes and its uniqueness', async ({ adapter, db, documents }) => {
    await db.schema.create('users', { mail: { type: 'text', unique: true, required: true }, n: 'integer' });
    await db.schema.createIndex('users', [{ name: 'mail', order: 'desc' }, 'n']);
    const users = documents('users');
    await users.insertMany(Array.from({ length: 25 }, (_, n) => ({ mail: `${n}`, n })));
    await users.updateOne({ n: 3 }, { $set: { email: 'mine' } }, { bypassDocumentValidation: true });
    const both = await rejectionOf(db.schema.renameField('users', 'mail', 'email'));
    assert.match(both.why ?? '', /^1 have a value in both "mail" and "email"/);
    await users.updateOne({ n: 3 }, { $unset: { email: '' } });
    await users.insertOne({ email: 5 }, { bypassDocumentValidation: true });
    const other = await rejectionOf(db.schema.renameField('users', 'mail', 'email'));
    assert.match(other.why ?? '', /^1 have a value in "email" that is not a valid text: _id /);
    await users.deleteOne({ email: 5 });
    await db.schema.renameField('users', 'mail', 'email');
    assert.equal(await users.countDocuments({ mail: { $exists: true } }), 0);
    assert.equal(await users.countDocuments({ email: { $type: 'string' } }), 25);
    await assert.rejects(users.insertOne({ email: '3', n: 99 }), /E?11000|uplicate/);
    await assertComplete(adapter);
    await db.schema.dropIndex('users', 'users_mail_n_idx');
    await db.schema.dropField('users', 'n');
    assert.equal(await users.countDocuments({ n: { $exists: true } }), 0);
    await assertComplete(adapter);
  });

  on(
    'unique applies to values, not to missing ones, and duplicates are reported first',
    async ({ adapter, db, documents }) => {
      await db.schema.create('users', { mail: { type: 'text', unique: true }, code: 'text' });
      const users = documents('users');
      await users.insertMany([
        {},
        {},
        { mail: null },
        { mail: null },
        { mail: 'a', code: 'x' },
        { mail: 'b', code: 'x' },
      ]);
      await assert.rejects(users.insertOne({ mail: 'a' }));
      const twins = await rejectionOf(db.schema.createIndex('users', ['code'], { unique: true }));
      assert.equal(twins.code, 'data_violates');
      assert.match(twins.why ?? '', /^1 have the same "code" as another document: _id /);
      assert.doesNotMatch(JSON.stringify(twins), /"x"/);
      await assertComplete(adapter);
      const same = await rejectionOf(
        new MigrationEngine(adapter).up(
          migration('20260101_000000_same')
            .createIndex('users', 'mail_key', [{ name: 'code' }])
            .build(),
        ),
      );
      assert.equal(same.code, 'index_exists');
    },
  );

  on(
    'for every type, several documents may have no value, and one may have each value',
    async ({ adapter, db, documents }) => {
      const uuid = '00000000-0000-4000-8000-00000000000a';
      const values: Readonly<Record<FieldType, unknown>> = {
        integer: -7,
        bigint: Long.fromString('-9007199254740993'),
        smallint: 0,
        float: -0.5,
        double: -1e300,
        decimal: Decimal128.fromString('-1'),
        string: '',
        text: 'a',
        boolean: false,
        date: new Date(-8640000000000000),
        time: '00:00',
        datetime: new Date(0),
        timestamp: new Date(-1),
        json: { a: 1 },
        uuid,
        enum: 'x',
        array: ['a'],
        binary: new Binary(Buffer.from([0]), 0),
        blob: new Binary(Buffer.alloc(0), 0),
      };
      const more = { enum: { enumValues: ['x'] }, decimal: { precision: 10, scale: 2 } };
      for (const [type, value] of Object.entries(values)) {
        const only = { type: type as FieldType, unique: true, ...more[type as keyof typeof more] };
        await db.schema.create(type, { only });
        await documents(type).insertMany([{}, {}, { only: null }, { only: null }, { only: value }]);
        await assert.rejects(documents(type).insertOne({ only: value }), { code: 11000 }, type);
      }
      await assertComplete(adapter);
      await documents('text').updateMany({}, { $set: { sum: null } }, { bypassDocumentValidation: true });
      await db.schema.addField('text', 'sum', { type: 'binary', unique: true });
      await assertComplete(adapter);
    },
  );

  on('arrays with a common element are reported before a unique index is built', async ({ adapter, db, documents }) => {
    await db.schema.create('t', {
      tags: { type: 'array', required: true },
      more: 'array',
      any: 'json',
      n: 'integer',
    });
    const t = documents('t');
    const insert = (...all: readonly Document[]) => t.insertMany(all as Document[]);
    await insert(
      { _id: 1, tags: ['x', 'y', 'x'], more: ['a'], any: [1, 2], n: 1 },
      { _id: 2, tags: ['y', 'z', 'x'], more: ['b'], any: 2, n: 2 },
      { _id: 3, tags: ['w'], any: { a: [1] }, n: 3 },
    );
    for (const field of ['tags', 'any']) {
      const { code, why = '' } = await rejectionOf(db.schema.createIndex('t', [field], { unique: true }));
      assert.equal(code, 'data_violates');
      assert.match(why, new RegExp(`^1 have the same "${field}" as another document: _id [12]\\.$`));
    }
    await assertComplete(adapter);
    await db.schema.createIndex('t', ['tags', 'n'], { unique: true });
    await db.schema.createIndex('t', ['more'], { unique: true });
    await assert.rejects(t.insertOne({ tags: ['v'], more: ['c', 'a'] }), { code: 11000 });
    await assertComplete(adapter);
  });

  on('a TTL index on a date deletes documents', async ({ adapter, db, documents }) => {
    await db.schema.create('sessions', { at: 'timestamp', n: 'integer' });
    const ttl = { mongoOptions: { expireAfterSeconds: 3600 } };
    await db.schema.createIndex('sessions', ['at'], ttl);
    const [, index] = await documents('sessions').indexes();
    assert.equal(index?.expireAfterSeconds, 3600);
    assert.equal((await rejectionOf(db.schema.createIndex('sessions', ['n'], ttl))).code, 'schema_invalid');
    assert.equal((await rejectionOf(db.schema.createIndex('sessions', ['at', 'n'], ttl))).code, 'schema_invalid');
    await assertComplete(adapter);
    await db.schema.dropIndex('sessions', 'sessions_at_idx');
    assert.equal((await documents('sessions').indexes()).length, 1);
  });

  on('a check is enforced, and the fields it reads cannot be dropped', async ({ adapter, db, documents }) => {
    await db.schema.create('orders', { total: 'integer' });
    await documents('orders').insertMany([{ total: 5 }, { total: -5 }]);
    const check = { name: 'positive', type: 'check', columns: [], expression: '{ "$gte": ["$total", 0] }' } as const;
    const broken = await rejectionOf(db.schema.addConstraint('orders', check));
    assert.match(broken.why ?? '', /^1 violate the check "positive": _id /);
    await documents('orders').deleteOne({ total: -5 });
    await db.schema.addConstraint('orders', check);
    assert.ok(!(await isAccepted(documents('orders'), { total: -1 })));
    assert.equal((await rejectionOf(db.schema.renameField('orders', 'total', 'sum'))).code, 'field_in_use');
    assert.equal((await rejectionOf(db.schema.dropField('orders', 'total'))).code, 'field_in_use');
    const key = {
      name: 'k',
      type: 'foreignKey',
      columns: ['total'],
      references: { table: 'orders', columns: ['total'] },
    } as const;
    const rejection = await rejectionOf(db.schema.addConstraint('orders', key));
    assert.ok(['not_supported', 'constraint_invalid'].includes(rejection.code), rejection.code);
    await assertComplete(adapter);
    await db.schema.dropConstraint('orders', 'positive');
    assert.ok(await isAccepted(documents('orders'), { total: -1 }));
  });

  on('a collection that svc did not create gets no validator', async ({ adapter, db, documents, fresh }) => {
    await documents('wild').insertMany([{ a: 1, b: 'x' }, { a: 'text', c: new Date() }, { 'd.e': 1 }]);
    await documents('wild').createIndex({ b: 1 }, { unique: true, sparse: true });
    assert.equal((await rejectionOf(db.schema.create('wild', { a: 'integer' }))).code, 'collection_exists');
    const model = await adapter.connection.introspect();
    assert.deepEqual(
      [...(model.get('wild')?.fields.values() ?? [])].map(({ name, type }) => `${name} ${type}`),
      ['_id json', 'a json', 'b string', 'c timestamp'],
    );
    const unsupported = await adapter.connection.unsupportedObjects();
    assert.ok(unsupported.some(({ what }) => what.includes('sample')));
    await db.schema.addField('wild', 'more', { type: 'integer', default: 1 });
    assert.ok(await isAccepted(documents('wild'), { a: new Date(), b: 5, more: 'anything' }));
    await fresh.on((client, name) =>
      client
        .db(name)
        .createCollection('own', { validator: { $jsonSchema: { required: ['x'], maxProperties: 5 } } })
        .catch(() => client.db(name).createCollection('own', { validator: { x: { $exists: true } } })),
    );
    await db.schema.addField('own', 'more', 'integer');
    assert.ok(!(await isAccepted(documents('own'), { more: 1 })));
    assert.ok(!(await isAccepted(documents('own'), { x: 1, more: 'x' })));
    assert.ok(await isAccepted(documents('own'), { x: 1, more: 1 }));
  });

  on('changes by other programs are detected', async ({ adapter, db, fresh }) => {
    await db.schema.create('users', { n: { type: 'integer', unique: true }, s: 'text' });
    await assertComplete(adapter);
    const differs = async () =>
      drift(adapter.connection, await historyModel(adapter), await adapter.connection.introspect());
    await fresh.on((client, name) => client.db(name).collection('users').dropIndex('n_key'));
    assert.deepEqual((await differs()).length, 1);
    await fresh.on((client, name) =>
      client.db(name).command({
        collMod: 'users',
        validator: { $jsonSchema: { bsonType: 'object', properties: { s: { bsonType: 'string' } } } },
      }),
    );
    assert.match((await differs()).join('; '), /\bn\b/);
  });

  on(
    'without validators only the registry has the fields',
    async ({ adapter, db, documents }) => {
      await db.schema.create('users', { n: { type: 'text', required: true }, mail: { type: 'text', unique: true } });
      assert.ok(await isAccepted(documents('users'), { n: 5 }));
      await documents('users').updateMany({}, { $set: { n: '5' } });
      await assertComplete(adapter);
      await db.schema.modifyField('users', 'n', { type: 'integer' });
      assert.deepEqual(
        (await documents('users').find().toArray()).map(({ n }) => n),
        [5],
      );
      await db.schema.renameField('users', 'n', 'm');
      await assertComplete(adapter);
    },
    { validators: false },
  );

  on('an update finds other spellings of a value, and an object in any order of its keys', async (fixture) => {
    const { db, documents } = fixture;
    await db.schema.create('t', {
      n: 'integer',
      j: 'json',
      u: 'uuid',
      t: { type: 'time', default: '10:00' },
      r: 'text',
    });
    const u = 'a987fbc9-4bed-3078-cf07-9141ba07c9f3';
    const given: Document[] = [
      { n: 1, j: { a: { x: 1, y: [{ p: 1, q: 2 }] }, b: null }, u, t: '10:00' },
      { n: 2, j: { b: null, a: { y: [{ q: 2, p: 1 }], x: 1 } }, u: u.toUpperCase(), t: '10:00:00' },
      { n: 3, j: { a: { x: 1, y: [{ p: 1, q: 2 }] } }, u: null, t: '10:00:00.000' },
      { n: 4, j: ['x'], t: '09:59:59.9' },
      { n: 5, j: 'x', t: '10:00:00.500' },
      { n: 6 },
    ];
    await documents('t').insertMany(given);
    const nested = { b: null, a: { x: 1, y: [{ q: 2, p: 1 }] } };
    const cases: [where: Record<string, Json>, found: number[]][] = [
      [{ j: nested }, [1, 2]],
      [{ j: { $in: [nested, 'x'] } }, [1, 2, 5]],
      [{ j: { $in: [] } }, []],
      [{ j: { $in: [null, ['x']] } }, [4, 6]],
      [{ j: { $ne: nested } }, [3, 4, 5, 6]],
      [{ j: 'x' }, [5]],
      [{ j: null }, [6]],
      [{ j: { $ne: null } }, [1, 2, 3, 4, 5]],
      [{ u: u.toUpperCase() }, [1, 2]],
      [{ u: { $ne: u } }, [3, 4, 5, 6]],
      [{ u: { $in: [u, null] } }, [1, 2, 3, 4, 5, 6]],
      [{ t: '10:00' }, [1, 2, 3]],
      [{ t: { $ne: '10:00:00' } }, [4, 5, 6]],
      [{ t: { $gt: '10:00' } }, [5]],
      [{ t: { $gte: '10:00:00.000' } }, [1, 2, 3, 5]],
      [{ t: { $lt: '10:00:00.000' } }, [4]],
      [{ t: { $lte: '10:00' } }, [1, 2, 3, 4]],
      [{ t: '10:00:00.5' }, [5]],
    ];
    for (const [at, [where, found]] of cases.entries()) {
      await db.update({ table: 't', data: { r: `case ${at}` }, where });
      const changed = await documents('t')
        .find({ r: `case ${at}` })
        .sort({ n: 1 })
        .toArray();
      assert.deepEqual(
        changed.map(({ n }) => n),
        found,
        JSON.stringify(where),
      );
    }
    const data = { j: nested, u: u.toUpperCase(), t: '10:00' };
    assert.deepEqual(await db.update({ table: 't', data: { j: nested }, where: { n: 1 } }), {
      matched: 1,
      modified: 0,
    });
    await db.update({ table: 't', data, where: { n: 4 } });
    const [{ u: kept, t } = assert.fail()] = await documents('t').find({ n: 4 }).toArray();
    assert.deepEqual([kept, t], [u, '10:00:00.000']);
  });

  on('an update runs in batches, and reports what it does not support', async ({ db, documents }) => {
    await db.schema.create('users', {
      first: 'text',
      full: 'text',
      n: { type: 'integer', required: true },
      at: 'timestamp',
    });
    await documents('users').insertMany(Array.from({ length: 35 }, (_, n) => ({ first: n % 2 ? `f${n}` : null, n })));
    const where = { n: { $lt: 30 } };
    const set = { full: { $CONCAT: ['first', ' no. ', 'n'] }, at: '2026-01-31T10:00:00Z' };
    assert.deepEqual(await db.update({ table: 'users', data: set, where }), { matched: 30, modified: 30 });
    assert.deepEqual(await db.update({ table: 'users', data: set, where }), { matched: 30, modified: 0 });
    assert.equal((await documents('users').findOne({ n: 3 }))?.full, 'f3 no. 3');
    assert.deepEqual((await documents('users').findOne({ n: 2 }))?.at, new Date('2026-01-31T10:00:00Z'));
    const own = { first: { $CONCAT: ['first', '!'] } };
    const other = { first: 'x', full: { $CONCAT: ['first', '!'] } };
    const swapped = { first: { $CONCAT: ['full'] }, full: { $CONCAT: ['first'] } };
    for (const data of [own, other, swapped]) {
      assert.equal((await rejectionOf(db.update({ table: 'users', data, all: true }))).code, 'update_invalid');
    }
    assert.equal((await documents('users').findOne({ n: 3 }))?.first, 'f3');
    assert.equal(
      (await rejectionOf(db.update({ table: 'users', data: { n: null }, all: true }))).code,
      'data_violates',
    );
    assert.deepEqual(await db.update({ table: 'users', data: { first: null }, where: { first: null } }), {
      matched: 18,
      modified: 0,
    });
  });

  on('an invalid date changes nothing, and "now" is the clock of the server', async ({ db, documents }) => {
    await db.schema.create('t', { at: 'timestamp', day: 'date', n: 'integer' });
    const old = new Date('2020-01-01T00:00:00Z');
    const late = new Date('2100-01-01T00:00:00Z');
    await documents('t').insertMany([{ at: old }, { at: late }]);
    const wrong = [
      { data: { n: 1 }, where: { at: { $gt: '31.12.2026' } } },
      { data: { n: 1 }, where: { at: { $in: ['2026-02-30T00:00:00Z'] } } },
      { data: { day: '2026-02-30' }, all: true },
    ];
    for (const one of wrong)
      assert.equal((await rejectionOf(db.update({ table: 't', ...one }))).code, 'update_invalid', JSON.stringify(one));
    assert.equal(await documents('t').countDocuments({ n: null, day: null }), 2);
    const fresh = await rejectionOf(db.schema.addField('t', 'more', { type: 'date', default: '2026-02-30' }));
    assert.equal(fresh.code, 'field_invalid');
    const moved = { table: 't', data: { at: 'now', day: 'now', n: 1 }, where: { at: { $lt: 'now' } } };
    assert.deepEqual(await db.update(moved), { matched: 1, modified: 1 });
    const found = await documents('t').findOne({ n: 1 });
    assert.ok(found?.at > old && found?.at < late, `${found?.at}`);
    assert.equal(found?.day.getTime(), Math.floor(found?.at.getTime() / 86_400_000) * 86_400_000);
  });

  on(
    'raw commands: a write error is an error, and session commands are rejected',
    async ({ adapter, db, documents }) => {
      await db.schema.create('users', { id: { type: 'integer', primaryKey: true } });
      let tag = 0;
      const raw = (statement: string) =>
        new MigrationEngine(adapter).up({
          tag: `2026010${++tag}_000000_raw`,
          name: 'raw',
          up: [{ type: 'raw', dialect: 'mongodb', statement }],
          down: [],
          irreversible: 'Raw.',
        });
      await raw(JSON.stringify({ insert: 'users', documents: [{ id: 1 }] }));
      const twice = await rejectionOf(raw(JSON.stringify({ insert: 'users', documents: [{ id: 1 }] })));
      assert.equal(twice.code, 'data_violates');
      for (const statement of ['users', '[]', '{}', '{ "commitTransaction": 1 }', '{ "ping": 1, "lsid": {} }']) {
        assert.equal((await rejectionOf(raw(statement))).code, 'migration_invalid', statement);
      }
      assert.equal(await documents('users').countDocuments(), 1);
    },
  );

  on('a raw command on admin applies to collections of this database', async ({ adapter, db, documents }) => {
    await db.schema.create('users', { n: 'integer' });
    const rename = (target: string, to: string) =>
      new MigrationEngine(adapter).up(
        migration(`20260101_000000_${target.replace(/\W/g, '_')}`)
          .raw('mongodb', JSON.stringify({ renameCollection: target, to, $db: 'admin' }))
          .build(),
      );
    for (const [from, to] of [
      ['other.users', 'people'],
      ['people', 'other.people'],
    ] as const) {
      const error = await rejectionOf(rename(from, to));
      assert.equal(error.code, 'migration_invalid');
      assert.match(`${error.message} ${error.why}`, /"other\.\w+", and the database is "svc_test_/);
    }
    await documents('users').insertOne({ n: 1 });
    await rename('users', 'people');
    assert.equal(await documents('people').countDocuments({}), 1);
    await rename(`${documents('people').dbName}.people`, 'users');
    assert.equal(await documents('users').countDocuments({}), 1);
  });
}
