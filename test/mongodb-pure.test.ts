import * as assert from 'node:assert/strict';
import fc from 'fast-check';
import { BSON, MongoServerError } from 'mongodb';
import { isOutage } from '../core/approval/backend.ts';
import { apply } from '../core/schema/apply.ts';
import { defineField } from '../core/schema/define.ts';
import type { SchemaModel } from '../core/schema/model.ts';
import { canonicalExtendedJson, readFieldRule } from '../plugins/dialects/mongodb/catalog/read-fields.ts';
import { collectionFromEntry, registryEntry } from '../plugins/dialects/mongodb/catalog/registry.ts';
import type { MongoStep } from '../plugins/dialects/mongodb/compile/step.ts';
import { fieldRule } from '../plugins/dialects/mongodb/compile/validator.ts';
import { toSvcError } from '../plugins/dialects/mongodb/connection/errors.ts';
import { mongodb } from '../plugins/dialects/mongodb/dialect.ts';
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
