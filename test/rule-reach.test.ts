import * as assert from 'node:assert/strict';
import fc from 'fast-check';
import { matchesAll, neverHolds } from '../config/load/rule-reach.ts';
import { holds } from '../core/approval/rule.ts';
import { test } from './kit/test.ts';

// A configuration is rejected for a rule that no call can reach: that must be so for every value.

test('whether a rule matches all that another one matches is never a false alarm', () => {
  const operand = fc.constantFrom(1, 2, 3, 4);
  const operation = fc.constantFrom('eq', 'ne', 'gt', 'gte', 'lt', 'lte');
  const condition = fc
    .tuple(
      fc.dictionary(operation, operand, { maxKeys: 2 }),
      fc.option(fc.array(fc.constantFrom(1, 2, 3, 'a'), { minLength: 1, maxLength: 2 }), { freq: 1 }),
      fc.option(fc.boolean()),
    )
    .map(([all, list, exists]) => ({ ...all, ...(list && { in: list }), ...(exists !== null && { exists }) }));
  const values = [undefined, 0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 5, 'a', 'b', true];
  const found = { late: 0, never: 0 };
  const check = (one: object, other: object) => {
    const rule = (about: object) => ({ version: '', approve: [], deny: 1, where: { x: about } });
    const isLate = matchesAll(rule(one), rule(other));
    if (isLate) found.late++;
    if (neverHolds(other)) found.never++;
    for (const value of values) {
      if (holds(other, value) !== true) continue;
      assert.ok(!neverHolds(other), `${value} is ${JSON.stringify(other)}`);
      if (isLate) assert.equal(holds(one, value), true, `${value} is ${JSON.stringify([one, other])}`);
    }
    // Of comparisons that contradict each other, none is left out.
    if (!values.some((value) => holds(other, value) === true)) assert.ok(neverHolds(other), JSON.stringify(other));
  };
  fc.assert(fc.property(condition, condition, check), { numRuns: 5_000 });
  assert.ok(found.late > 100 && found.never > 100, JSON.stringify(found));
});
