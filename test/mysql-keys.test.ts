import * as assert from 'node:assert/strict';
import { migration } from '../core/migration/builder.ts';
import { migrate, rollback } from '../core/migration/migrate.ts';
import type { Migration } from '../core/migration/migration.ts';
import type { Target } from '../core/migration/target.ts';
import { committingEngines } from './kit/engines.ts';
import { definedInCode } from './kit/migrations.ts';
import { assertExit, json, LONG, project } from './kit/project.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

// Changes of keys that a failure in the middle would leave without a key.

const number = (name: string) => ({ name, type: 'integer', required: true }) as const;

for (const engine of committingEngines) {
  const on = (name: string, body: (target: Target, url: string) => Promise<void>) =>
    engine.missing === undefined
      ? test(`${engine.name}: ${name}`, () => engine.withUrl(async (url, connect) => body(await connect(), url)), LONG)
      : test.skip(`${engine.name}: ${name}`, engine.missing);
  const apply = (target: Target, ...migrations: Migration[]) =>
    migrate(target, migrations.map(definedInCode), { allowDestructive: true });

  on(
    'the order of the columns of an adopted key changes, with the foreign key that references it',
    async (target, url) => {
      const { connection } = target;
      await connection.query('CREATE TABLE parents (a int NOT NULL, b int NOT NULL, PRIMARY KEY (b, a))');
      await connection.query(
        'CREATE TABLE children (id int PRIMARY KEY, pa int, pb int, CONSTRAINT child FOREIGN KEY (pb, pa) REFERENCES parents (b, a))',
      );
      await connection.query('INSERT INTO parents VALUES (1, 2)');
      const shop = project({ main: url });
      assertExit(await shop.svc('db', 'schema', 'pull'));
      assertExit(await shop.svc('db', 'migrate', 'baseline'));
      const entries = JSON.parse(shop.read('svc/database/schema.json'));
      const [key] = entries[0].constraints.parents;
      const [child] = entries[0].constraints.children;
      assert.deepEqual(key, { name: 'PRIMARY', type: 'primaryKey', columns: ['b', 'a'] });
      key.columns.reverse();
      shop.write('svc/database/schema.json', entries);
      // The server requires the same order in the foreign key.
      const refused = json(assertExit(await shop.svc('db', 'schema', 'generate', '--json'), 2));
      assert.match(refused.why, /references \(b, a\), and the key of "parents" is \(a, b\)/);
      child.columns.reverse();
      child.references.columns.reverse();
      shop.write('svc/database/schema.json', entries);
      assertExit(await shop.svc('db', 'schema', 'generate'));
      assertExit(await shop.svc('db', 'migrate'));
      assertExit(await shop.svc('db', 'schema', 'check'));
      const showKey = async () =>
        /PRIMARY KEY (.*?\))/.exec(
          String((await connection.query('SHOW CREATE TABLE parents'))[0]?.['Create Table']),
        )?.[1];
      assert.equal(await showKey(), '(`a`,`b`)');
      assertExit(await shop.svc('db', 'migrate', 'rollback'));
      assert.equal(await showKey(), '(`b`,`a`)');
    },
  );

  on('a table is created with its key of several fields, as a server may require', async (target, url) => {
    const { connection } = target;
    // MariaDB has no such setting.
    if (engine.dialect.name === 'mysql') await connection.query('SET SESSION sql_require_primary_key = ON');
    const shop = project({ main: url });
    const field = { type: 'Integer', required: true };
    shop.write('svc/database/schema.json', [
      {
        db: 'main',
        tables: {
          pairs: { a: field, b: field },
          flags: { a: { ...field, primaryKey: true }, b: { ...field, primaryKey: true } },
        },
        constraints: { pairs: [{ type: 'primaryKey', name: 'pairs_key', columns: ['b', 'a'] }] },
      },
    ]);
    assertExit(await shop.svc('db', 'schema', 'generate'));
    const [file = ''] = shop.files();
    const made: Migration = JSON.parse(shop.read(`svc/database/migrations/main/${file}`));
    assert.deepEqual(
      made.up.map(({ type }) => type),
      ['createCollection', 'createCollection'],
    );
    await apply(target, made);
    const shown = await connection.query('SHOW CREATE TABLE pairs');
    assert.match(String(shown[0]?.['Create Table']), /PRIMARY KEY \(`b`,`a`\)/);
    assertExit(await shop.svc('db', 'schema', 'check'));
    // Recreated with its key, too.
    const dropped = migration('29990101_000000_dropped')
      .dropCollection('pairs', {
        was: { fields: [number('a'), number('b')], primaryKey: { name: 'pairs_key', columns: ['b', 'a'] } },
      })
      .build();
    await apply(target, made, dropped);
    await rollback(target);
    assert.deepEqual(await connection.query('SHOW CREATE TABLE pairs'), shown);
  });

  const tables = migration('20260101_000000_tables')
    .createCollection('parents', [
      { name: 'id', type: 'integer', primaryKey: true },
      { ...number('code'), unique: true },
      number('spare'),
    ])
    .createCollection('others', [{ name: 'id', type: 'integer', primaryKey: true }])
    .build();

  on('a key or a field that a foreign key made by hand needs is not dropped', async (target) => {
    const { connection } = target;
    await apply(target, tables);
    await connection.query(
      'CREATE TABLE made (id int PRIMARY KEY, code int NOT NULL, CONSTRAINT hand FOREIGN KEY (code) REFERENCES parents (code))',
    );
    const before = await connection.introspect();
    const changes = (more: (one: ReturnType<typeof migration>) => ReturnType<typeof migration>, isAlone: boolean) => {
      const one = migration('20260102_000000_change');
      return more(isAlone ? one : one.addField('others', { name: 'x', type: 'integer' })).build();
    };
    for (const isAlone of [true, false]) {
      for (const [code, more] of [
        ['key_in_use', (one) => one.modifyField('parents', 'code', { unique: false })],
        ['field_in_use', (one) => one.dropField('parents', 'code')],
      ] as const satisfies readonly (readonly [string, Parameters<typeof changes>[0]])[]) {
        const refused = await expectError(apply(target, tables, changes(more, isAlone)), code);
        assert.match(refused.why ?? '', /foreign key `hand` of `made`/);
        assert.equal(refused.state, 'Nothing was changed.');
        assert.match(refused.next.join(), /ALTER TABLE `made` DROP FOREIGN KEY `hand`/);
        assert.deepEqual(await connection.introspect(), before);
      }
    }
    // A run that drops it first is not rejected, nor one that drops another key.
    const dropping = migration('20260102_000000_change')
      .raw(engine.dialect.name, 'ALTER TABLE made DROP FOREIGN KEY hand', { destructive: false })
      .modifyField('parents', 'code', { unique: false })
      .build();
    await apply(target, tables, dropping);
  });

  on('a change of a key that the server rejects is found before the first step', async (target) => {
    const { connection } = target;
    const auto = migration('20260102_000000_auto')
      .createCollection('autos', [{ name: 'id', type: 'integer', autoGenerate: true, unique: true }, number('n')])
      .build();
    await apply(target, tables, auto);
    await connection.query('ALTER TABLE autos ADD PRIMARY KEY (id), DROP INDEX autos_id_key');
    const before = await connection.introspect();
    const bad = migration('20260103_000000_bad')
      .addField('others', { name: 'x', type: 'integer' })
      .raw(engine.dialect.name, 'SELECT 1')
      .addConstraint('autos', { name: 'autos_pkey', type: 'primaryKey', columns: ['n'] })
      .build();
    const refused = await expectError(apply(target, tables, auto, bad), 'migration_failed');
    assert.match(refused.why ?? '', /1068/);
    assert.equal(refused.state, 'Nothing was changed.');
    assert.deepEqual(await connection.introspect(), before);
  });
}
