import * as assert from 'node:assert/strict';
import fc from 'fast-check';
import { lossyNumber } from '../core/json.ts';
import { test } from './kit/test.ts';

test('a number that JSON.parse would change is found at any depth', () => {
  for (const [json, number] of [
    ['9007199254740993', '9007199254740993'],
    ['12345678901234567890', '12345678901234567890'],
    ['{"a":[1,{"b":-0.12345678901234567890123}]}', '-0.12345678901234567890123'],
    ['[1e400]', '1e400'],
    ['1e-400', '1e-400'],
    ['{"text \\" 1":"2","n":9007199254740993}', '9007199254740993'],
  ] as const) {
    assert.equal(lossyNumber(json), number, json);
  }
});

test('a number that JSON.parse keeps is accepted in any notation', () => {
  for (const json of [
    '0',
    '-0',
    '0.0',
    '0e5',
    '15.0',
    '1e3',
    '1.50E-7',
    '100000000000000000000000',
    '9007199254740992',
  ]) {
    assert.equal(lossyNumber(json), undefined, json);
  }
  assert.equal(lossyNumber('{"9007199254740993":"9007199254740993 \\\\\\" 1e400"}'), undefined);
  fc.assert(fc.property(fc.json(), (json) => lossyNumber(JSON.stringify(JSON.parse(json))) === undefined));
});
