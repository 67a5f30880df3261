import * as assert from 'node:assert/strict';
import fc from 'fast-check';
import { lossyNumber, readExactJson } from '../core/json.ts';
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

test('a key that occurs twice in one object is found at any depth, however it is written', () => {
  for (const json of [
    '{"a":1,"a":1}',
    '{"a":1,"\\u0061":2}',
    '[{"b":{"a":[{}],"c":{"a":1},"a":2}}]',
    '{"__proto__":1,"__proto__":2}',
    '{"":1,"":2}',
  ]) {
    assert.match(JSON.stringify(readExactJson(json)), /occurs twice/, json);
  }
  for (const json of [
    '{"a":{"a":[{"a":1},{"a":1}]},"A":1}',
    '["a","a",{"b":"a\\":","c":"a\\":"}]',
    '{"a":"{","b":"["}',
  ]) {
    assert.deepEqual(readExactJson(json), { value: JSON.parse(json) });
  }
  fc.assert(
    fc.property(fc.json(), (json) => {
      assert.deepEqual(readExactJson(JSON.stringify(JSON.parse(json))), { value: JSON.parse(json) });
    }),
  );
});

test('bytes that are not UTF-8 are not JSON', () => {
  assert.deepEqual(readExactJson(Buffer.from('"ü😀"')), { value: 'ü😀' });
  const invalid = [[0xff], [0xc3], [0xc0, 0xaf], [0xed, 0xa0, 0x80]];
  for (const bytes of invalid) {
    assert.deepEqual(readExactJson(Buffer.from([0x22, ...bytes, 0x22])), { problem: 'It is not UTF-8.' });
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
