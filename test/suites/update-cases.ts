import * as assert from 'node:assert/strict';
import { inspect } from 'node:util';
import type { DeclareConnectedCase } from './dialect-case.ts';
import type { DialectUnderTest, Row } from './dialect-under-test.ts';
import { runnerOf } from './run-operations.ts';
import { ID, type SupportedOperations } from './supported-operations.ts';

/** Cases about rows that `count` and `update` find. */
export function updateCases(
  on: DeclareConnectedCase,
  { dialect }: DialectUnderTest,
  { create }: SupportedOperations,
): void {
  const run = runnerOf(dialect);

  on(
    'rows and values are counted',
    '`count` counts rows up to its limit. `countValues`, if there is one, counts those in which the field is not null. `estimateCount`, if there is one, may be out of date.',
    async ({ connection, engine }) => {
      const model = await run(connection, [create('counted', [ID, { name: 'a', type: 'integer' }])]);
      const rows: Row[] = [{ id: 1, a: 1 }, { id: 2, a: null }, { id: 3, a: 0 }, { id: 4 }];
      await engine.insert(connection, 'counted', rows, model.get('counted')!.fields);
      assert.equal(await connection.count('counted', 2), 2);
      assert.equal(await connection.count('counted', 4), 4);
      assert.equal(await connection.count('counted', Number.MAX_SAFE_INTEGER), 4);
      if (connection.estimateCount) assert.ok((await connection.estimateCount('counted')) >= 0);
      if (!connection.countValues) return;
      assert.equal(await connection.countValues('counted', 'a', 1), 1);
      assert.equal(await connection.countValues('counted', 'a', Number.MAX_SAFE_INTEGER), 2);
    },
  );

  on(
    'an update counts matched and modified rows',
    '`update` counts the rows that `where` matches and those whose values changed. `eq` and `in` can match null. $CONCAT treats null as an empty string.',
    async ({ connection, engine }) => {
      const model = await run(connection, [
        create('people', [
          ID,
          { name: 'first', type: 'string' },
          { name: 'age', type: 'integer' },
          { name: 'full', type: 'string' },
        ]),
      ]);
      const collection = model.get('people')!;
      const rows: Row[] = [
        { id: 1, first: 'Ada', age: 36 },
        { id: 2, first: null, age: 1 },
        { id: 3, first: "it's", age: null },
      ];
      await engine.insert(connection, 'people', rows, collection.fields);
      const concat = { field: 'full', concat: [{ field: 'first' }, { literal: "'s " }, { field: 'age' }] };
      const job = { table: 'people', collection, key: 'k1', where: [], set: [concat] };
      assert.deepEqual(await connection.update(job), { matched: 3, modified: 3 });
      assert.deepEqual(await connection.update({ ...job, key: 'k2' }), { matched: 3, modified: 0 });
      const full = await engine.read(connection, 'people');
      assert.deepEqual(full.map((row) => row.full).sort(), ["'s 1", "Ada's 36", "it's's "]);
      const where = [{ field: 'first', operator: 'eq', value: null }] as const;
      assert.deepEqual(await connection.update({ ...job, key: 'k3', where, set: [{ field: 'age', value: 2 }] }), {
        matched: 1,
        modified: 1,
      });
      const some = [{ field: 'age', operator: 'in', value: [36, null] }] as const;
      assert.deepEqual(
        await connection.update({ ...job, key: 'k4', where: some, set: [{ field: 'age', value: null }] }),
        {
          matched: 2,
          modified: 1,
        },
      );
    },
  );

  on(
    'an update accepts bytes as base64',
    '`update` accepts base64 for binary fields, in values and in `where`, and stores the decoded bytes.',
    async ({ connection, engine }) => {
      const model = await run(connection, [
        create('files', [
          ID,
          { name: 'short', type: 'binary', length: 8 },
          { name: 'long', type: 'blob' },
          { name: 'n', type: 'integer' },
        ]),
      ]);
      await engine.insert(connection, 'files', [{ id: 1 }, { id: 2 }], model.get('files')!.fields);
      const odd = Buffer.from([0, 0x27, 0x5c, 0xff, 0x78]).toString('base64');
      const job = { table: 'files', collection: model.get('files')!, where: [] };
      const set = [
        { field: 'short', value: odd },
        { field: 'long', value: 'SGVsbG8=' },
      ];
      const first = [{ field: 'id', operator: 'eq', value: 1 }] as const;
      assert.deepEqual(await connection.update({ ...job, key: 'k1', where: first, set }), { matched: 1, modified: 1 });
      assert.deepEqual(await connection.update({ ...job, key: 'k2', where: first, set }), { matched: 1, modified: 0 });
      const where = [
        { field: 'short', operator: 'in', value: [odd, 'AA=='] },
        { field: 'long', operator: 'eq', value: 'SGVsbG8=' },
      ] as const;
      const n = [{ field: 'n', value: 5 }];
      assert.deepEqual(await connection.update({ ...job, key: 'k3', where, set: n }), { matched: 1, modified: 1 });
      const stored = (await engine.read(connection, 'files')).find(({ id }) => Number(id) === 1);
      assert.deepEqual([base64Of(stored?.short), base64Of(stored?.long), Number(stored?.n)], [odd, 'SGVsbG8=', 5]);
    },
  );
}

/** The bytes in base64, or what else `read` has returned. */
const base64Of = (bytes: unknown): string =>
  bytes instanceof Uint8Array ? Buffer.from(bytes).toString('base64') : `not bytes: ${inspect(bytes)}`;
