import * as assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { KeyRange, KeyValueFile, KeyValueRow } from '../../plugins/dialects/shared/key-value/embedded.ts';
import { suite, type TestFunction, type UnderTest } from './suite.ts';

/** What `embeddedKeyValueDialect` opens. */
export interface KeyValueFileUnderTest extends UnderTest {
  open(file: string): Promise<KeyValueFile>;
}

const EVERYTHING: KeyRange = { start: '', end: '\u{10FFFF}', limit: 1000, reverse: false };

/** In the order of their UTF-8 bytes. In UTF-16, which JavaScript compares, the last two change places. */
const KEYS = ['a', 'a\0', 'a\0b', 'a:1', 'a:10', 'a:2', 'b', 'é', '\uFFFD', '\u{1F600}'];

/**
 * Tests that a file of an engine with ordered keys fulfills the contract of `KeyValueFile`, before `dialectSuite` and the
 * other suites, which depend on it.
 */
export function keyValueFileSuite(test: TestFunction, engine: KeyValueFileUnderTest): void {
  suite(test, engine, (declare) => {
    const on = (
      name: string,
      promise: string,
      body: (file: KeyValueFile, reopen: () => Promise<KeyValueFile>) => Promise<void>,
    ): void => {
      const runCase = async () => {
        const folder = await mkdtemp(join(tmpdir(), 'svc-key-value-'));
        const path = join(folder, 'test.db');
        let file: KeyValueFile | undefined;
        const reopen = async () => {
          await file?.close();
          file = await engine.open(path);
          return file;
        };
        try {
          await body(await reopen(), reopen);
        } finally {
          await file?.close();
          await rm(folder, { recursive: true, force: true });
        }
      };
      declare(name, runCase, { promise });
    };
    const write = async (file: KeyValueFile, values: Readonly<Record<string, string | KeyValueRow>>) =>
      file.transaction(({ put }) => {
        for (const [key, value] of Object.entries(values)) put(key, value);
      });
    const keysOf = async (file: KeyValueFile, range: Partial<KeyRange> = {}) => [
      ...(await file.keys({ ...EVERYTHING, ...range })),
    ];

    on(
      'values read back unchanged',
      '`get` returns a text or an object as it was put, not a promise of it, and undefined without a value. Bytes are a `Uint8Array`.',
      async (file) => {
        const row = {
          id: 7,
          n: 0.5,
          done: false,
          json: { a: [1, 'x', null] },
          text: '7',
          bytes: new Uint8Array([0, 255]),
        };
        await write(file, { row, text: 'a "text" \0 \u{1F600}', empty: '' });
        const { bytes, ...values } = Object(file.get('row'));
        assert.ok(bytes instanceof Uint8Array, `bytes are ${typeof bytes}`);
        assert.deepEqual({ ...values, bytes: [...bytes] }, { ...row, bytes: [0, 255] });
        assert.equal(file.get('text'), 'a "text" \0 \u{1F600}');
        assert.equal(file.get('empty'), '');
        assert.equal(file.get('missing'), undefined);
        await file.transaction(({ get }) => assert.equal(get('text'), 'a "text" \0 \u{1F600}'));
      },
    );

    on(
      'keys come in the order of their UTF-8 bytes, within the range',
      '`keys` returns the keys from `start` to before `end` in the order of their UTF-8 bytes, or from the last to the first, and not more than `limit`.',
      async (file) => {
        await write(file, Object.fromEntries(KEYS.toReversed().map((key) => [key, key])));
        assert.deepEqual(await keysOf(file), KEYS);
        assert.deepEqual(await keysOf(file, { reverse: true }), KEYS.toReversed());
        assert.deepEqual(await keysOf(file, { start: 'a\0', end: 'b' }), KEYS.slice(1, 6));
        assert.deepEqual(await keysOf(file, { start: 'a\0', end: 'b', limit: 2 }), KEYS.slice(1, 3));
        assert.deepEqual(await keysOf(file, { end: 'b', limit: 2, reverse: true }), ['a:2', 'a:10']);
        await file.transaction(({ remove }) => remove('a\0'));
        assert.deepEqual(await keysOf(file, { end: 'a:1' }), ['a', 'a\0b']);
      },
    );

    on(
      'an error in the work of a transaction undoes it',
      'If `work` throws, `transaction` throws the same error, and no write of `work` has an effect, also after the file is opened again. The next transaction is a new one.',
      async (file, reopen) => {
        await write(file, { kept: 'before', other: 'before' });
        const error = new Error('from the work');
        const failed = async () =>
          file.transaction(({ put, remove }) => {
            put('kept', 'changed');
            put('new', 'added');
            remove('other');
            throw error;
          });
        await assert.rejects(failed, (thrown) => thrown === error || assert.fail(`it threw ${thrown}`));
        const found = async (opened: KeyValueFile) =>
          Object.fromEntries((await keysOf(opened)).map((key) => [key, opened.get(key)]));
        assert.deepEqual(await found(file), { kept: 'before', other: 'before' });
        const result = await file.transaction(({ put }) => {
          put('kept', 'after');
          return 'result';
        });
        assert.equal(result, 'result');
        assert.deepEqual(await found(await reopen()), { kept: 'after', other: 'before' });
      },
    );
  });
}
