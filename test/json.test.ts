import * as assert from 'node:assert/strict';
import fc from 'fast-check';
import { changedNumber } from '../core/json.ts';
import { test } from './kit/test.ts';

test('a number that JSON.parse would make another one of is found, however deep it stands', () => {
  for (const [json, number] of [
    ['9007199254740993', '9007199254740993'],
    ['12345678901234567890', '12345678901234567890'],
    ['{"a":[1,{"b":-0.12345678901234567890123}]}', '-0.12345678901234567890123'],
    ['[1e400]', '1e400'],
    ['1e-400', '1e-400'],
    ['{"text \\" 1":"2","n":9007199254740993}', '9007199254740993'],
  ] as const) {
    assert.equal(changedNumber(json), number, json);
  }
});

test('a number that stays itself is let through, however it is written', () => {
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
    assert.equal(changedNumber(json), undefined, json);
  }
  assert.equal(changedNumber('{"9007199254740993":"9007199254740993 \\\\\\" 1e400"}'), undefined);
  fc.assert(fc.property(fc.json(), (json) => changedNumber(JSON.stringify(JSON.parse(json))) === undefined));
});
