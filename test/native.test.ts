import * as assert from 'node:assert/strict';
import { migration } from '../core/migration/builder.ts';
import { drift } from '../core/migration/drift.ts';
import { historyModel } from '../core/migration/history.ts';
import { MigrationEngine } from '../core/migration/migration-engine.ts';
import type { Target } from '../core/migration/target.ts';
import type { NamedFieldDefinition } from '../core/schema/operation.ts';
import { committingEngines, engines, type TestEngine } from './kit/engines.ts';
import { LONG } from './kit/project.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

/** Types, indexes and options in the engine's own language: created, changed, refused and compared with the catalog. */

type Build = ReturnType<typeof migration>;

/** Runs each change as a migration, after which the catalog is what the migrations say. */
function changer(target: Target) {
  const engine = new MigrationEngine(target);
  let count = 0;
  const built = (change: (build: Build) => Build) => {
    count += 1;
    return change(migration(`20260101_${String(count).padStart(6, '0')}_change`)).build();
  };
  const assertNoDrift = async () =>
    assert.deepEqual(
      await drift(target.connection, await historyModel(target), await target.connection.introspect()),
      [],
    );
  return {
    async apply(change: (build: Build) => Build): Promise<void> {
      await engine.up(built(change));
      await assertNoDrift();
    },
    async applyAndRollBack(change: (build: Build) => Build): Promise<void> {
      const one = built(change);
      await engine.up(one);
      await assertNoDrift();
      await engine.down(one);
      await assertNoDrift();
    },
    refused: (code: Parameters<typeof expectError>[1], change: (build: Build) => Build) =>
      expectError((async () => engine.up(built(change)))(), code),
  };
}

function on(list: readonly TestEngine[], title: string, body: (target: Target) => Promise<void>): void {
  for (const engine of list) {
    if (engine.missing === undefined) test(`${engine.name}: ${title}`, () => engine.withDatabase(body), LONG);
    else test.skip(`${engine.name}: ${title}`, engine.missing);
  }
}

const columns = (...names: readonly string[]) => names.map((name) => ({ name }));
const id = { name: 'id', type: 'integer', primaryKey: true } as const;

/** Texts that are more than a type. */
const NOT_TYPES = [
  'int; drop table t',
  'int not null',
  'int default 1',
  'int references t (id)',
  'int)',
  'int, x int',
  'int -- x',
];

on(engines, 'native types of PostgreSQL are created, changed and refused', async (target) => {
  const { apply, applyAndRollBack, refused } = changer(target);
  const { connection } = target;
  const fields: NamedFieldDefinition[] = [
    { name: 'n', type: 'integer', autoGenerate: true, primaryKey: true, native: 'SERIAL' },
    { name: 'price', type: 'decimal', native: 'numeric', default: 0 },
    { name: 'at', type: 'timestamp', native: 'timestamptz', default: 'now', comment: "when, in its owner's words" },
    { name: 'code', type: 'text', native: 'VARCHAR', required: true },
    { name: 'big', type: 'bigint', native: 'int8' },
    { name: 'sorted', type: 'text', native: 'text COLLATE "C"' },
    { name: 'twice', type: 'decimal', native: 'numeric GENERATED ALWAYS AS (price * 2) STORED' },
  ];
  await apply((build) =>
    build.createCollection('t', fields, { sqlOptions: { comment: 'All of it', native: 'WITH (fillfactor=90)' } }),
  );
  await connection.query("insert into t (price, code, at) values (1.234, 'abc', '2026-01-01 00:00:00.123456Z')");

  const price =
    (native: string | null, more = {}) =>
    (build: Build) =>
      build.modifyField('t', 'price', { native, ...more }, { was: {} });
  await refused('field_in_use', (build) =>
    build.dropField('t', 'price', { was: { type: 'decimal', native: 'numeric' } }),
  );
  await apply((build) => build.dropField('t', 'twice', { was: fields[6] as NamedFieldDefinition }));
  const { why } = await refused('data_violates', price('numeric(8,2)'));
  assert.match(why ?? '', /not the same as numeric\(8,2\)/);
  await connection.query('update t set price = 1.25');
  await applyAndRollBack((build) =>
    build.modifyField('t', 'price', { native: 'numeric(8,2)' }, { was: { native: 'numeric' } }),
  );
  await apply(price(null, { precision: 12, scale: 4 }));

  const exact = (build: Build) => build.modifyField('t', 'at', { native: null }, { was: { native: 'timestamptz' } });
  await refused('data_violates', exact);
  await connection.query("update t set at = date_trunc('milliseconds', at)");
  await applyAndRollBack(exact);
  await applyAndRollBack((build) =>
    build.modifyField('t', 'at', { comment: 'moment' }, { was: { comment: "when, in its owner's words" } }),
  );
  await apply((build) => build.modifyField('t', 'at', { comment: null }, { was: { comment: 'moment' } }));
  await applyAndRollBack((build) =>
    build.modifyField('t', 'code', { native: 'varchar(3)' }, { was: { native: 'varchar' } }),
  );
  await refused('data_violates', (build) =>
    build.modifyField('t', 'code', { native: 'varchar(2)' }, { was: { native: 'varchar' } }),
  );
  await apply((build) => build.modifyField('t', 'sorted', { native: null }, { was: { native: 'text COLLATE "C"' } }));
  await apply((build) => build.modifyField('t', 'n', { type: 'bigint' }, { was: { type: 'integer' } }));
  await connection.query("insert into t (code) values ('def')");
  assert.deepEqual(
    (await connection.query('select n from t order by n')).map(({ n }) => Number(n)),
    [1, 2],
    'the identity counts from where the serial was',
  );
  for (const native of NOT_TYPES)
    await refused('field_invalid', (build) => build.addField('t', { name: 'x', type: 'integer', native }));
});

on(engines, 'native indexes and constraints of PostgreSQL hold for the rows that they are about', async (target) => {
  const { apply, applyAndRollBack, refused } = changer(target);
  const { connection } = target;
  await apply((build) =>
    build.createCollection('t', [
      id,
      { name: 'email', type: 'text' },
      { name: 'gone', type: 'boolean' },
      { name: 'data', type: 'json' },
    ]),
  );
  const live = (build: Build) =>
    build.createIndex('t', 'live', columns('email', 'gone'), {
      unique: true,
      native: '(LOWER(email)) where gone is not true',
    });
  await connection.query("insert into t values (1, 'A'), (2, 'a')");
  await refused('data_violates', live);
  await connection.query('update t set gone = true where id = 2');
  await applyAndRollBack(live);
  await apply(live);
  await apply((build) =>
    build.createIndex('t', 'by_data', columns('data'), { native: 'USING gin (data jsonb_path_ops)' }),
  );
  const refusedIndex = await refused('schema_invalid', (build) =>
    build.createIndex('t', 'x', columns('email'), { native: 'email' }),
  );
  const [, first = '', second = ''] = /CREATE INDEX: (.*), or (.*)\.$/.exec(refusedIndex.next[0] ?? '') ?? [];
  await applyAndRollBack((build) => build.createIndex('t', 'x', columns('data'), { native: first }));
  await applyAndRollBack((build) => build.createIndex('t', 'x', columns('email', 'gone'), { native: second }));
  const options = (native: string) => (build: Build) => build.createCollection('o', [id], { sqlOptions: { native } });
  const advice = (await refused('schema_invalid', options('TABLESPACE fast'))).next[0] ?? '';
  for (const native of [
    'PARTITION BY id',
    'PARTITION BY RANGE (id); drop table t',
    'PARTITION BY RANGE (id) INHERITS (t)',
  ])
    await refused('schema_invalid', options(native));
  await applyAndRollBack(options(/WITH [^)]*\)/.exec(advice)?.[0] ?? ''));
  await applyAndRollBack(options('partition by list (ID)'));
  await applyAndRollBack(options('with (autovacuum_enabled = false, fillfactor=70)'));
  await refused('field_in_use', (build) => build.renameField('t', 'email', 'mail'));
  await refused('field_in_use', (build) => build.dropField('t', 'gone', { was: { type: 'boolean' } }));
  await apply((build) =>
    build.dropIndex('t', 'live', {
      was: { columns: columns('email', 'gone'), unique: true, native: '(lower(email))' },
    }),
  );
  await apply((build) => build.renameField('t', 'email', 'mail'));
  for (const native of ['email', '(email); drop table t', '(email', 'USING gin (data) -- x'])
    await refused('schema_invalid', (build) => build.createIndex('t', 'x', columns('mail'), { native }));

  const once = {
    name: 'once',
    type: 'unique',
    columns: ['mail'],
    native: 'include (gone) deferrable initially deferred',
  } as const;
  await connection.query("update t set mail = 'b' where id = 2");
  await applyAndRollBack((build) => build.addConstraint('t', once));
  await apply((build) => build.addConstraint('t', once));
  await connection.query("begin; update t set mail = 'b' where id = 1; update t set mail = 'A' where id = 2; commit");
  await refused('field_in_use', (build) => build.renameField('t', 'gone', 'left'));
  const positive = { name: 'positive', type: 'check', expression: 'id > 1', native: 'NOT VALID' } as const;
  await apply((build) => build.addConstraint('t', positive));
  await assert.rejects(connection.query('insert into t (id) values (0)'), 'a new row is checked');
  for (const native of ['foo', 'deferrable; drop table t', 'INCLUDE (gone', 'NOT VALID'])
    await refused('constraint_invalid', (build) => build.addConstraint('t', { ...once, name: 'x', native }));
});

on(committingEngines, 'native types of MySQL and MariaDB are created, changed and refused', async (target) => {
  const { apply, applyAndRollBack, refused } = changer(target);
  const { connection } = target;
  const fields: NamedFieldDefinition[] = [
    {
      name: 'n',
      type: 'bigint',
      autoGenerate: true,
      primaryKey: true,
      native: 'INT UNSIGNED',
      comment: "it's the key",
    },
    { name: 'small', type: 'smallint', native: 'tinyint unsigned', required: true },
    { name: 'name', type: 'string', length: 20, native: 'varchar(20) CHARACTER SET latin1 COLLATE latin1_bin' },
    { name: 'at', type: 'datetime', native: 'datetime ON UPDATE CURRENT_TIMESTAMP', default: 'now' },
    { name: 'body', type: 'text', native: 'mediumtext' },
    { name: 'twice', type: 'integer', native: 'int GENERATED ALWAYS AS (small * 2) STORED' },
    { name: 'flags', type: 'text', native: "set('a','b')" },
  ];
  await apply((build) =>
    build.createCollection('t', fields, { sqlOptions: { comment: 'All of it', native: 'row_format=DYNAMIC' } }),
  );
  await connection.query("insert into t (small, name, body, flags) values (255, 'abc', 'words here', 'a,b')");

  const small = (native: string) => (build: Build) =>
    build.modifyField('t', 'small', { native }, { was: { native: 'tinyint unsigned' } });
  await applyAndRollBack(small('smallint unsigned'));
  assert.ok(await refused('data_violates', small('tinyint')));
  await applyAndRollBack((build) => build.modifyField('t', 'name', { length: 30 }, { was: { length: 20 } }));
  await applyAndRollBack((build) => build.modifyField('t', 'name', { comment: 'who' }, { was: { comment: null } }));
  await applyAndRollBack((build) =>
    build.modifyField('t', 'body', { native: 'longtext' }, { was: { native: 'mediumtext' } }),
  );
  await refused('not_supported', (build) => build.modifyField('t', 'at', { native: 'datetime' }, { was: {} }));
  await refused('field_in_use', (build) => build.renameField('t', 'small', 'little'));
  for (const native of [...NOT_TYPES, "enum('a')b')", "int comment 'x'"])
    await refused('field_invalid', (build) => build.addField('t', { name: 'x', type: 'integer', native }));

  await applyAndRollBack((build) => build.createIndex('t', 'by_name', columns('name'), { native: '(name(5) )' }));
  await applyAndRollBack((build) => build.createIndex('t', 'words', columns('body'), { native: 'fulltext (body)' }));
  await apply((build) => build.createIndex('t', 'by_body', columns('body'), { native: "(`body`(12)) COMMENT 'why'" }));
  await refused('field_in_use', (build) => build.renameField('t', 'body', 'text'));
  const others = [
    "(name) comment ',', drop column body",
    '(name) /*!, drop column body */',
    '(name) partition by key ()',
  ];
  for (const native of ['name', '(name); drop table t', '(name', 'USING HASH (name)', ...others])
    await refused('schema_invalid', (build) => build.createIndex('t', 'x', columns('name'), { native }));
  const options = (native: string) => (build: Build) => build.createCollection('u', [id], { sqlOptions: { native } });
  for (const native of ['row_format', "comment='x'; drop table t", 'row_format=DYNAMIC)']) {
    const [advice = ''] = (await refused('schema_invalid', options(native))).next;
    await applyAndRollBack(options(/ROW_FORMAT.*8/.exec(advice)?.[0] ?? ''));
  }
});
