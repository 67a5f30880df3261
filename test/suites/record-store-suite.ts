import * as assert from 'node:assert/strict';
import type { StorageBackend } from '../../core/approval/backend.ts';
import { isSvcError } from '../../core/errors.ts';
import { anyDefinition, CLOCK, type PageQuery, type RecordDefinition, type RecordStore } from '../../core/records.ts';
import { suite, type TestFunction } from './suite.ts';
import type { StoreUnderTest } from './test-database.ts';

/** Texts that an engine may take for the same: by case, by a space at the end, and by Unicode normalization. */
const ALIKE = ['a', 'A', 'a ', 'á', '\u00e9', 'e\u0301'] as const;

/**
 * Tests that a record store fulfills its contract, on which history, leases, approvals and executions are built. The
 * store of a dialect is created as `{ connect: () => dialect.connect(url, {}), drop }`.
 */
export function recordStoreSuite(test: TestFunction, store: StoreUnderTest): void {
  suite(test, store, (declare) => {
    const declareCase = (
      name: string,
      promise: string,
      body: (connect: () => Promise<StorageBackend>) => Promise<void>,
    ): void => {
      const runCase = async () => {
        const testStore = await store.createStore();
        const backends: StorageBackend[] = [];
        try {
          await body(async () => {
            const backend = await testStore.connect();
            backends.push(backend);
            return backend;
          });
        } finally {
          for (const backend of backends) await backend.close();
          await testStore.drop();
        }
      };
      declare(name, runCase, { promise });
    };

    declareCase(
      'of concurrent writers, one wins',
      'Of concurrent inserts of a key, one gets `inserted` and the others `exists`. Of concurrent replacements of a version, one gets `replaced` and the others `stale`. Versions count from 1. A missing record is `missing`.',
      async (connect) => {
        const backends = [await connect(), await connect(), await connect()];
        await backends[0]!.ensureTables([anyDefinition(things)]);
        const stores = backends.map((backend) => backend.records(things));
        const inserted = await Promise.all(stores.map((one) => one.insert(thing('a', 1))));
        assert.deepEqual(inserted.sort(), ['exists', 'exists', 'inserted']);
        for (let version = 1; version < 20; version += 1) {
          const outcomes = await Promise.all(stores.map((one) => one.replace('a', version, thing('a', version))));
          assert.deepEqual(outcomes.sort(), ['replaced', 'stale', 'stale']);
        }
        assert.equal((await stores[0]!.get('a'))?.version, 20);
        assert.equal(await stores[0]!.remove('a', 3), 'stale');
        assert.equal(await stores[0]!.remove('a', 20), 'removed');
        assert.equal(await stores[0]!.remove('a', 20), 'missing');
        assert.equal(await stores[0]!.replace('a', 20, thing('a', 1)), 'missing');
      },
    );

    declareCase(
      'a record reads back unchanged',
      'Every column comes back with the type and value that were written, dates to the millisecond and JSON of any depth. CLOCK becomes the time of the engine.',
      async (connect) => {
        const backend = await connect();
        await backend.ensureTables([anyDefinition(things)]);
        const records = backend.records(things);
        const startTime = new Date(await backend.now());
        const written: Thing = {
          id: `it's "a" \\ 😀 \n%_`,
          kind: "'; drop table x --",
          size: -2_147_483_648,
          took: 0.1,
          big: Number.MAX_SAFE_INTEGER,
          done: false,
          expires: new Date(startTime.getTime() + 123),
          body: { a: [1, "it's", null, { __proto__x: 'y' }], '': 'ß', b: false },
        };
        await records.insert(written);
        assert.deepEqual(await records.get(written.id), { record: written, version: 1 });
        await records.insert(thing('plain', 1));
        assert.deepEqual((await records.get('plain'))?.record, thing('plain', 1));
        assert.equal(await records.replace('plain', 1, { ...thing('plain', 2), expires: CLOCK }), 'replaced');
        const stored = (await records.get('plain'))?.record.expires;
        assert.ok(stored instanceof Date && stored >= startTime && stored <= (await backend.now()), `${stored}`);
      },
    );

    declareCase(
      'keys that look alike are different records',
      'Keys, and the values of an index, are equal only if they have the same characters: not in another case, with a space at the end or in another Unicode normalization.',
      async (connect) => {
        const backend = await connect();
        await backend.ensureTables([anyDefinition(things)]);
        const records = backend.records(things);
        for (const [size, key] of ALIKE.entries()) {
          const outcome = await records.insert(thing(key, size, key));
          assert.equal(outcome, 'inserted', `${JSON.stringify(key)}, next to ${JSON.stringify(ALIKE.slice(0, size))}`);
        }
        const assertFound = async (sizes: readonly (number | undefined)[], when: string) => {
          for (const [at, key] of ALIKE.entries()) {
            const what = `${JSON.stringify(key)}, ${when}`;
            const found = (await records.get(key))?.record;
            assert.deepEqual(
              [found?.id, found?.size],
              sizes[at] === undefined ? [undefined, undefined] : [key, sizes[at]],
              what,
            );
            const { records: page } = await records.page('bySize', { equals: { kind: key }, limit: 10 });
            assert.deepEqual(
              page.map(({ record }) => record.id),
              sizes[at] === undefined ? [] : [key],
              `a page of ${what}`,
            );
          }
        };
        const sizes: (number | undefined)[] = ALIKE.map((_, at) => at);
        await assertFound(sizes, 'inserted');
        for (const [at, key] of ALIKE.entries()) {
          if (at % 2 === 0) {
            assert.equal(await records.remove(key, 1), 'removed', JSON.stringify(key));
            sizes[at] = undefined;
          } else {
            assert.equal(await records.replace(key, 1, thing(key, 100 + at, key)), 'replaced', JSON.stringify(key));
            sizes[at] = 100 + at;
          }
          await assertFound(sizes, `after ${JSON.stringify(key)} was ${at % 2 === 0 ? 'removed' : 'replaced'}`);
        }
      },
    );

    declareCase(
      'a deadline counts by the clock of the engine',
      '`replace` with `before` is `late` if that column of the stored record is not after the time of the engine, checked in the same statement. Another version is `stale`, late or not.',
      async (connect) => {
        const backend = await connect();
        await backend.ensureTables([anyDefinition(things)]);
        const records = backend.records(things);
        const future = new Date((await backend.now()).getTime() + 60_000);
        const guard = { before: 'expires' } as const;
        await records.insert({ ...thing('a', 1), expires: future });
        assert.equal(await records.replace('a', 1, { ...thing('a', 2), expires: new Date(0) }, guard), 'replaced');
        assert.equal(await records.replace('a', 2, thing('a', 3), guard), 'late');
        assert.equal(await records.replace('a', 1, thing('a', 3), guard), 'stale');
        assert.equal((await records.get('a'))?.record.size, 2);
      },
    );

    declareCase(
      'a store without a table is empty',
      'Without a table, `get` returns undefined and a page is empty, and reading creates nothing. `ensureTables` can be repeated, and adds the columns of a newer definition.',
      async (connect) => {
        const backend = await connect();
        const emptyRecords = backend.records(things);
        assert.equal(await emptyRecords.get('a'), undefined);
        assert.deepEqual((await emptyRecords.page('bySize', { equals: { kind: 'k' }, limit: 10 })).records, []);
        await backend.ensureTables([anyDefinition(things)]);
        await backend.ensureTables([anyDefinition(things)]);
        await emptyRecords.insert(thing('a', 1));
        const newer: RecordDefinition<Thing & { readonly note: string | null }> = {
          ...things,
          columns: { ...things.columns, note: { type: 'text', nullable: true } },
        };
        const later = await connect();
        await later.ensureTables([anyDefinition(newer)]);
        assert.equal(await later.records(newer).replace('a', 1, { ...thing('a', 2), note: 'new' }), 'replaced');
        assert.deepEqual((await later.records(newer).get('a'))?.record, { ...thing('a', 2), note: 'new' });
      },
    );

    declareCase(
      'pages contain every record once, in both directions',
      'Pages of an index contain every record with these values once, ordered by the sort column and then by the UTF-8 bytes of the key, in either direction. `from` and `to` are inclusive, `columns` omits the others, and the last page has no cursor.',
      async (connect) => {
        const backend = await connect();
        await backend.ensureTables([anyDefinition(things)]);
        const records = backend.records(things);
        for (let n = 0; n < 25; n += 1) await records.insert(thing(`k${n}`, n % 7, n === 24 ? 'other' : 'k'));
        const ascending = await readAllPages(records, { equals: { kind: 'k' }, limit: 5 });
        const descending = await readAllPages(records, { equals: { kind: 'k' }, limit: 5, direction: 'desc' });
        assert.equal(new Set(ascending).size, 24);
        const sorted = Array.from({ length: 24 }, (_, n) => n).sort(
          (a, b) => (a % 7) - (b % 7) || (`k${a}` < `k${b}` ? -1 : 1),
        );
        assert.deepEqual(
          ascending,
          sorted.map((n) => `k${n}`),
        );
        assert.deepEqual(descending, [...ascending].reverse());
        const bounded = await records.page('bySize', {
          equals: { kind: 'k' },
          from: 2,
          to: 3,
          limit: 1000,
          columns: ['size'],
        });
        assert.equal(bounded.cursor, undefined);
        assert.deepEqual(
          bounded.records.map(({ record }) => record),
          [2, 2, 2, 2, 3, 3, 3].map((size) => ({ size })),
        );
        // In UTF-16, which JavaScript compares, the last two change places.
        const keys = ['a', 'é', '\uFFFD', '\u{1F600}'];
        for (const key of keys.toReversed()) await records.insert(thing(key, 3, 'bytes'));
        for (const bounds of [{}, { from: 3, to: 3 }]) {
          const query = { equals: { kind: 'bytes' }, limit: 3, ...bounds };
          const message = `records up to 3 by key, in the order of its UTF-8 bytes, with ${JSON.stringify(bounds)}`;
          assert.deepEqual(await readAllPages(records, query), keys, message);
          assert.deepEqual(await readAllPages(records, { ...query, direction: 'desc' }), keys.toReversed(), message);
        }
      },
    );

    declareCase(
      'a page of several values is one list',
      'With `anyOf`, pages contain the records with any of these values once, in the order of the sort column and of the key whatever values they have. With `unconfirmed`, a page has at least the keys of the first of them.',
      async (connect) => {
        const backend = await connect();
        await backend.ensureTables([anyDefinition(things)]);
        const records = backend.records(things);
        for (let n = 0; n < 40; n += 1)
          await records.insert(thing(`k${n}`, n % 7, n % 5 === 0 ? 'rare' : `of ${n % 2}`));
        const found = Array.from({ length: 40 }, (_, n) => n)
          .filter((n) => n % 5 === 0 || n % 2 === 1)
          .sort((a, b) => (a % 7) - (b % 7) || (`k${a}` < `k${b}` ? -1 : 1))
          .map((n) => `k${n}`);
        const anyOf = [{ kind: 'of 1' }, { kind: 'rare' }, { kind: 'none' }];
        for (const limit of [1, 5, 1000]) {
          assert.deepEqual(await readAllPages(records, { anyOf, limit }), found);
          assert.deepEqual(await readAllPages(records, { anyOf, limit, direction: 'desc' }), [...found].reverse());
          const unconfirmed = await records.page('bySize', { anyOf, limit, unconfirmed: true });
          assert.deepEqual(
            unconfirmed.records.map(({ record }) => record.id),
            found.slice(0, limit),
          );
        }
        const rare = await records.page('bySize', { anyOf: [{ kind: 'rare' }], limit: 1000 });
        assert.equal(rare.records.length, 8);
        const bounded = await records.page('bySize', { anyOf, from: 2, to: 3, limit: 4, columns: ['kind'] });
        assert.deepEqual(
          bounded.records.map(({ record, version }) => [record, version]),
          found
            .filter((id) => [2, 3].includes(Number(id.slice(1)) % 7))
            .slice(0, 4)
            .map((id) => [{ kind: Number(id.slice(1)) % 5 === 0 ? 'rare' : 'of 1' }, 1]),
        );
      },
    );

    declareCase(
      'an invalid page query is an error',
      'A limit outside 1 to 1,000 and an unknown cursor are rejected with `value_invalid`.',
      async (connect) => {
        const backend = await connect();
        await backend.ensureTables([anyDefinition(things)]);
        const records = backend.records(things);
        for (const wrong of [{ limit: 0 }, { limit: 1001 }, { limit: 1.5 }, { limit: 5, cursor: 'guess' }]) {
          await assert.rejects(
            async () => records.page('bySize', { equals: { kind: 'k' }, ...wrong }),
            (error) => isSvcError(error) && error.code === 'value_invalid',
            JSON.stringify(wrong),
          );
        }
      },
    );
  });
}

async function readAllPages(records: RecordStore<Thing>, query: PageQuery<Thing>): Promise<string[]> {
  const keys: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await records.page('bySize', { ...query, ...(cursor !== undefined && { cursor }) });
    keys.push(...page.records.map(({ record }) => record.id));
    cursor = page.cursor;
  } while (cursor !== undefined);
  return keys;
}

/** A record with a column of each type. */
export interface Thing {
  readonly id: string;
  readonly kind: string;
  readonly size: number;
  readonly took: number;
  readonly big: number;
  readonly done: boolean;
  readonly expires: Date | null;
  readonly body: object | null;
}

export const things: RecordDefinition<Thing> = {
  collection: '_svc_things',
  key: 'id',
  columns: {
    id: { type: 'string' },
    kind: { type: 'string' },
    size: { type: 'integer' },
    took: { type: 'double' },
    big: { type: 'bigint' },
    done: { type: 'boolean' },
    expires: { type: 'timestamp', nullable: true },
    body: { type: 'json', nullable: true },
  },
  indexes: [{ name: 'bySize', equals: ['kind'], sort: 'size' }],
};

export const thing = (id: string, size: number, kind = 'k'): Thing => ({
  id,
  kind,
  size,
  took: 1.5,
  big: 2 ** 40,
  done: true,
  expires: null,
  body: { a: [1, "it's", null] },
});
