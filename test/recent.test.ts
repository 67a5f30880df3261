import * as assert from 'node:assert/strict';
import { Recent } from '../core/recent.ts';
import { test } from './kit/test.ts';

test('the entries that were set or read last are kept', () => {
  const recent = new Recent<number>(2);
  recent.set('a', 1);
  recent.set('b', 2);
  assert.equal(recent.get('a'), 1);
  recent.set('c', 3);
  assert.deepEqual(
    ['a', 'b', 'c'].map((key) => recent.get(key)),
    [1, undefined, 3],
  );
  recent.set('c', 4);
  recent.delete('a');
  assert.deepEqual(
    ['a', 'c'].map((key) => recent.get(key)),
    [undefined, 4],
  );
});
