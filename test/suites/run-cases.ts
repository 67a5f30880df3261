import * as assert from 'node:assert/strict';
import type { RunOutcome, Segment } from '../../core/dialect.ts';
import { anyDefinition, CLOCK, ELAPSED, recordWrite } from '../../core/records.ts';
import type { Operation } from '../../core/schema/operation.ts';
import type { DeclareConnectedCase } from './dialect-case.ts';
import type { DialectUnderTest } from './dialect-under-test.ts';
import { thing, things } from './record-store-suite.ts';
import { runnerOf } from './run-operations.ts';
import { ID, type SupportedOperations } from './supported-operations.ts';

/** Cases about the segments of a migration: in order, each whole, and what is reported of them. */
export function runCases(
  on: DeclareConnectedCase,
  { dialect }: DialectUnderTest,
  { create }: SupportedOperations,
): void {
  const run = runnerOf(dialect);

  on(
    'a raw statement runs on its own dialect only, and its check detects it',
    '`compile` returns nothing for a raw statement of another dialect. A raw statement of the own dialect runs unchanged, and its `check` is a query that returns a row once the statement has taken effect.',
    async ({ connection, engine }) => {
      const model = await run(connection, [create('raws', [ID])]);
      const { statement, check = '' } = engine.raw('raws');
      assert.deepEqual(dialect.compile({ type: 'raw', dialect: 'another', statement }, model), []);
      assert.deepEqual(await connection.query(check), []);
      const raw: Operation = { type: 'raw', dialect: dialect.name, statement, check };
      assert.equal(dialect.compile(raw, model)[0]?.check, check);
      // A raw statement may release the lock, so the lock must be held.
      await connection.withLock((epoch) => run(connection, [raw], model, epoch));
      assert.equal((await connection.query(check)).length, 1);
      assert.deepEqual(
        (await engine.read(connection, 'raws')).map(({ id }) => Number(id)),
        [7],
      );
    },
  );

  if (dialect.capabilities.transactionalDdl)
    on(
      'a segment is verified before it commits',
      '`run` calls `verify` of a segment after its statements, with the catalog as its transaction sees it. If it throws, the segment is rolled back, and the failure contains the error.',
      async ({ connection }) => {
        const statements = dialect.compile(create('verified', [ID]), new Map());
        const refusal = new Error('It is not what was announced.');
        for (const error of [refusal, undefined]) {
          let seen: readonly string[] = [];
          const { committed, failure } = await connection.run(
            [
              {
                transactional: true,
                statements,
                writes: [],
                async verify(introspect) {
                  seen = [...(await introspect(['verified', 'other'])).keys()];
                  if (error) throw error;
                },
              },
            ],
            0,
          );
          assert.deepEqual(seen, ['verified']);
          assert.equal(failure?.error, error);
          assert.equal(committed, error ? 0 : 1);
          assert.equal((await connection.introspect()).has('verified'), error === undefined);
        }
      },
    );

  on(
    'segments commit one by one, and the failed statement is named',
    '`run` commits segments in order until one fails. `committed` counts those before it, `failure.statement` is the index of the statement, the failed segment is rolled back, and `written` contains the values of CLOCK and ELAPSED.',
    async ({ connection }) => {
      await connection.withLock(async (epoch) => {
        await connection.ensureTables([anyDefinition(things)]);
        /** The segments of a migration, with and without transactional DDL. */
        const segments = (n: number): Segment[] => {
          const statements = dialect.compile(create(`t${n === 3 ? 1 : n}`, [ID]), new Map());
          const writes = [recordWrite(things, { ...thing(`s${n}`, n), expires: CLOCK, took: ELAPSED })];
          if (statements.every(({ transactional }) => transactional))
            return [{ transactional: true, statements, writes }];
          return [
            ...statements.map((statement) => ({ transactional: false, statements: [statement], writes: [] })),
            { transactional: true, statements: [], writes },
          ];
        };
        const list = [1, 2, 3, 4].map(segments);
        const outcome = await connection.run(list.flat(), epoch);
        const committed = list.slice(0, 2).flat().length;
        assert.equal(outcome.committed, committed);
        assert.equal(outcome.failure?.statement, 0);
        const written = outcome.written[committed - 1]?.[0];
        assert.ok(written?.expires instanceof Date);
        assert.equal(typeof written.took, 'number');
        assert.deepEqual([...(await connection.introspect()).keys()].sort(), ['t1', 't2']);
        assert.equal((await connection.records(things).get('s2'))?.record.size, 2);
        assert.equal(await connection.records(things).get('s3'), undefined);
      });
    },
  );

  if (dialect.capabilities.runsSegmentsSingly)
    on(
      'a run stops when the observer stops it',
      '`run` calls `shouldContinue` before each segment and stops when it returns false. Earlier segments are committed and reported in order, and no later one is started.',
      async ({ connection }) => {
        await connection.withLock(async (epoch) => {
          await connection.ensureTables([anyDefinition(things)]);
          const segments = [1, 2].flatMap((n): Segment[] => [
            { transactional: true, statements: [], writes: [recordWrite(things, thing(`begins ${n}`, n))] },
            ...dialect
              .compile(create(`t${n}`, [ID]), new Map())
              .map((one): Segment => ({ transactional: false, statements: [one], writes: [] })),
            {
              transactional: true,
              statements: [],
              writes: [recordWrite(things, { ...thing(`ends ${n}`, n), expires: CLOCK })],
            },
          ]);
          const half = segments.length / 2;
          const segmentsAsked: number[] = [];
          const reported: RunOutcome['written'][number][] = [];
          const outcome = await connection.run(segments, epoch, 0, {
            shouldContinue: (segment) => segmentsAsked.push(segment) <= half,
            onCommitted: (written) => void reported.push(written),
            shouldRetry: () => true,
            onSent: () => undefined,
          });
          assert.deepEqual(outcome, { committed: half, written: reported });
          assert.deepEqual(
            segmentsAsked,
            Array.from({ length: half + 1 }, (_, segment) => segment),
          );
          assert.ok(reported.at(-1)?.[0]?.expires instanceof Date);
          assert.deepEqual([...(await connection.introspect()).keys()], ['t1']);
          const store = connection.records(things);
          assert.equal((await store.get('ends 1'))?.record.size, 1);
          assert.equal(await store.get('begins 2'), undefined);
          const rest = await connection.run(segments.slice(half), epoch);
          assert.deepEqual([rest.committed, rest.failure], [half, undefined]);
          assert.deepEqual([...(await connection.introspect()).keys()].sort(), ['t1', 't2']);
        });
      },
    );
}
