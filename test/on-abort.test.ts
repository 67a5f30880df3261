import * as assert from 'node:assert/strict';
import { setImmediate as tick } from 'node:timers/promises';
import { onAbort } from '../core/on-abort.ts';
import { MemoryStore } from '../plugins/stores/memory.ts';
import { Bank, gateOf, openOffice, refund, toolsOf, waiting } from './kit/approvals.ts';
import { test } from './kit/test.ts';

// One signal may cancel everything that a user began: hundreds of calls share it.

test('who no longer listens is not called, and a second listener of the same function is one of its own', () => {
  const stop = new AbortController();
  let called = 0;
  const count = () => {
    called += 1;
  };
  const [first] = [onAbort(stop.signal, count), onAbort(stop.signal, count)];
  first();
  stop.abort();
  assert.equal(called, 1);
});

test('calls that share a signal are taken for no leak, and all are cancelled by it', async () => {
  const warned: string[] = [];
  const hear = ({ name }: Error) => void warned.push(name);
  process.on('warning', hear);
  const office = await openOffice(new MemoryStore());
  const gate = gateOf(office, toolsOf(new Bank().tool()));
  const stop = new AbortController();
  const pending = await Promise.all(Array.from({ length: 40 }, () => waiting(gate, refund(), { signal: stop.signal })));
  stop.abort('over');
  const outcomes = await Promise.all(pending.map(({ outcome }) => outcome));
  assert.ok(outcomes.every(({ status }) => status === 'cancelled'));
  await office.desk.close();
  // Warnings are told of after all that is under way at once.
  await tick();
  process.off('warning', hear);
  assert.deepEqual(warned, []);
});
