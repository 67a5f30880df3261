import * as assert from 'node:assert/strict';
import { applyInPlace } from '../core/schema/apply.ts';
import type { Collection } from '../core/schema/model.ts';
import { MutableSchema } from '../core/schema/mutable-schema.ts';
import { test } from './kit/test.ts';

const namesOf = ({ name, indexes }: Collection): readonly string[] => [name, ...indexes.keys()];

test('the index of names follows each operation', () => {
  const model = new MutableSchema();
  const tablesNamed = (...names: string[]) => names.map((name) => model.tablesNamed(name, namesOf));
  assert.deepEqual(tablesNamed('user', 'person'), [[], []]);

  applyInPlace(model, { type: 'createCollection', name: 'user', fields: [{ name: 'id', type: 'integer' }] });
  applyInPlace(model, { type: 'createIndex', collection: 'user', index: 'by_id', columns: [{ name: 'id' }] });
  assert.deepEqual(tablesNamed('user', 'by_id'), [['user'], ['user']]);

  applyInPlace(model, { type: 'renameCollection', collection: 'user', to: 'person' });
  assert.deepEqual(tablesNamed('user', 'person', 'by_id'), [[], ['person'], ['person']]);

  applyInPlace(model, { type: 'dropIndex', collection: 'person', index: 'by_id' });
  assert.deepEqual(tablesNamed('person', 'by_id'), [['person'], []]);
  assert.deepEqual(
    model.tablesNamed('PERSON', ({ name }) => [name.toUpperCase()]),
    ['person'],
  );

  applyInPlace(model, { type: 'dropCollection', collection: 'person' });
  assert.deepEqual(tablesNamed('person'), [[]]);
});
