import * as assert from 'node:assert/strict';
import type { Connection, Segment } from '../../core/dialect.ts';
import { isSvcError } from '../../core/errors.ts';
import { anyDefinition, recordWrite } from '../../core/records.ts';
import type { DeclareDialectCase } from './dialect-case.ts';
import { colocatedThings, SEGMENT_KEYS, segmentOf, writeSegments } from './record-segments.ts';
import { thing } from './record-store-suite.ts';

const ROUNDS = 10;
/** Segments that are written while another connection reads. */
const SEGMENTS = 60;

/** Cases about segments that write several records: all of them take effect, or none. A kill is tested by `crashCases`. */
export function segmentCases(on: DeclareDialectCase): void {
  const store = (connection: Connection) => connection.records(colocatedThings);
  const sizesOf = (connection: Connection, keys: readonly string[]) =>
    Promise.all(keys.map(async (key) => (await store(connection).get(key))?.record.size));
  const run = (connection: Connection, writes: Segment['writes'], epoch: number) =>
    connection.run([segmentOf(writes)], epoch);

  on(
    'the record writes of a segment are stored together, or none of them',
    'If a write of a segment fails, or the epoch is an earlier one, `run` reports the failure, and no other write of the segment has an effect: the records of definitions with `colocateWithLock` are written together.',
    async ({ connect }) => {
      const connection = await connect();
      const earlier = await connection.withLock(async (epoch) => epoch);
      await connection.withLock(async (epoch) => {
        await connection.ensureTables([anyDefinition(colocatedThings)]);
        await store(connection).insert(thing('changed', 1));
        const good = [
          recordWrite(colocatedThings, thing('new', 1)),
          recordWrite(colocatedThings, thing('changed', 2), 1),
        ];
        const stale = recordWrite(colocatedThings, thing('absent', 1), 9);
        for (const [writes, of] of [
          [[...good, stale], epoch],
          [[stale, ...good], epoch],
          // The engine itself finds the epoch: a dialect may find a version by reading it first.
          [good, earlier],
        ] as const) {
          const { committed, failure } = await run(connection, writes, of);
          assert.equal(isSvcError(failure?.error) && failure.error.code, 'lock_lost');
          assert.equal(committed, 0);
          assert.deepEqual(
            await sizesOf(connection, ['new', 'changed']),
            [undefined, 1],
            'the other writes took effect',
          );
        }
        assert.deepEqual((await run(connection, good, epoch)).failure, undefined);
        assert.deepEqual(await sizesOf(connection, ['new', 'changed']), [1, 2]);
      });
    },
  );

  on(
    'of segments that write a record at the same time, one takes effect',
    'Of concurrent segments with the same version of a record, at most one succeeds. No write of the others has an effect.',
    async ({ connect }) => {
      const connections = [await connect(), await connect()];
      const [connection] = connections as [Connection];
      await connection.withLock(async (epoch) => {
        await connection.ensureTables([anyDefinition(colocatedThings)]);
        await store(connection).insert(thing('shared', 0));
        for (let round = 1; round <= ROUNDS; round += 1) {
          const before = await store(connection).get('shared');
          const keys = connections.map((_, at) => `${round} of ${at}`);
          const outcomes = await Promise.all(
            connections.map((one, at) => {
              const size = 10 * round + at;
              const shared = recordWrite(colocatedThings, thing('shared', size), before?.version ?? 0);
              return run(one, [recordWrite(colocatedThings, thing(keys[at] ?? '', size)), shared], epoch);
            }),
          );
          const done = outcomes.flatMap(({ failure }, at) => (failure ? [] : [at]));
          assert.ok(done.length <= 1, 'both segments succeeded: a change was overwritten');
          const expected = keys.map((_, at) => (done.includes(at) ? 10 * round + at : undefined));
          const [shared, ...sizes] = await sizesOf(connection, ['shared', ...keys]);
          assert.deepEqual(sizes, expected, 'a segment that failed wrote a record, or one that succeeded did not');
          assert.equal(shared, expected.find((size) => size !== undefined) ?? before?.record.size);
        }
      });
    },
  );

  on(
    'the record writes of a segment are visible together',
    'A reader that has seen one write of a segment sees all of them.',
    async ({ connect }) => {
      const [writer, reader] = [await connect(), await connect()];
      let written = 0;
      let hasEnded = false;
      const writing = writeSegments(writer, (segment) => {
        written = segment;
        return segment < SEGMENTS && !hasEnded;
      }).finally(() => {
        hasEnded = true;
      });
      // Its error is that of the case, unless the reader has one.
      writing.catch(() => undefined);
      try {
        for (let pass = 0; !hasEnded; pass += 1) {
          // The record that a segment writes first may be read first or last.
          const keys = pass % 2 === 0 ? SEGMENT_KEYS : SEGMENT_KEYS.toReversed();
          let seen = { key: '', segment: 0 };
          for (const key of written === 0 ? [] : keys) {
            const segment = (await store(reader).get(key))?.record.size ?? 0;
            const message = `"${key}" was that of segment ${segment} after "${seen.key}" was that of segment ${seen.segment}`;
            assert.ok(segment >= seen.segment, message);
            seen = { key, segment };
          }
          await new Promise((resolve) => setImmediate(resolve));
        }
      } finally {
        hasEnded = true;
        await writing.catch(() => undefined);
      }
      await writing;
    },
  );
}
