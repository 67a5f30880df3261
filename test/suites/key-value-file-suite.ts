import * as assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { KeyValueFile } from '../../plugins/dialects/shared/key-value/embedded.ts';
import type { KeyRange, KeyValueRow } from '../../plugins/dialects/shared/key-value/object-rows.ts';
import { COUNTER, FILLED_KEYS, type FileJob, openWhenFree } from './key-value-file-jobs.ts';
import { moduleUrl, startScript } from './start-script.ts';
import { suite, type TestFunction, type UnderTest } from './suite.ts';

/** What `embeddedKeyValueDialect` opens. */
export interface KeyValueFileUnderTest extends UnderTest {
  /**
   * The module that exports `open` with the name `openDatabase`: other processes, which the suite starts and kills, import it. A URL
   * (`new URL('../src/database.js', import.meta.url)`), or a specifier from the working directory.
   */
  readonly module: URL | string;
  open(file: string): Promise<KeyValueFile>;
}

const EVERYTHING: KeyRange = { start: '', end: '\u{10FFFF}', limit: 1000, reverse: false };

const KILLS = 5;
/** For some processes that start one after the other. */
const PROCESSES_MS = 120_000;

/** In the order of their UTF-8 bytes. In UTF-16, which JavaScript compares, the last two change places. */
const KEYS = ['a', 'a\0', 'a\0b', 'a:1', 'a:10', 'a:2', 'b', 'é', '\uFFFD', '\u{1F600}'];

/**
 * Tests that a file of an engine with ordered keys fulfills the contract of `KeyValueFile`, before `dialectSuite` and the
 * other suites, which depend on it.
 */
export function keyValueFileSuite(test: TestFunction, engine: KeyValueFileUnderTest): void {
  suite(test, engine, (declare) => {
    const onPath = (
      name: string,
      promise: string,
      body: (path: string, open: () => Promise<KeyValueFile>, start: StartJob) => Promise<void>,
    ): void => {
      const runCase = async () => {
        const started: StartedJob[] = [];
        const start: StartJob = (job, ...args) => {
          const process = startJob(moduleUrl(engine.module), path, job, args);
          started.push(process);
          return process;
        };
        const folder = await mkdtemp(join(tmpdir(), 'svc-key-value-'));
        const path = join(folder, 'test.db');
        try {
          // A driver that cannot open a file at all fails now: later, an error may be that of a file in use.
          await (await engine.open(path)).close();
          await body(path, () => openWhenFree(engine.open, path), start);
        } finally {
          await Promise.all(started.map(({ kill }) => kill()));
          await rm(folder, { recursive: true, force: true });
        }
      };
      declare(name, runCase, { promise, timeoutMs: PROCESSES_MS });
    };
    const on = (
      name: string,
      promise: string,
      body: (file: KeyValueFile, reopen: () => Promise<KeyValueFile>) => Promise<void>,
    ): void => {
      onPath(name, promise, async (path) => {
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
        }
      });
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

    onPath(
      'a killed process leaves every write of a transaction, or none',
      'When `transaction` has returned, its writes survive the death of the process. A process that dies earlier, in `work` or while its writes are stored, leaves all of them or none.',
      async (_path, open, start) => {
        const first = start('fill', 'before');
        const commitMs = Number(await first.result);
        await first.kill();
        const found = async () => {
          const file = await open();
          const values = new Map<unknown, number>();
          for (const key of FILLED_KEYS) {
            const text = String(file.get(key)).split(' ', 1)[0];
            values.set(text, (values.get(text) ?? 0) + 1);
          }
          await file.close();
          return [...values].map(([text, count]) => `${count} × ${text}`);
        };
        const all = (text: string) => `${FILLED_KEYS.length} × ${text}`;
        const process = start('fill', 'dying', 'dies');
        await process.ended;
        assert.deepEqual(await found(), [all('before')], 'the process was killed halfway through `work`');
        // Between a moment that was too early and one that was too late is one in which a transaction is stored in part, if there is one.
        let last = 'before';
        let [early, late] = [0, 2 * commitMs];
        for (let round = 0; round < KILLS; round++) {
          const [next, afterMs] = [`round-${round}`, (early + late) / 2];
          const process = start('fill', next);
          await process.reported;
          await wait(afterMs);
          await process.kill();
          const values = await found();
          const message = `a process was killed ${Math.round(afterMs)} ms after \`work\`: ${values.join(', ')}`;
          assert.ok(values.length === 1 && [all(last), all(next)].includes(values[0] ?? ''), message);
          if (values[0] === all(next)) [last, late] = [next, afterMs];
          else early = afterMs;
        }
      },
    );

    onPath(
      'a transaction excludes those of other processes',
      'While `work` runs, no other process writes: what it has read is still true when it writes. The other process waits, or cannot open the file.',
      async (path, open, start) => {
        const done = `${path}.done`;
        const slow = start('addSlowly', done);
        await slow.reported;
        const other = start('add', done);
        await Promise.all([slow.result, other.result]);
        const file = await open();
        assert.equal(file.get(COUNTER), '2', 'two processes each added one to 0');
        await file.close();
      },
    );
  });
}

type StartedJob = ReturnType<typeof startJob>;
type StartJob = (job: FileJob, ...args: readonly string[]) => StartedJob;

/** Another process, which opens the file and does one job with it. */
function startJob(module: string, path: string, job: FileJob, args: readonly string[]) {
  const { child, ended, errors, kill } = startScript('key-value-file-process', [module, path, job, ...args], {
    stdout: 'pipe',
  });
  const answer = once(child, 'message').then(([message]) => message as { value?: unknown; error?: string });
  const result = Promise.race([answer, ended]).then((message) => {
    if (message === undefined) throw new Error(`The process ended during "${job}". ${errors()}`);
    if (message.error !== undefined) throw new Error(`In another process, "${job}" failed: ${message.error}`);
    return message.value;
  });
  const { stdout } = child;
  assert.ok(stdout);
  const reported = Promise.race([once(stdout, 'data'), result]);
  // A process that is killed has no result.
  for (const one of [result, reported]) one.catch(() => undefined);
  return {
    result,
    ended,
    /** Resolves when `work` reports. Rejects with the error of the job. */
    reported,
    kill,
  };
}
