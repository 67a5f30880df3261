import * as assert from 'node:assert/strict';
import fc from 'fast-check';
import { BSON, MongoServerError } from 'mongodb';
import { isOutage } from '../core/approval/home.ts';
import { apply } from '../core/schema/apply.ts';
import { defineField } from '../core/schema/define.ts';
import type { SchemaModel } from '../core/schema/model.ts';
import { mongodb } from '../plugins/dialects/mongodb/dialect.ts';
import { refusal } from '../plugins/dialects/mongodb/errors.ts';
import { canonical, readRule } from '../plugins/dialects/mongodb/read-rule.ts';
import { ruleOf } from '../plugins/dialects/mongodb/rule.ts';
import { collectionOfEntry, entryOf, type Step } from '../plugins/dialects/mongodb/step.ts';
import { moves } from './kit/arbitrary.ts';
import { CHOICES, FIELDS, play } from './kit/moves.ts';
import { test } from './kit/test.ts';

const server = { bson: BSON };
const definitions = FIELDS.filter(({ type, precision }) => type !== 'decimal' || precision !== undefined);

test('a rule that svc makes reads as a field that makes it again', () => {
  fc.assert(
    fc.property(fc.constantFrom(...definitions), fc.boolean(), (definition, required) => {
      const { required: _, nullable: __, default: ___, ...plain } = definition;
      const field = defineField('f', { ...plain, ...(required && { required }) }, 't');
      const rule = canonical(server, ruleOf(field));
      const read = readRule(server, 'f', rule, field.required === true);
      // Digits of a decimal are not read out of its bounds.
      if (field.precision === undefined) assert.equal(read.inexact, false, JSON.stringify([field, rule]));
      assert.equal(read.field.required, field.required);
      if (!read.inexact) assert.deepEqual(canonical(server, ruleOf(read.field)), rule);
    }),
  );
});

test('what the registry keeps of a collection is the collection', () => {
  fc.assert(
    fc.property(moves(25), (list) => {
      for (const collection of play(list).model.values()) {
        assert.deepEqual(collectionOfEntry(collection.name, entryOf(collection)), collection);
      }
    }),
    { numRuns: 50 },
  );
});

test('every step is JSON, may run again, and the last of an operation knows the model after it', () => {
  const choices = { ...CHOICES, check: (field: string) => JSON.stringify({ $ne: [`$${field}`, null] }), sql: true };
  fc.assert(
    fc.property(moves(25, choices), (list) => {
      let model: SchemaModel = new Map();
      for (const operation of play(list, new Map(), choices).operations) {
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
          assert.equal(idempotent === true, (run as { do?: string }).do !== 'create');
          assert.equal(transactional, false);
        }
        const last = statements.at(-1)?.run as unknown as Step & { readonly entry?: string };
        if (operation.type === 'renameCollection') assert.equal(last.entry, entryOf(after.get(operation.to)!));
        else if (operation.type !== 'dropCollection' && operation.type !== 'raw') {
          const name = operation.type === 'createCollection' ? operation.name : operation.collection;
          assert.equal(last.entry, entryOf(after.get(name)!));
        }
        model = after;
      }
    }),
    { numRuns: 50 },
  );
});

test('a primary that is away is an outage, whether it says so itself or a router does of a shard', () => {
  const ofCode = (code: number, errorLabels: string[] = []) =>
    new MongoServerError({ message: 'told by the server', code, errorLabels });
  for (const code of [6, 7, 43, 89, 91, 133, 134, 189, 10107, 11600]) {
    assert.ok(isOutage(refusal(ofCode(code))), `${code}`);
  }
  assert.ok(isOutage(refusal(ofCode(999, ['RetryableWriteError']))));
  assert.ok(!isOutage(refusal(ofCode(999))));
});

test('a database is one however its URL is written', () => {
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

test('an index, a key and a unique field cannot take one name', () => {
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
