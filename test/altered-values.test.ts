import * as assert from 'node:assert/strict';
import { migration } from '../core/migration/builder.ts';
import { migrate } from '../core/migration/migrate.ts';
import type { FieldDefinition } from '../core/schema/operation.ts';
import { sqlEngines } from './kit/engines.ts';
import { definedInCode } from './kit/migrations.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

// A change of type that needs no permission keeps every value: converted back, each is the same.

const string: FieldDefinition = { type: 'string' };
const integer: FieldDefinition = { type: 'integer' };
const decimal: FieldDefinition = { type: 'decimal', precision: 20, scale: 6 };

type Change = readonly [
  from: FieldDefinition,
  to: FieldDefinition,
  keeps: readonly string[],
  alters: readonly string[],
];

const everywhere: readonly Change[] = [
  [string, integer, ["'0'", "'-7'", "'501'", 'NULL'], ["'00501'", "'+5'", "'-0'", "' 5'", "concat('12', chr(10))"]],
  [{ type: 'text' }, { type: 'bigint' }, ["'9007199254740993'"], ["'007'", "'1.0'"]],
  [{ type: 'text' }, { type: 'string', length: 3 }, ["'abc'", "'a  '"], ["'abc   '"]],
  [string, { type: 'string', length: 3 }, ["'abc'"], ["'abc '", "'abcd'"]],
  [{ type: 'double' }, { type: 'json' }, ['0.1', '1e300', '-2.5'], []],
  [{ type: 'double' }, { type: 'text' }, ['0.30000000000000004', '5e-324', '1e300'], []],
  [{ type: 'bigint' }, { type: 'json' }, ['9007199254740993'], []],
];

const byEngine: Readonly<Record<string, readonly Change[]>> = {
  postgresql: [
    [decimal, { type: 'json' }, ['12345678901234.123456'], []],
    [string, { type: 'boolean' }, ["'true'"], ["'yes'", "'1'", "'TRUE'"]],
    [
      string,
      { type: 'uuid' },
      ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"],
      ["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "'{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}'"],
    ],
    [{ type: 'json' }, { type: 'text' }, [`'null'`, `'"5"'`, "'5'", `'"null"'`], []],
    [{ type: 'array', items: 'text' }, { type: 'array', items: 'integer' }, ["'{1,NULL}'"], ["'{1,02}'"]],
    [{ type: 'array', items: 'text' }, { type: 'array', items: 'string' }, ["'{a}'"], ["array[repeat('a', 256)]"]],
  ],
  mysql: [
    [decimal, { type: 'json' }, ['0.1', '-12345678901.5', '123456789.123456'], ['12345678901234.123456']],
    [string, { type: 'boolean' }, ["'0'", "'1'"], ["'01'", "'1 '", "'true'"]],
  ],
  mariadb: [
    [decimal, { type: 'json' }, ['12345678901234.123456'], []],
    [string, { type: 'boolean' }, ["'0'", "'1'"], ["'01'", "'1 '", "'true'"]],
  ],
};

for (const engine of sqlEngines) {
  if (engine.missing !== undefined) {
    test.skip(`${engine.name}: values that a change of type alters`, engine.missing);
    continue;
  }
  const isPostgresql = engine.dialect.name === 'postgresql';
  const changes = [...everywhere, ...(byEngine[engine.dialect.name] ?? [])];
  const sql = (text: string) => (isPostgresql ? text : text.replace('chr(10)', 'char(10)'));

  test(`${engine.name}: a change of type that needs no permission keeps every value, or is rejected`, () =>
    engine.withDatabase(async (target) => {
      const { connection } = target;
      const key = { name: 'id', type: 'integer', primaryKey: true } as const;
      const fields = changes.map(([from], index) => ({ name: `v${index}`, ...from }));
      const first = migration('20260101_000000_first')
        .createCollection('t', [key, ...fields])
        .build();
      await migrate(target, [first].map(definedInCode));
      /** A row for each value; a change with fewer values than others has NULL in the last rows. */
      const insert = (valuesOf: (change: Change) => readonly string[]) => {
        const rows = Math.max(...changes.map((change) => valuesOf(change).length));
        const row = (id: number) => [id, ...changes.map((change) => sql(valuesOf(change)[id] ?? 'NULL'))].join(', ');
        return connection.query(
          `INSERT INTO t VALUES ${Array.from({ length: rows }, (_, id) => `(${row(id)})`).join(', ')}`,
        );
      };
      const texts = fields.map(({ name }) => `CAST(${name} AS ${isPostgresql ? 'text' : 'char'}) AS ${name}`);
      const readAll = () => connection.query(`SELECT ${texts.join(', ')} FROM t ORDER BY id`);

      await insert(([, , , alters]) => alters);
      const altered = await readAll();
      for (const [index, [, to, , alters]] of changes.entries()) {
        if (alters.length === 0) continue;
        const change = migration('20260102_000000_change').modifyField('t', `v${index}`, to).build();
        const refusal = await expectError(migrate(target, [first, change].map(definedInCode)), 'data_violates');
        assert.match(refusal.why ?? '', new RegExp(`has ${alters.length} such row`), `${alters} as ${to.type}`);
      }
      assert.deepEqual(await readAll(), altered);

      await connection.query('DELETE FROM t');
      await insert(([, , keeps]) => keeps);
      const kept = await readAll();
      const all = (tag: string, to: (change: Change) => FieldDefinition) =>
        changes
          .reduce((builder, change, index) => builder.modifyField('t', `v${index}`, to(change)), migration(tag))
          .build();
      const there = all('20260102_000000_there', ([, to]) => to);
      const back = all('20260103_000000_back', ([from]) => from);
      await migrate(target, [first, there].map(definedInCode));
      await migrate(target, [first, there, back].map(definedInCode), { allowDestructive: true });
      assert.deepEqual(await readAll(), kept);
    }));

  test(`${engine.name}: microseconds of a column that svc did not create are not cut`, () =>
    engine.withDatabase(async (target) => {
      const { connection } = target;
      const table = (value: string) =>
        `CREATE TABLE adopted (id int PRIMARY KEY, a timestamp(6) NULL, b ${isPostgresql ? 'timestamptz' : 'datetime(6)'}); INSERT INTO adopted VALUES (1, '${value}', '${value}')`;
      for (const [value, isRefused] of [
        ['2026-01-01 00:00:00.123456', true],
        ['2026-01-01 00:00:00.123', false],
      ] as const) {
        for (const text of table(value).split('; ')) await connection.query(text);
        const model = await connection.introspect(['adopted']);
        for (const field of ['a', 'b']) {
          const from = model.get('adopted')?.fields.get(field)?.type;
          const type = from === 'datetime' ? 'timestamp' : 'datetime';
          const statements = engine.dialect.compile(
            { type: 'modifyField', collection: 'adopted', field, changes: { type } },
            model,
          );
          assert.ok(statements.every(({ destructive }) => !destructive));
          const { failure } = await connection.withLock((epoch) =>
            connection.run([{ transactional: isPostgresql, statements, writes: [] }], epoch),
          );
          if (isRefused)
            assert.match(String((failure?.error as { why?: string })?.why), /more precise than milliseconds/);
          else assert.equal(failure, undefined);
        }
        await connection.query('DROP TABLE adopted');
      }
    }));
}
