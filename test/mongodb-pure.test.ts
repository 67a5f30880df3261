import * as assert from 'node:assert/strict';
import fc from 'fast-check';
import { BSON, Long, MongoServerError } from 'mongodb';
import { isOutage } from '../core/approval/backend.ts';
import type { Json } from '../core/json.ts';
import { MigrationHelpers } from '../core/migration/builder.ts';
import { apply } from '../core/schema/apply.ts';
import { defineField, toCreateCollection } from '../core/schema/define.ts';
import type { SchemaModel } from '../core/schema/model.ts';
import type { NamedFieldDefinition, ObjectOperation } from '../core/schema/operation.ts';
import { cassandra } from '../plugins/dialects/cassandra/dialect.ts';
import { dynamodb } from '../plugins/dialects/dynamodb/dialect.ts';
import { mariadb } from '../plugins/dialects/mariadb/dialect.ts';
import { introspect } from '../plugins/dialects/mongodb/catalog/introspect.ts';
import { canonicalExtendedJson, readFieldRule } from '../plugins/dialects/mongodb/catalog/read-fields.ts';
import { collectionFromEntry, registryEntry } from '../plugins/dialects/mongodb/catalog/registry.ts';
import type { MongoStep } from '../plugins/dialects/mongodb/compile/step.ts';
import { fieldRule, validatorOf } from '../plugins/dialects/mongodb/compile/validator.ts';
import { toSvcError } from '../plugins/dialects/mongodb/connection/errors.ts';
import type { MongoServer } from '../plugins/dialects/mongodb/connection/server.ts';
import { settingsOf } from '../plugins/dialects/mongodb/connection/settings.ts';
import { mongodb } from '../plugins/dialects/mongodb/dialect.ts';
import { mysql } from '../plugins/dialects/mysql/dialect.ts';
import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { arbitraryMoves } from './kit/arbitrary-schema.ts';
import { test } from './kit/test.ts';
import { applyMoves, CHOICES, FIELDS } from './suites/random-schema.ts';

const server = { bson: BSON };
const definitions = FIELDS.filter(({ type, precision }) => type !== 'decimal' || precision !== undefined);

test('a rule that svc creates reads back as a field with the same rule', () => {
  fc.assert(
    fc.property(fc.constantFrom(...definitions), fc.boolean(), (definition, required) => {
      const { required: _, nullable: __, default: ___, ...plain } = definition;
      const field = defineField('f', { ...plain, ...(required && { required }) }, 't');
      const rule = canonicalExtendedJson(server, fieldRule(field));
      const read = readFieldRule(server, 'f', rule, field.required === true);
      // Digits of a decimal are not read out of its bounds.
      if (field.precision === undefined) assert.equal(read.inexact, false, JSON.stringify([field, rule]));
      assert.equal(read.field.required, field.required);
      if (!read.inexact) assert.deepEqual(canonicalExtendedJson(server, fieldRule(read.field)), rule);
    }),
  );
});

test('a registry entry restores the collection', () => {
  fc.assert(
    fc.property(arbitraryMoves(25), (list) => {
      for (const collection of applyMoves(list).model.values()) {
        assert.deepEqual(collectionFromEntry(collection.name, registryEntry(collection)), collection);
      }
    }),
    { numRuns: 50 },
  );
});

test('every step is JSON and repeatable, and the last of an operation has the registry entry', () => {
  const choices = { ...CHOICES, check: (field: string) => JSON.stringify({ $ne: [`$${field}`, null] }), sql: true };
  fc.assert(
    fc.property(arbitraryMoves(25, choices), (list) => {
      let model: SchemaModel = new Map();
      for (const operation of applyMoves(list, new Map(), choices).operations) {
        let statements: ReturnType<typeof mongodb.compile>;
        let after: SchemaModel;
        try {
          after = apply(model, operation);
          statements = mongodb.compile(operation, model);
        } catch {
          continue;
        }
        for (const { run, idempotent, transactional, text } of statements) {
          assert.deepEqual(JSON.parse(JSON.stringify(run)), run, text);
          assert.equal(idempotent === true, run.kind !== 'create');
          assert.equal(transactional, false);
        }
        const last = statements.at(-1)?.run as MongoStep & { readonly entry?: string };
        if (operation.type === 'renameCollection') assert.equal(last.entry, registryEntry(after.get(operation.to)!));
        else if (operation.type !== 'dropCollection' && operation.type !== 'raw') {
          const name = operation.type === 'createCollection' ? operation.name : operation.collection;
          assert.equal(last.entry, registryEntry(after.get(name)!));
        }
        model = after;
      }
    }),
    { numRuns: 50 },
  );
});

test('an unavailable primary is an outage, reported by the primary or by a router', () => {
  const ofCode = (code: number, errorLabels: string[] = []) =>
    new MongoServerError({ message: 'from the server', code, errorLabels });
  for (const code of [6, 7, 43, 89, 91, 133, 134, 189, 10107, 11600]) {
    assert.ok(isOutage(toSvcError(ofCode(code))), `${code}`);
  }
  assert.ok(isOutage(toSvcError(ofCode(999, ['RetryableWriteError']))));
  assert.ok(!isOutage(toSvcError(ofCode(999))));
});

test('equal databases have the same identity, however the URL is written', () => {
  for (const url of [
    'mongodb://a:27017,b:27018/shop',
    'mongodb://user:p%40ss@B:27018,A/shop?replicaSet=r',
    'mongodb://b:27018,a/shop#x',
  ]) {
    assert.equal(mongodb.identify(url), 'mongodb:a:27017,b:27018/shop');
  }
  assert.equal(mongodb.identify('mongodb+srv://cluster.example/shop'), 'mongodb:cluster.example/shop');
  assert.notEqual(mongodb.identify('mongodb://a/shop'), mongodb.identify('mongodb://a/shop2'));
});

test('an index, a key and a unique field cannot have the same name', () => {
  const table = apply(new Map(), {
    type: 'createCollection',
    name: 't',
    fields: [{ name: 'a', type: 'text', unique: true }],
  });
  assert.throws(
    () =>
      mongodb.compile(
        { type: 'createIndex', collection: 't', index: 'a_key', columns: [{ name: 'a', order: 'desc' }] },
        table,
      ),
    /two indexes "a_key"/,
  );
});

/** A table adopted with a validator of another program. */
function adopted(validator: Json, ...fields: readonly NamedFieldDefinition[]): SchemaModel {
  const options = { mongoOptions: { validator: validator as Readonly<Record<string, Json>> } };
  return apply(new Map(), { type: 'createCollection', name: 't', fields, options });
}

test('a field that the validator of another program allows other types has no rule of its own', () => {
  const properties = { owner: { bsonType: 'objectId' }, at: { type: ['string', 'null'] }, n: { bsonType: 'int' } };
  const model = adopted(
    { $and: [{ $jsonSchema: { properties } }, { n: { $gt: 0 } }] },
    { name: '_id', type: 'json', primaryKey: true },
    { name: 'owner', type: 'json', required: true },
    { name: 'at', type: 'timestamp' },
    { name: 'n', type: 'integer' },
  );
  const { $and: [own] = [] } = validatorOf(model.get('t')!) as { readonly $and: readonly Json[] };
  const n = fieldRule({ name: 'n', type: 'integer' });
  assert.deepEqual(own, { $jsonSchema: { bsonType: 'object', required: ['owner'], properties: { n } } });
  const toText = { type: 'modifyField', collection: 't', field: 'owner', changes: { type: 'string' } } as const;
  assert.throws(() => mongodb.compile(toText, model), /"t.owner" cannot be modified: a validator uses it/);
});

test('a validator that allows no further fields rejects a new one before anything is changed', () => {
  const id = { name: '_id', type: 'json', primaryKey: true } as const;
  const closed = {
    $jsonSchema: { properties: { _id: {}, n: { bsonType: 'int' }, m: {} }, additionalProperties: false },
  };
  const model = adopted(closed, id, { name: 'n', type: 'integer' });
  const add = (name: string) => ({ type: 'addField', collection: 't', field: { name, type: 'integer' } }) as const;
  assert.throws(() => mongodb.compile(add('other'), model), /"t" cannot have the field "other"/);
  assert.ok(mongodb.compile(add('m'), model).length > 0);
});

test('the size of a capped collection is required on MongoDB; other engines reject the options', () => {
  const fields = [{ name: '_id', type: 'json', primaryKey: true }] as const;
  const capped = { type: 'createCollection', name: 't', fields, options: { mongoOptions: { capped: true } } } as const;
  assert.throws(() => mongodb.compile(capped, new Map()), /"t" is capped but has no size/);
  for (const dialect of [postgresql, mysql, mariadb, dynamodb, cassandra]) {
    const elsewhere = { ...capped, fields: [{ name: 'id', type: 'integer', primaryKey: true }] } as const;
    assert.throws(() => dialect.compile(elsewhere, new Map()), /cannot use mongoOptions/, dialect.name);
    const problems = MigrationHelpers.problems({ tag: '1', up: [elsewhere], down: [] }, dialect);
    assert.ok(problems.length > 0 && !problems.join(' ').includes('size'), problems.join(' '));
  }
});

test('no validator requires the fields of the option timestamps, which nothing fills in', () => {
  const options = { timestamps: true };
  const model = apply(new Map(), { type: 'createCollection', name: 't', fields: [], options });
  assert.deepEqual(validatorOf(model.get('t')!), {
    $jsonSchema: {
      bsonType: 'object',
      properties: { createdAt: { bsonType: 'date' }, updatedAt: { bsonType: 'date' } },
    },
  });
});

test('what DocumentDB lacks is read as mongod lists it: capped, time series, hidden indexes and collations', async () => {
  const listed = [
    { name: 'log', type: 'collection', options: { capped: true, size: 4096, max: 10 } },
    {
      name: 'weather',
      type: 'timeseries',
      options: {
        timeseries: { timeField: 'at', granularity: 'hours', bucketMaxSpanSeconds: 2_592_000 },
        expireAfterSeconds: new Long(60),
      },
    },
    {
      name: 'orders',
      type: 'collection',
      options: {
        clusteredIndex: { v: 2, key: { _id: 1 }, unique: true, name: 'by id' },
        collation: { locale: 'fr_CA', backwards: true, version: '57.1' },
        changeStreamPreAndPostImages: { enabled: true },
      },
    },
    { name: 'seen', type: 'view', options: { viewOn: 'log', pipeline: [] } },
    { name: 'system.buckets.weather', type: 'collection', options: {} },
  ];
  const indexes = [
    { name: '_id_', key: { _id: 1 } },
    { name: 'hidden', key: { line: 1 }, hidden: true },
    { name: 'german', key: { line: -1 }, collation: { locale: 'de', strength: 3, version: '57.1' } },
  ];
  const all = <T>(values: readonly T[]) => ({ toArray: async () => values });
  const sampled = [{ _id: { name: '_id', type: 'objectId' } }, { _id: { name: 'line', type: 'string' } }];
  const collection = () => ({ find: () => all([]), listIndexes: () => all(indexes), aggregate: () => all(sampled) });
  const mongod = { bson: BSON, db: { listCollections: () => all(listed), collection } } as unknown as MongoServer;
  const { model, unsupportedObjects } = await introspect(mongod, settingsOf({}));
  assert.deepEqual([...model.keys()], ['log', 'orders', 'weather']);
  const log = model.get('log')!;
  const mongoOptions = { capped: true, size: 4096, max: 10, validationLevel: 'off' };
  assert.deepEqual(log.options, { mongoOptions });
  assert.deepEqual(
    [...log.indexes.values()].map(({ name, mongoOptions: options }) => [name, options]),
    [
      ['hidden', { key: { line: 1 }, hidden: true }],
      ['german', { key: { line: -1 }, collation: { locale: 'de', strength: 3 } }],
    ],
  );
  const weather = model.get('weather')!;
  assert.deepEqual(weather.options, {
    mongoOptions: { timeseries: { timeField: 'at', granularity: 'hours' }, expireAfterSeconds: 60 },
  });
  assert.deepEqual([weather.fields.get('at')?.required, weather.fields.get('_id')?.primaryKey], [true, undefined]);
  const orders = model.get('orders')!;
  assert.deepEqual(orders.options.mongoOptions, {
    clusteredIndex: { key: { _id: 1 }, unique: true, name: 'by id' },
    collation: { locale: 'fr_CA', backwards: true },
    changeStreamPreAndPostImages: { enabled: true },
    validationLevel: 'off',
  });
  // Without a collation of its own, an index of a collection with one would get that.
  assert.deepEqual(orders.indexes.get('hidden')?.mongoOptions?.collation, { locale: 'simple' });
  assert.deepEqual(
    unsupportedObjects.map(({ collection: name, what }) => `${name} ${what}`),
    ['log', 'orders', 'weather'].map(
      (name) => `${name} has no validator: its fields are read from a sample of its documents`,
    ),
  );
  const [created] = mongodb
    .compile(toCreateCollection(log), new Map())
    .map(({ run }) => 'options' in run && run.options);
  assert.deepEqual(created, { capped: true, size: 4096, max: 10 });
  const [series] = mongodb.compile(toCreateCollection(weather), new Map()).map(({ run }) => run);
  assert.deepEqual(series && 'options' in series && [series.options, series.validator], [
    { timeseries: { timeField: 'at', granularity: 'hours' }, expireAfterSeconds: 60 },
    undefined,
  ]);
  const add = { type: 'addField', collection: 'weather', field: { name: 'n', type: 'integer', default: 5 } } as const;
  assert.throws(() => mongodb.compile(add, model), /cannot change the fields of the time series/);
});

test('a view is the command that creates it, and is changed in place', () => {
  const text = (viewOn: string, more: object = {}) => JSON.stringify({ create: 'v', viewOn, pipeline: [], ...more });
  const compile = (operation: object) =>
    (mongodb.objects?.compile({ kind: 'view', name: 'v', ...operation } as ObjectOperation) ?? []).map(
      ({ run }) => run.kind,
    );
  assert.deepEqual(compile({ type: 'createObject', definition: text('a') }), ['createView']);
  assert.deepEqual(compile({ type: 'replaceObject', definition: text('b'), was: text('a') }), ['changeView']);
  const german = text('a', { collation: { locale: 'de' } });
  assert.deepEqual(compile({ type: 'replaceObject', definition: german, was: text('a') }), ['dropView', 'createView']);
  for (const wrong of ['[]', text('a', { create: 'w' }), text('a', { validator: {} }), '{"create": "v"}'])
    assert.throws(() => compile({ type: 'createObject', definition: wrong }), /does not create it/, wrong);
});

test('the printed command of a validator has its level and its action', () => {
  const options = { mongoOptions: { validationLevel: 'moderate', validationAction: 'warn' } };
  const model = apply(new Map(), { type: 'createCollection', name: 't', fields: [], options });
  const add = { type: 'addField', collection: 't', field: { name: 'n', type: 'integer' } } as const;
  const [{ text } = assert.fail()] = mongodb.compile(add, model);
  assert.match(text, /"validationLevel":"moderate","validationAction":"warn"/);
});
