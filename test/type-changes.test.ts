import * as assert from 'node:assert/strict';
import type { Dialect } from '../core/dialect.ts';
import { applyAll } from '../core/schema/apply.ts';
import type { NamedFieldDefinition } from '../core/schema/operation.ts';
import { mariadb } from '../plugins/dialects/mariadb/dialect.ts';
import { mysql } from '../plugins/dialects/mysql/dialect.ts';
import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { test } from './kit/test.ts';

// Changes that need permission: values lose a part, and no server reports it.

type Definition = Omit<NamedFieldDefinition, 'name'>;
const string: Definition = { type: 'string' };
const decimal: Definition = { type: 'decimal', precision: 8, scale: 2 };
const list = (items: NonNullable<Definition['items']>): Definition => ({ type: 'array', items });

function isDestructive(dialect: Dialect, from: Definition, to: Definition): boolean {
  const model = applyAll([{ type: 'createCollection', name: 't', fields: [{ name: 'f', ...from }] }]);
  const found = dialect.compile({ type: 'modifyField', collection: 't', field: 'f', changes: to }, model);
  return found.some(({ destructive }) => destructive);
}

for (const dialect of [postgresql, mysql, mariadb]) {
  test(`${dialect.name}: a change that silently loses a part of values is destructive`, () => {
    const losing: [Definition, Definition][] = [
      ...(['float', 'double', 'date', 'time', 'datetime', 'timestamp', 'json'] as const).flatMap(
        (type): [Definition, Definition][] => [
          [string, { type }],
          [{ type: 'text' }, { type }],
        ],
      ),
      [string, decimal],
      [string, list('string')],
      [{ type: 'datetime' }, { type: 'date' }],
      [{ type: 'double' }, { type: 'integer' }],
      [decimal, { ...decimal, scale: 1 }],
    ];
    const safe: [Definition, Definition][] = [
      ...(['text', 'uuid', 'boolean', 'integer', 'blob'] as const).map((type): [Definition, Definition] => [
        string,
        { type },
      ]),
      [{ type: 'enum', enumValues: ['a'] }, string],
      [string, { type: 'enum', enumValues: ['a'] }],
      [{ type: 'integer' }, { type: 'string', length: 8 }],
      [{ type: 'integer' }, { type: 'bigint' }],
      [{ type: 'integer' }, { type: 'json' }],
      [list('integer'), list('bigint')],
      [list('datetime'), list('text')],
    ];
    // Where the server prints six digits of a float.
    const float: [Definition, Definition][] = (['text', 'json'] as const).map((type) => [{ type: 'float' }, { type }]);
    (dialect === postgresql ? safe : losing).push(...float);
    for (const [from, to] of losing) assert.ok(isDestructive(dialect, from, to), JSON.stringify([from, to]));
    for (const [from, to] of safe) assert.ok(!isDestructive(dialect, from, to), JSON.stringify([from, to]));
  });
}

test('elements of an array lose as much as values of their type', () => {
  // Elsewhere an array is one JSON text.
  for (const [from, to] of [
    ['datetime', 'date'],
    ['text', 'decimal'],
    ['double', 'integer'],
  ] as const)
    assert.ok(isDestructive(postgresql, list(from), list(to)), `${from} to ${to}`);
});
