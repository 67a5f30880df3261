import * as assert from 'node:assert/strict';
import { migrate } from '../core/migration/migrate.ts';
import type { Migration } from '../core/migration/migration.ts';
import type { Operation } from '../core/schema/operation.ts';
import { sqlEngines, type TestEngine } from './kit/engines.ts';
import { definedInCode } from './kit/migrations.ts';
import { test } from './kit/test.ts';

/* Both names of a field of each type, while old programs write one and new programs the other. */

for (const engine of sqlEngines) {
  if (engine.missing === undefined) testTypes(engine);
  else test.skip(`two names for a field of any type on ${engine.name}`, engine.missing);
}

const TYPES = [
  'bigint',
  'boolean',
  'date',
  'datetime',
  'decimal',
  'double',
  'enum',
  'float',
  'integer',
  'json',
  'smallint',
] as const;
const MORE_TYPES = ['string', 'text', 'time', 'timestamp', 'uuid', 'binary', 'blob', 'array'] as const;

/** Two values of a type, of which a collation or a comparison of numbers may find that they are equal. */
function valuesOf(engine: TestEngine, type: string): readonly [string, string] {
  const bytes = (hex: string) =>
    engine.name === 'postgresql' || engine.name === 'pglite' ? `'\\x${hex}'` : `x'${hex}'`;
  switch (type) {
    case 'boolean':
      return ['TRUE', 'FALSE'];
    case 'date':
      return ["'2026-01-02'", "'2026-01-03'"];
    case 'datetime':
    case 'timestamp':
      return ["'2026-01-02 03:04:05.006'", "'2026-01-02 03:04:05.007'"];
    case 'time':
      return ["'03:04:05'", "'03:04:06'"];
    case 'json':
    case 'array':
      return type === 'json'
        ? ['\'{"a":1}\'', '\'{"A":1}\'']
        : engine.name.startsWith('p')
          ? ["'{a}'", "'{A}'"]
          : ['\'["a"]\'', '\'["A"]\''];
    case 'uuid':
      return ["'9f1c0d8e-0000-4000-8000-000000000001'", "'9f1c0d8e-0000-4000-8000-000000000002'"];
    case 'binary':
    case 'blob':
      return [bytes('00ff61'), bytes('00ff41')];
    case 'enum':
      return ["'a'", "'b'"];
    case 'string':
    case 'text':
      return ["'a'", "'A'"];
    default:
      return ['1', '2'];
  }
}

function testTypes(engine: TestEngine): void {
  test(`${engine.name}: a field of any type has two names, each value as it was written`, () =>
    engine.withDatabase(async (target) => {
      const types = [...TYPES, ...MORE_TYPES];
      const fieldOf = (name: string, type: (typeof types)[number]) => ({
        name,
        type,
        ...(type === 'enum' && { enumValues: ['a', 'b'] }),
        ...(type === 'decimal' && { precision: 10, scale: 2 }),
        ...(type === 'binary' && { length: 8 }),
      });
      const collection = 'things';
      const setup: Migration = {
        tag: '20260101_000000_setup',
        name: 'setup',
        up: [
          {
            type: 'createCollection',
            name: collection,
            fields: [
              { name: 'id', type: 'integer', primaryKey: true },
              ...types.map((type) => fieldOf(`old_${type}`, type)),
            ],
          },
        ],
        down: [{ type: 'dropCollection', collection }],
      };
      const half = (direction: 'add' | 'drop'): Operation[] =>
        types.map((type) =>
          direction === 'add'
            ? { type: 'addField', collection, field: fieldOf(`new_${type}`, type), mirrors: `old_${type}` }
            : { type: 'dropField', collection, field: `old_${type}`, mirrors: `new_${type}` },
        );
      const migrationOf = (tag: string, up: Operation[]): Migration => ({
        tag,
        name: tag,
        up,
        down: [],
        irreversible: 'It is not needed.',
        allow: ['copy'],
      });
      const first = migrationOf('20260102_000000_expand', half('add'));
      const second = migrationOf('20260103_000000_contract', half('drop'));
      const list = (prefix: string) => types.map((type) => `${prefix}_${type}`).join(', ');
      const values = (at: 0 | 1) => types.map((type) => valuesOf(engine, type)[at]).join(', ');
      const insert = (id: number, prefix: string, at: 0 | 1) =>
        `INSERT INTO things (id, ${list(prefix)}) VALUES (${id}, ${values(at)})`;
      const update = (id: number, prefix: string, at: 0 | 1) =>
        `UPDATE things SET ${types.map((type) => `${prefix}_${type} = ${valuesOf(engine, type)[at]}`).join(', ')} WHERE id = ${id}`;

      await migrate(target, [definedInCode(setup)]);
      await target.connection.query(insert(1, 'old', 0));
      await migrate(target, [definedInCode(setup), definedInCode(first)]);
      for (const text of [insert(2, 'old', 0), insert(3, 'new', 0), insert(4, 'old', 0), insert(5, 'new', 0)])
        await target.connection.query(text);
      for (const text of [update(4, 'new', 1), update(5, 'old', 1)]) await target.connection.query(text);
      const rows = await target.connection.query('SELECT * FROM things ORDER BY id');
      const valuesIn = (row: Readonly<Record<string, unknown>> | undefined, prefix: string) =>
        types.map((type) => row?.[`${prefix}_${type}`]);
      for (const row of rows) assert.deepEqual(valuesIn(row, 'new'), valuesIn(row, 'old'));
      for (const at of [1, 2]) assert.deepEqual(valuesIn(rows[at], 'new'), valuesIn(rows[0], 'old'));
      for (const [index, value] of valuesIn(rows[3], 'new').entries())
        assert.notDeepEqual(value, valuesIn(rows[0], 'old')[index], types[index] ?? '');
      assert.deepEqual(valuesIn(rows[4], 'new'), valuesIn(rows[3], 'new'));
      await migrate(target, [setup, first, second].map(definedInCode));
      const left = await target.connection.query('SELECT * FROM things ORDER BY id');
      assert.deepEqual(
        left.map((row) => valuesIn(row, 'new')),
        rows.map((row) => valuesIn(row, 'old')),
      );
    }));
}
