import * as assert from 'node:assert/strict';
import fc from 'fast-check';
import { mergeSorted, type SortedList } from '../core/merge-sorted.ts';
import { test } from './kit/test.ts';

interface Item {
  readonly list: number;
  readonly value: number;
}

test('the merged lists equal the sorted items, and no more items are read than needed', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.uniqueArray(fc.nat(500), { maxLength: 60 }), { minLength: 1, maxLength: 16 }),
      fc.integer({ min: 1, max: 200 }),
      async (numbers, size) => {
        let read = 0;
        const sorted = numbers.map((list, at) =>
          [...list].sort((a, b) => a - b).map((value): Item => ({ list: at, value })),
        );
        const lists = sorted.map(
          (list): SortedList<Item> =>
            async (after, limit) => {
              const from = after === undefined ? 0 : list.indexOf(after) + 1;
              const items = list.slice(from, from + limit);
              read += items.length;
              return { items, more: items.length === limit };
            },
        );
        const found = await mergeSorted(lists, size, (a, b) => a.value - b.value);
        const all = sorted.flat().sort((a, b) => a.value - b.value);
        assert.deepEqual(
          found.map(({ value }) => value),
          all.slice(0, size).map(({ value }) => value),
        );
        const even = size / lists.length;
        const share = Math.ceil(even) + Math.ceil(3 * Math.sqrt(even));
        assert.ok(read <= found.length + lists.length * share, `${read} items were read for ${found.length}`);
      },
    ),
    { numRuns: 2000 },
  );
});
