import * as assert from 'node:assert/strict';
import { isSvcError } from '../../core/errors.ts';
import { anyDefinition, type RecordDefinition } from '../../core/records.ts';
import type { DeclareConnectedCase } from './dialect-case.ts';
import type { DialectUnderTest } from './dialect-under-test.ts';
import { type Thing, thing, things } from './record-store-suite.ts';
import { runOperations } from './run-operations.ts';
import { withTimeout } from './suite.ts';
import { ID, type SupportedOperations } from './supported-operations.ts';

/** The longest that a call may take to settle once its connection is closed. */
const SETTLE_MS = 5_000;

/** Cases about opening, closing and watching. */
export function connectionCases(
  on: DeclareConnectedCase,
  engine: DialectUnderTest,
  { create }: SupportedOperations,
): void {
  const { dialect } = engine;

  on(
    'the options that svc passes to every dialect are accepted',
    '`connect` accepts `root`, `connectTimeoutMs`, `busyTimeoutMs`, `readOnly`, `allowCopy`, `onWait`, `onProgress` and `signal`, whether it uses them or not, and rejects an unknown option with `config_invalid`.',
    async ({ url, connectAgain }) => {
      const connection = await connectAgain({
        root: process.cwd(),
        connectTimeoutMs: 5_000,
        busyTimeoutMs: 0,
        readOnly: true,
        allowCopy: false,
        onWait: () => undefined,
        onProgress: () => undefined,
        signal: new AbortController().signal,
      });
      assert.deepEqual([...(await connection.introspect()).keys()], []);
      await assert.rejects(
        dialect.connect(url, { ...engine.options, unknownOption: 1 }),
        (error) => isSvcError(error) && error.code === 'config_invalid',
        'an unknown option is rejected with config_invalid',
      );
    },
  );

  on(
    'a pending call settles when the connection closes',
    'A pending call resolves or rejects when `close` is called, within five seconds.',
    async ({ connectAgain }) => {
      for (let round = 0; round < 5; round += 1) {
        const connection = await connectAgain();
        const pending = Promise.allSettled([connection.now(), connection.now()]);
        await new Promise((sent) => setImmediate(sent));
        await connection.close();
        await withTimeout(SETTLE_MS, 'a call that was pending when close() was called', () => pending);
      }
    },
  );

  on(
    'a closed connection can be closed again, and its calls fail',
    '`close` may be called again, also at once, and each call resolves. Every later call of the connection fails with an error, within five seconds, and has no effect. Other connections are not affected.',
    async ({ connection: other, connectAgain }) => {
      const connection = await connectAgain();
      await connection.withLock(() => connection.ensureTables([anyDefinition(things)]));
      const store = connection.records(things);
      const close = () => Promise.all([connection.close(), connection.close()]);
      for (const what of ['close(), called twice at once,', 'close(), called again,'])
        await withTimeout(SETTLE_MS, what, close);
      // An engine without a clock has that of the process, which still runs.
      await withTimeout(SETTLE_MS, 'now() of a closed connection', () => connection.now().catch(() => undefined));
      const calls: Readonly<Record<string, () => Promise<unknown>>> = {
        introspect: () => connection.introspect(),
        get: () => store.get('late'),
        insert: () => store.insert(thing('late', 1)),
        isLocked: () => connection.isLocked(),
        withLock: () => connection.withLock(async () => undefined),
        run: () => runOperations(dialect, connection, [create('late', [ID])]),
      };
      for (const [name, call] of Object.entries(calls)) {
        const what = `${name}() of a closed connection`;
        await withTimeout(SETTLE_MS, what, () => assert.rejects(call, Error, `${what} did not fail`));
      }
      assert.deepEqual([...(await other.introspect()).keys()], []);
      assert.equal(await other.records(things).get('late'), undefined);
      assert.equal(await other.withLock(() => other.records(things).insert(thing('late', 1))), 'inserted');
    },
  );

  on(
    'a watcher is notified of the records that notifyOn selects',
    '`watch` calls its listener with the key of every written record for which `notifyOn` of its definition returns true.',
    async ({ connection }) => {
      const definition: RecordDefinition<Thing> = { ...things, notifyOn: ({ size }) => Number(size) >= 2 };
      await connection.ensureTables([anyDefinition(definition)]);
      const notified: (string | undefined)[] = [];
      let resolveLast: () => void = () => {};
      const last = new Promise<void>((resolve) => {
        resolveLast = resolve;
      });
      const stop = await connection.watch?.(definition.collection, (key) => {
        notified.push(key);
        if (key === 'b') resolveLast();
      });
      assert.ok(stop, 'there is no watch(): skip this case, and give the reason');
      const store = connection.records(definition);
      await store.insert(thing('a', 1));
      await store.replace('a', 1, thing('a', 2));
      await store.replace('a', 2, thing('a', 1));
      await store.insert(thing('b', 2));
      await last;
      await stop();
      assert.deepEqual(notified, ['a', 'b']);
    },
  );
}
