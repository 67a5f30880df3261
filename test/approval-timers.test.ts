import * as assert from 'node:assert/strict';
import { approvals } from '../core/approval/schema.ts';
import { TimerQueue } from '../core/approval/timer-queue.ts';
import { RequestWatcher } from '../core/approval/watcher.ts';
import { MemoryStore } from '../plugins/stores/memory.ts';
import { test } from './kit/test.ts';

// Timers on a clock that moves only when a test moves it.

interface Timer {
  readonly delayMs: number;
  readonly run: () => void;
  isCleared: boolean;
}

async function withStoppedClock(
  body: (clock: { now: number; readonly timers: readonly Timer[] }) => void | Promise<void>,
): Promise<void> {
  const { setTimeout: realSetTimeout, clearTimeout: realClearTimeout } = globalThis;
  const timers: Timer[] = [];
  const clock = { now: 1_000, timers };
  const setTimeoutStub = (run: () => void, delayMs: number) => {
    const timer = { run, delayMs, isCleared: false, unref: () => timer };
    timers.push(timer);
    return timer;
  };
  const clearTimeoutStub = (timer?: Timer) => {
    if (timer) timer.isCleared = true;
  };
  Object.defineProperty(performance, 'now', { value: () => clock.now, configurable: true });
  Object.assign(globalThis, { setTimeout: setTimeoutStub, clearTimeout: clearTimeoutStub });
  try {
    await body(clock);
  } finally {
    Object.assign(globalThis, { setTimeout: realSetTimeout, clearTimeout: realClearTimeout });
    Reflect.deleteProperty(performance, 'now');
  }
}

test('a deadline is due at its very moment, without another timer', () =>
  withStoppedClock((clock) => {
    const due: string[] = [];
    const queue = new TimerQueue<string>((item) => due.push(item));
    queue.set('first', 1_005);
    queue.set('second', 1_006);
    assert.deepEqual(
      clock.timers.map(({ delayMs }) => delayMs),
      [5],
    );
    clock.now = 1_005;
    clock.timers[0]?.run();
    assert.deepEqual(due, ['first']);
    assert.deepEqual(
      clock.timers.map(({ delayMs }) => delayMs),
      [5, 1],
    );
  }));

test('the timer of the only deadline is cleared with it', () =>
  withStoppedClock((clock) => {
    const queue = new TimerQueue<string>(() => assert.fail('it was deleted'));
    queue.set('first', 1_005);
    queue.delete('first');
    assert.deepEqual(
      clock.timers.map(({ isCleared }) => isCleared),
      [true],
    );
  }));

test('polling stops when no call waits, and starts with the next one', () =>
  withStoppedClock(async (clock) => {
    const store = new MemoryStore();
    // Without notifications.
    const watcher = new RequestWatcher({ ...store, watch: undefined } as never, store.records(approvals), () => {});
    const running = () => clock.timers.filter(({ isCleared }) => !isCleared).length;
    const first = watcher.subscribe('apr_1');
    assert.equal(running(), 1);
    clock.timers[0]?.run();
    await new Promise(setImmediate);
    assert.equal(running(), 2, 'a waiting call is polled for again');
    first.unsubscribe();
    clock.timers[1]?.run();
    await new Promise(setImmediate);
    assert.equal(running(), 2, 'nobody waits: no further poll');
    watcher.subscribe('apr_2');
    assert.equal(running(), 3);
    await watcher.close();
  }));
