import * as assert from 'node:assert/strict';
import { idRange, newExecutionId, newRequestId } from '../core/approval/request.ts';
import { test } from './kit/test.ts';

/** UUID version 7 of RFC 9562: 48 bits of time, the version, then bits that make it unique. */
const ID = /^(apr|exe)_([0-9a-f]{8})-([0-9a-f]{4})-7([0-9a-f]{3})-([89ab][0-9a-f]{3})-([0-9a-f]{12})$/;

for (const [kind, make] of [
  ['apr', newRequestId],
  ['exe', newExecutionId],
] as const) {
  test(`the next id of ${kind} in the same millisecond cannot be guessed`, () => {
    const moments = new Map<string, bigint[]>();
    const ids = new Set<string>();
    for (let round = 0; round < 20_000; round++) {
      const id = make();
      const found = ID.exec(id);
      assert.ok(found && found[1] === kind, id);
      ids.add(id);
      const moment = `${found[2]}${found[3]}`;
      const end = BigInt(`0x${found[6]}`);
      moments.set(moment, [...(moments.get(moment) ?? []), end]);
    }
    assert.equal(ids.size, 20_000);
    const ends = [...moments.values()];
    assert.ok(
      ends.some((those) => those.length > 1),
      'no two ids were created in the same millisecond',
    );
    const all = ends.flat();
    // The last 42 bits are random. Those before them count within a millisecond, for the order.
    for (let bit = 0n; bit < 42n; bit++) {
      const set = all.filter((end) => (end >> bit) & 1n).length;
      assert.ok(set > 8_000 && set < 12_000, `bit ${bit} is set in ${set} of 20,000`);
    }
    for (const those of ends) {
      assert.equal(new Set(those).size, those.length);
      for (const [at, end] of those.entries()) {
        const step = at === 0 ? undefined : end - those[at - 1]!;
        assert.ok(step === undefined || step > 1_000n || step < -1_000n, `${step} after the one before it`);
      }
    }
  });
}

test('the ids of a range of time are within its bounds, also if a clock differs by an hour', () => {
  const hour = 3_600_000;
  for (const difference of [-hour, 0, hour]) {
    const before = Date.now() + difference;
    const id = newRequestId();
    const { from = '', to = '' } = idRange('apr', new Date(before), new Date(before + 1_000));
    assert.ok(id >= from && id < to);
  }
  const later = idRange('apr', new Date(Date.now() + 48 * hour));
  assert.ok(newRequestId() < (later.from ?? ''));
});
