import * as assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Json } from '../core/json.ts';
import { defineCollection } from '../core/schema/define.ts';
import { mariadbTraits } from '../plugins/dialects/mariadb/dialect.ts';
import { canonicalDefault } from '../plugins/dialects/mysql/catalog/defaults.ts';
import { textAfter, withoutOuterParentheses } from '../plugins/dialects/mysql/catalog/show-create-table.ts';
import { createGrammar } from '../plugins/dialects/mysql/compile/grammar.ts';
import {
  parseString,
  parseTextExpression,
  quoteIdentifier,
  quoteLiteral,
  textExpression,
  unescapeString,
} from '../plugins/dialects/mysql/compile/literal.ts';
import { tokenize } from '../plugins/dialects/mysql/compile/tokens.ts';
import { readType } from '../plugins/dialects/mysql/compile/types.ts';
import { updateSql } from '../plugins/dialects/mysql/compile/update-sql.ts';
import { isBefore, parseVersion, type Version } from '../plugins/dialects/mysql/variant.ts';
import { checkProperty } from './kit/schema-laws.ts';
import { test } from './kit/test.ts';

/** Strings with quotes, comments and escapes. */
const nasty = fc.string({
  unit: fc.oneof(
    fc.constantFrom("'", '"', '`', '\\', '\0', '\n', '\x1a', '%', '(', ')', ';', '--', '/*', '😀'),
    fc.string({ unit: 'grapheme', maxLength: 2 }),
  ),
});

test('a string is parsed back from its literal, whatever it contains', () => {
  checkProperty(
    fc.property(nasty, (value) => {
      assert.equal(parseString(quoteLiteral(value)), value);
      assert.equal(parseTextExpression(textExpression(value)), value);
      // As MySQL's catalog has it: escaped once more.
      assert.equal(
        parseString(unescapeString(quoteLiteral(value).replaceAll('\\', '\\\\').replaceAll("'", "\\'"))),
        value,
      );
    }),
    2_000,
  );
});

test('a literal and a name are one token each, and nothing in them ends a statement', () => {
  checkProperty(
    fc.property(nasty, nasty, (value, name) => {
      const found = [...tokenize(`${quoteLiteral(value)} ${quoteIdentifier(name)} ;`)];
      assert.deepEqual(
        found.map(({ kind }) => kind),
        ['quoted', 'quoted', 'symbol'],
      );
    }),
    2_000,
  );
});

test('only parentheses around the whole are removed, and words are found only outside quotes', () => {
  for (const [written, plain] of [
    ['((`a` > 0))', '`a` > 0'],
    ['(`a`) or (`b`)', '(`a`) or (`b`)'],
    ["(')(' = `(`)", "')(' = `(`"],
    ['`a`', '`a`'],
  ])
    assert.equal(withoutOuterParentheses(written ?? ''), plain);
  assert.equal(textAfter(' DEFAULT ', "enum(' DEFAULT ') DEFAULT 'x'"), "'x'");
  assert.equal(textAfter(' DEFAULT ', "enum(' DEFAULT ') NOT NULL"), undefined);
});

test('a decimal default is what the server rounds it to', () => {
  for (const [value, scale, rounded] of [
    ['9.995', 2, 10],
    ['-9.995', 2, -10],
    ['0.004', 2, 0],
    ['-0.004', 2, 0],
    ['1e-7', 2, 0],
    ['1.5e3', 0, 1500],
    ['12345678901234.5600', 4, 12345678901234.56],
    ['99999999999999999999.5', 1, '99999999999999999999.5'],
    ['0.5', 0, 1],
  ] as const)
    assert.equal(canonicalDefault(value, { type: 'decimal', scale }), rounded, value);
});

test('the values of an enum are parsed back from its column type', () => {
  checkProperty(
    fc.property(fc.uniqueArray(nasty, { minLength: 1, maxLength: 5 }), (values) => {
      const type = `enum(${values.map(quoteLiteral).join(',')})`;
      assert.deepEqual(readType(type, 'utf8mb4').enumValues, values);
    }),
    1_000,
  );
});

test('versions are read and compared by number', () => {
  assert.deepEqual(parseVersion('5.5.5-10.11.6-MariaDB-log'), [10, 11, 6]);
  assert.deepEqual(parseVersion('9.7.4-2'), [9, 7, 4]);
  assert.ok(isBefore([8, 0, 16], [8, 0, 17]));
  assert.ok(isBefore([10, 6, 21], [10, 8, 0]));
  assert.ok(!isBefore([10, 11, 0], [10, 8, 0]));
  assert.ok(!isBefore([8, 0, 17], [8, 0, 17]));
});

test('JSON is only compared by a server that can', () => {
  const grammar = createGrammar(mariadbTraits);
  const collection = defineCollection({ name: 't', fields: [{ name: 'd', type: 'json' }] });
  const update = (version: Version, operator: 'eq' | 'gt', value: Json) =>
    updateSql(
      { grammar, traits: mariadbTraits, version },
      { table: 't', collection, key: 'k', set: [], where: [{ field: 'd', operator, value }] },
    );
  const rejects = (work: () => unknown, why: RegExp) =>
    assert.throws(work, (error: Error & { code?: string; why?: string }) => {
      assert.equal(error.code, 'not_supported');
      return why.test(error.why ?? '');
    });
  assert.match(update([10, 7, 0], 'eq', [1]).update, /json_equals\(`d`, '\[1\]'\)/);
  rejects(() => update([10, 6, 0], 'eq', [1]), /since version 10\.7\.0/);
  rejects(() => update([10, 7, 0], 'gt', 1), /as a string/);
  assert.match(update([10, 6, 0], 'eq', null).update, /`d` IS NULL/);
});
