import * as assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { DatabaseService } from '../config/sdk/index.ts';
import { migration } from '../core/migration/builder.ts';
import type { Migration } from '../core/migration/migration.ts';
import { MigrationEngine } from '../core/migration/migration-engine.ts';
import { cleanEnv, command } from './kit/cli.ts';
import { freshDatabase, unavailable } from './kit/postgresql.ts';
import { assertExit, id, json, LONG, type Project, project, tagOf, users, withAge } from './kit/project.ts';
import { test as declare } from './kit/test.ts';

const missing = await unavailable();

function test(name: string, body: () => Promise<void>, options: typeof LONG): void {
  if (missing === undefined) declare(name, body, options);
  else declare.skip(name, missing);
}

type Query = (text: string) => Promise<Record<string, unknown>[]>;

/** Runs `body` with a project on a new database. */
async function onServer(body: (shop: Project, query: Query) => Promise<void>): Promise<void> {
  const { url, query, drop } = await freshDatabase();
  try {
    await body(project({ main: url }), query);
  } finally {
    await drop();
  }
}

test(
  '--dry-run prints statements that the server accepts, and changes nothing',
  () =>
    onServer(async ({ svc, schema, files }, query) => {
      schema(users);
      assert.match(assertExit(await svc('db', 'schema', 'generate', '--dry-run')).stdout, /CREATE TABLE/);
      assert.deepEqual(files(), []);
      assertExit(await svc('db', 'schema', 'generate'));
      const { stdout } = assertExit(await svc('db', 'migrate', '--dry-run'));
      assert.deepEqual(await query("select 1 from pg_tables where schemaname = 'public'"), []);
      await query(`begin; ${stdout}; rollback`);
      assertExit(await svc('db', 'migrate'));
      schema({ users: { id } });
      assertExit(await svc('db', 'schema', 'generate'));
      assert.match(
        assertExit(await svc('db', 'migrate', '--dry-run')).stdout,
        /-- lossy: .*users\.email[\s\S]*-- destroys data: "users" \(0 rows\):\nALTER TABLE/,
      );
      assert.match(
        assertExit(await svc('db', 'migrate', 'rollback', '--dry-run')).stdout,
        /-- destroys data: "users" \(0 rows\):\nDROP TABLE/,
      );
      assert.match(assertExit(await svc('db', 'migrate', 'status')).stdout, /^PENDING 1/);
    }),
  LONG,
);

test(
  '--dry-run with a schema sets the search path, also for raw statements',
  async () => {
    const { url, query, drop } = await freshDatabase();
    try {
      const main = { dialect: 'postgresql', url, schema: 'the "shop"', options: { createSchema: true } };
      const shop = project({}, { databases: { main } });
      shop.schema(users);
      assertExit(await shop.svc('db', 'schema', 'generate'));
      shop.write('svc/database/migrations/main/29990101_000000_more.json', {
        tag: '29990101_000000_more',
        name: 'more',
        up: [{ type: 'raw', dialect: 'postgresql', statement: 'CREATE VIEW u AS SELECT * FROM users' }],
        down: [{ type: 'raw', dialect: 'postgresql', statement: 'DROP VIEW u' }],
      });
      const { stdout } = assertExit(await shop.svc('db', 'migrate', '--dry-run'));
      const places = `select schemaname as place from pg_tables where tablename = 'users' union all select schemaname from pg_views where viewname = 'u'`;
      assert.deepEqual(await query(places), []);
      await query(stdout);
      assert.deepEqual(await query(places), [{ place: 'the "shop"' }, { place: 'the "shop"' }]);
      await query('DROP SCHEMA "the ""shop""" CASCADE');
      assertExit(await shop.svc('db', 'migrate'));
      await query(assertExit(await shop.svc('db', 'migrate', 'rollback', '-n', '2', '--dry-run')).stdout);
      assert.deepEqual(await query(places), []);
      const { preamble } = json(await shop.svc('db', 'migrate', 'rollback', '--dry-run', '--json'));
      assert.deepEqual(preamble, ['SET search_path TO "the ""shop"""']);
    } finally {
      await drop();
    }
  },
  LONG,
);

test(
  'destructive migrations need --allow-destructive, and --yes is not enough',
  () =>
    onServer(async ({ svc, schema, files }) => {
      schema(users);
      assertExit(await svc('db', 'schema', 'generate'));
      assertExit(await svc('db', 'migrate'));
      schema({ users: { id } });
      assert.match(assertExit(await svc('db', 'schema', 'generate')).stderr, /warning .*destroys data/);
      assert.match(assertExit(await svc('db', 'migrate'), 8).stderr, /destructive/);
      assertExit(await svc('db', 'migrate', '--yes'), 8);
      const typed = ['--to', tagOf(files().at(-1)), '--lock-timeout=5', '--json'];
      const { nextActions } = json(assertExit(await svc('db', 'migrate', ...typed), 8));
      assert.deepEqual(nextActions, [
        `Preview first: svc db migrate ${typed.join(' ')} --dry-run`,
        `Then: svc db migrate ${typed.join(' ')} --allow-destructive`,
        'Or permit it in the migration: "allow": ["destructive"]',
      ]);
      assertExit(await svc('db', 'migrate', '--allow-destructive'));
    }),
  LONG,
);

test(
  'a rollback of rows needs --allow-destructive, of an empty table it does not, and -n is at most what is applied',
  () =>
    onServer(async ({ svc, schema, files }, query) => {
      for (const tables of [users, withAge]) {
        schema(tables);
        assertExit(await svc('db', 'schema', 'generate'));
      }
      assertExit(await svc('db', 'migrate'));
      await query("insert into users (email, age) values ('a@shop.example', 1)");
      const rollback = (...args: string[]) => svc('db', 'migrate', 'rollback', ...args);
      for (const args of [[], ['--yes'], ['-n', '2'], ['--to', tagOf(files()[0])]]) {
        const { code, why } = json(assertExit(await rollback(...args, '--json'), 8));
        assert.equal(code, 'destructive');
        assert.match(why, /dropField in users, which has rows/);
      }
      assert.deepEqual(await query('select age from users'), [{ age: 1 }]);
      assert.equal(json(assertExit(await rollback('-n', '3', '--json'), 1)).code, 'migration_not_applied');
      assertExit(await rollback('--allow-destructive'));
      await query('delete from users');
      assertExit(await rollback());
      assertExit(await rollback());
      assertExit(await rollback('-n', '1'), 1);
    }),
  LONG,
);

test(
  'a rollback after a rename counts the rows under the present name',
  () =>
    onServer(async ({ svc, write }, query) => {
      const up = [{ type: 'createCollection', name: 'a', fields: [{ name: 'id', type: 'integer', primaryKey: true }] }];
      const migrations = 'svc/database/migrations/main';
      write(`${migrations}/20260101_000000_a.json`, {
        tag: '20260101_000000_a',
        up,
        down: [{ type: 'dropCollection', collection: 'a' }],
      });
      write(`${migrations}/20260102_000000_b.json`, {
        tag: '20260102_000000_b',
        up: [{ type: 'renameCollection', collection: 'a', to: 'b' }],
        down: [{ type: 'renameCollection', collection: 'b', to: 'a' }],
      });
      assertExit(await svc('db', 'migrate'));
      await query('insert into b values (1)');
      const { why } = json(assertExit(await svc('db', 'migrate', 'rollback', '-n', '2', '--json'), 8));
      assert.match(why, /dropCollection in b, which has rows/);
      await query('delete from b');
      assertExit(await svc('db', 'migrate', 'rollback', '-n', '2'));
    }),
  LONG,
);

test(
  'a raw statement that deletes is marked and needs permission, unless its file says that it destroys nothing',
  () =>
    onServer(async ({ svc, write }, query) => {
      await query('create table t (id int)');
      const migration = (day: string, more: object) => {
        const tag = `202601${day}_000000_raw`;
        const raw = (statement: string) => ({ type: 'raw', dialect: 'postgresql', statement, ...more });
        write(`svc/database/migrations/main/${tag}.json`, {
          tag,
          up: [raw('DELETE FROM t')],
          down: [raw('TRUNCATE t')],
        });
      };
      migration('01', {});
      assert.match(
        assertExit(await svc('db', 'migrate', '--dry-run')).stdout,
        /-- destroys data, not known how much:\nDELETE FROM t/,
      );
      assert.equal(json(assertExit(await svc('db', 'migrate', '--json'), 8)).code, 'destructive');
      assertExit(await svc('db', 'migrate', '--allow-destructive'));
      assert.match(json(assertExit(await svc('db', 'migrate', 'rollback', '--json'), 8)).why, /TRUNCATE t/);
      migration('02', { destructive: false });
      assert.doesNotMatch(assertExit(await svc('db', 'migrate', '--dry-run')).stdout, /destroys data/);
      assertExit(await svc('db', 'migrate'));
      assertExit(await svc('db', 'migrate', 'rollback'));
    }),
  LONG,
);

test(
  'every change of a protected environment needs --yes',
  () =>
    onServer(async ({ svc, schema }) => {
      schema(users);
      assertExit(await svc('db', 'schema', 'generate'));
      const refused = assertExit(await svc('db', 'migrate', '--env', 'prd', '--json'), 2);
      assert.equal(json(refused).code, 'protected_env');
      assert.match(
        assertExit(await svc('db', 'migrate', 'status', '--env', 'prd')).stdout,
        /^PENDING 1 {2}main \(prd\)/,
      );
      assertExit(await svc('db', 'migrate', '--env', 'prd', '--yes'));
      assertExit(await svc('db', 'migrate', '--env', 'prd'), 0);
      assertExit(await svc('db', 'migrate', 'rollback', '--env', 'prd'), 2);
      const tag = json(await svc('db', 'migrate', 'status', '--env', 'prd', '--json')).databases[0].lastApplied;
      assertExit(await svc('db', 'migrate', 'resolve', tag, '--failed', '--env', 'prd'), 2);
      assertExit(await svc('db', 'migrate', 'baseline', '--env', 'prd'), 2);
      assertExit(await svc('db', 'migrate', 'rollback', '--env', 'prd', '--yes'));
    }),
  LONG,
);

test(
  'an error prints the command with the missing flag, which can be run unchanged',
  () =>
    onServer(async ({ svc, schema, files, read, write }) => {
      for (const tables of [users, withAge]) {
        schema(tables);
        assertExit(await svc('db', 'schema', 'generate'));
      }
      write("the shop's config.json", read('svc.config.json'));
      const [first = '', second = ''] = files().map(tagOf);
      const there = ['--config', "the shop's config.json", '--env', 'prd', '--json'];
      const refused = async (args: readonly string[], code: string, status = 2) => {
        const { code: actual, nextActions } = json(assertExit(await svc(...args, ...there), status));
        assert.equal(actual, code);
        return nextActions as string[];
      };
      const state = async () => {
        const { completed, pending, entries } = json(await svc('db', 'migrate', 'status', ...there)).databases[0];
        return [completed, pending, entries.map((entry: { state: string }) => entry.state).join()];
      };
      for (const [args, after] of [
        [
          ['--to', first],
          [1, 1, 'completed,pending'],
        ],
        [
          ['--to', second],
          [2, 0, 'completed,completed'],
        ],
        [
          ['rollback', '-n', '2'],
          [0, 2, 'pending,pending'],
        ],
        [
          ['--to', first],
          [1, 1, 'completed,pending'],
        ],
        [
          ['resolve', first, '--forget'],
          [0, 2, 'pending,pending'],
        ],
      ] as const) {
        const [action = '', ...more] = await refused(['db', 'migrate', ...args], 'protected_env');
        assert.deepEqual(more, []);
        assertExit(await svc(...argumentsOf(action)));
        assert.deepEqual(await state(), after, action);
      }
    }),
  LONG,
);

test(
  'a run that stops after applying something exits with 1, and one that applied nothing with 2',
  () =>
    onServer(async ({ svc, write }, query) => {
      for (const [index, name] of ['one', 'two', 'three'].entries()) {
        const tag = `2020010${index + 1}_000000_${name}`;
        write(`svc/database/migrations/main/${tag}.json`, {
          tag,
          up: [{ type: 'raw', dialect: 'postgresql', statement: `create table ${name} (id int)` }],
          down: [{ type: 'raw', dialect: 'postgresql', statement: `drop table ${name}` }],
        });
      }
      await query('create table two (id int)');
      for (const [status, done] of [
        [1, '1 of 3'],
        [2, '0 of 2'],
      ] as const) {
        const { code, state } = json(assertExit(await svc('db', 'migrate', '--json'), status));
        assert.deepEqual(
          [code, state],
          ['collection_exists', `None of it took effect; ${done} migrations are applied.`],
        );
      }
      await query('drop table two');
      assertExit(await svc('db', 'migrate'));
      await query('create view seen as select * from two');
      const { code, nextActions } = json(
        assertExit(await svc('db', 'migrate', 'rollback', '-n', '3', '--allow-destructive', '--json'), 1),
      );
      assert.equal(code, 'collection_referenced');
      assert.deepEqual(nextActions.slice(-1), ['svc db migrate status']);
      const { databases } = json(await svc('db', 'migrate', 'status', '--json'));
      assert.equal(databases[0].completed, 2);
    }),
  LONG,
);

/** Splits a command into arguments, as a shell does. */
function argumentsOf(action: string): string[] {
  assert.match(action, /^svc /);
  const output = execFileSync('sh', ['-c', `printf '%s\\0' ${action.slice('svc '.length)}`], { encoding: 'utf8' });
  return output.split('\0').slice(0, -1);
}

test(
  'an existing table is changed by a file and adopted afterwards',
  () =>
    onServer(async ({ svc, schema, files, write, read }, query) => {
      await query('create table legacy (id int primary key); create table other (id int primary key)');
      const tag = '20200101_000000_note';
      const toLegacy = {
        name: 'own_legacy_fkey',
        type: 'foreignKey',
        columns: ['id'],
        references: { table: 'legacy', columns: ['id'] },
      };
      write(`svc/database/migrations/main/${tag}.json`, {
        tag,
        name: 'note',
        up: [
          { type: 'addField', collection: 'legacy', field: { name: 'note', type: 'text' } },
          { type: 'createCollection', name: 'own', fields: [{ name: 'id', type: 'integer', primaryKey: true }] },
          { type: 'addConstraint', collection: 'own', constraint: toLegacy },
        ],
        down: [
          { type: 'dropCollection', collection: 'own' },
          { type: 'dropField', collection: 'legacy', field: 'note' },
        ],
      });
      assertExit(await svc('db', 'migrate'));
      schema(users);
      const refusal = json(assertExit(await svc('db', 'schema', 'generate', '--json'), 2));
      assert.equal(refusal.code, 'collection_unknown');
      assert.ok(refusal.nextActions.some((action: string) => action.endsWith('svc db schema pull')));
      const { warnings, migrations } = json(assertExit(await svc('db', 'schema', 'pull', '--json')));
      assert.deepEqual(warnings, [
        'Migrations change the table "legacy" before one creates it, and would fail on an empty database.',
      ]);
      assert.equal(migrations.length, 1);
      assertExit(await svc('db', 'migrate', 'baseline'));
      assert.match(assertExit(await svc('db', 'schema', 'check', '--strict')).stdout, /^OK/);
      assert.match(assertExit(await svc('db', 'schema', 'generate')).stdout, /^Nothing to generate/);
      const [entry] = JSON.parse(read('svc/database/schema.json'));
      const turned = Object.fromEntries(Object.entries(entry.tables).reverse());
      schema([{ ...entry, tables: turned }]);
      const { migrations: none, backup } = json(assertExit(await svc('db', 'schema', 'pull', '--json')));
      assert.deepEqual([none, backup], [[], null]);
      assert.deepEqual(Object.keys(JSON.parse(read('svc/database/schema.json'))[0].tables), Object.keys(turned));
      assertExit(await svc('db', 'migrate', 'create', 'more'));
      const more = tagOf(files().at(-1));
      write(`svc/database/migrations/main/${more}.json`, {
        tag: more,
        up: [{ type: 'addField', collection: 'legacy', field: { name: 'more', type: 'text' } }],
        down: [{ type: 'dropField', collection: 'legacy', field: 'more' }],
      });
      assertExit(await svc('db', 'migrate'));
      assert.match(assertExit(await svc('db', 'schema', 'check', '--strict')).stdout, /^OK/);
    }),
  LONG,
);

test(
  'an edited and a missing file stop the run',
  () =>
    onServer(async ({ svc, schema, files, read, write }) => {
      schema(users);
      assertExit(await svc('db', 'schema', 'generate'));
      assertExit(await svc('db', 'migrate'));
      const file = `svc/database/migrations/main/${files()[0]}`;
      const text = read(file);
      write(file, JSON.stringify(JSON.parse(text)));
      assert.match(assertExit(await svc('db', 'migrate', 'status', '--check')).stdout, /^OK/);
      write(file, text.replace('"email"', '"mail"'));
      assert.equal(json(assertExit(await svc('db', 'migrate', '--json'), 5)).code, 'migration_edited');
      assert.match(assertExit(await svc('db', 'migrate', 'status'), 5).stdout, /^FAILED[\s\S]*\[!\] .*edited/);
      write(file, '{');
      assert.match(assertExit(await svc('db', 'migrate'), 2).stderr, /where .*create_users\.json:1:2/);
    }),
  LONG,
);

test(
  'a lost file is restored from the history',
  () =>
    onServer(async ({ root, svc, schema, files, read }) => {
      schema(users);
      assertExit(await svc('db', 'schema', 'generate'));
      assertExit(await svc('db', 'migrate'));
      const [name] = files();
      const file = `svc/database/migrations/main/${name}`;
      const text = read(file);
      rmSync(`${root}/${file}`);
      assert.equal(json(assertExit(await svc('db', 'migrate', '--json'), 5)).code, 'migration_missing');
      assert.match(assertExit(await svc('db', 'migrate', 'status'), 5).stdout, /^FAILED[\s\S]*\[!\] .*file is missing/);
      assert.equal(assertExit(await svc('db', 'migrate', 'export', tagOf(name))).stdout, `${file}\n`);
      assert.deepEqual(JSON.parse(read(file)), JSON.parse(text));
      assert.equal(assertExit(await svc('db', 'migrate')).stdout, 'Nothing to do in main (dev).\n');
      assertExit(await svc('db', 'migrate', 'export', 'never_heard_of'), 2);
    }),
  LONG,
);

test(
  'pull keeps the previous schema file, and fails while migrations are pending',
  () =>
    onServer(async ({ root, svc, schema, read }, query) => {
      await query('create table notes (id int primary key)');
      schema(users);
      assertExit(await svc('db', 'schema', 'generate'));
      assert.equal(json(assertExit(await svc('db', 'schema', 'pull', '--json'), 4)).code, 'pending');
      rmSync(`${root}/svc/database/migrations`, { recursive: true });
      const { backup } = json(assertExit(await svc('db', 'schema', 'pull', '--json')));
      assert.deepEqual(JSON.parse(read(backup))[0].tables, users);
      assert.deepEqual(Object.keys(JSON.parse(read('svc/database/schema.json'))[0].tables), ['notes']);
    }),
  LONG,
);

test(
  'pull requires an export of API migrations first, so that no baseline repeats them',
  () =>
    onServer(async ({ root, svc, files, read, write }, query) => {
      const service = new DatabaseService({ configFile: `${root}/svc.config.json` });
      const db = await service.connect({ database: 'main' });
      await db.schema.create('a', { id: { type: 'integer', primaryKey: true } });
      await service.close();
      const { code, nextActions } = json(assertExit(await svc('db', 'schema', 'pull', '--json'), 2));
      assert.deepEqual([code, nextActions[0]], ['origin_conflict', 'svc db migrate export']);
      assertExit(await svc('db', 'migrate', 'export'));
      const pull = async (exit?: number) => json(assertExit(await svc('db', 'schema', 'pull', '--json'), exit));
      const file = `svc/database/migrations/main/${files()[0]}`;
      const text = read(file);
      await query("update _svc_migrations set origin = 'file'");
      rmSync(`${root}/${file}`);
      const lost = await pull(5);
      assert.deepEqual(
        [lost.code, lost.nextActions[1]],
        ['migration_missing', `Or write it from the history: svc db migrate export ${tagOf(file)}`],
      );
      write(file, text);
      assert.deepEqual((await pull()).migrations, []);
      assert.match(assertExit(await svc('db', 'schema', 'generate')).stdout, /^Nothing to generate/);
    }),
  LONG,
);

test(
  'files applied out of the order of their tags are reported until a third one fixes it',
  () =>
    onServer(async ({ root, svc, write }, query) => {
      const [base, older, newer, settled] = [
        migration('20260101_000000_base').createCollection('u', [
          { name: 'id', type: 'integer', primaryKey: true },
          { name: 'f', type: 'string', length: 40 },
        ]),
        ...[100, 200, 200].map((length, index) =>
          migration(`2026010${index + 2}_000000_f`).modifyField('u', 'f', { length }, { was: { length: 40 } }),
        ),
      ].map((built) => built.build()) as [Migration, Migration, Migration, Migration];
      const add = (one: Migration) => write(`svc/database/migrations/main/${one.tag}.json`, one);
      add(base);
      add(newer);
      assertExit(await svc('db', 'migrate'));
      // As older versions of svc did.
      const service = new DatabaseService({ configFile: `${root}/svc.config.json` });
      const db = await service.connect({ database: 'main' });
      await new MigrationEngine(db.getAdapter()).up(older);
      await service.close();
      await query("update _svc_migrations set origin = 'file'");
      add(older);
      const message = /applied out of order: field u\.f: length is 100, expected 200/;
      for (const command of [
        ['schema', 'check'],
        ['migrate', 'status', '--check'],
      ]) {
        assert.match(assertExit(await svc('db', ...command), 5).stdout, message);
        const { code, nextActions } = json(assertExit(await svc('db', ...command, '--json'), 5));
        assert.equal(code, 'order_conflict');
        assert.match(nextActions[0], /^svc db migrate create/);
      }
      add(settled);
      assertExit(await svc('db', 'migrate'));
      assert.match(assertExit(await svc('db', 'schema', 'check')).stdout, /^OK/);
    }),
  LONG,
);

test(
  'export warns if files run in another order than the exported migrations were applied',
  () =>
    onServer(async ({ root, svc }) => {
      const service = new DatabaseService({ configFile: `${root}/svc.config.json` });
      const engine = new MigrationEngine((await service.connect({ database: 'main' })).getAdapter());
      const users = migration('20260101_000000_users').createCollection('users', [
        { name: 'id', type: 'integer', primaryKey: true },
      ]);
      const orders = migration('20260101_000000_orders').createCollection('orders', [
        { name: 'id', type: 'integer', primaryKey: true },
      ]);
      const references = { table: 'users', columns: ['id'] };
      orders.addConstraint('orders', { name: 'orders_id_fkey', type: 'foreignKey', columns: ['id'], references });
      for (const one of [users, orders]) await engine.up(one.build());
      await service.close();
      const { outOfOrder, nextActions } = json(assertExit(await svc('db', 'migrate', 'export', '--json')));
      assert.deepEqual(outOfOrder, ['table users is changed before it is created']);
      assert.equal(nextActions.length, 3);
      // Follows the message.
      const file = (tag: string) => `${root}/svc/database/migrations/main/${tag}.json`;
      const [old, newer] = ['20260101_000000_orders', '20260101_000001_orders'] as const;
      writeFileSync(file(newer), readFileSync(file(old), 'utf8').replaceAll(old, newer));
      rmSync(file(old));
      assertExit(await svc('db', 'migrate', 'resolve', old, '--forget'));
      assertExit(await svc('db', 'migrate', 'baseline'));
      assert.match(assertExit(await svc('db', 'migrate', 'status')).stdout, /^OK/);
    }),
  LONG,
);

test(
  'a TypeScript migration is applied and rolled back',
  () =>
    onServer(async ({ svc, write }, query) => {
      const file = assertExit(await svc('db', 'migrate', 'create', 'views', '--ts')).stdout.trim();
      const tag = tagOf(file);
      write(
        file,
        `import { migration } from '@svc/sdk';\nexport default migration('${tag}').raw('postgresql', 'CREATE VIEW one AS SELECT 1 AS x', { down: 'DROP VIEW one' }).build();\n`,
      );
      assertExit(await svc('db', 'migrate'));
      assert.deepEqual(await query('select x from one'), [{ x: 1 }]);
      assertExit(await svc('db', 'migrate', 'rollback'));
      assert.deepEqual(await query("select 1 from pg_views where viewname = 'one'"), []);
    }),
  LONG,
);

test(
  '--to stops at a migration, and rollback --to returns to it',
  () =>
    onServer(async ({ svc, schema, files }) => {
      for (const tables of [users, withAge, { ...withAge, logs: { id } }]) {
        schema(tables);
        assertExit(await svc('db', 'schema', 'generate'));
      }
      const tags = files().map(tagOf);
      assertExit(await svc('db', 'migrate', '--to', tags[1] ?? ''));
      const state = async () => json(await svc('db', 'migrate', 'status', '--json')).databases[0];
      assert.equal((await state()).lastApplied, tags[1]);
      assertExit(await svc('db', 'migrate'));
      const { destroyed } = json(assertExit(await svc('db', 'migrate', 'rollback', '--to', tags[0] ?? '', '--json')));
      assert.ok(destroyed.length > 0);
      for (const { tag, statement } of destroyed)
        assert.match(`${tag} ${statement}`, /^\d{8}_\d{6}_\S+ (DROP|ALTER) TABLE/);
      assert.deepEqual([(await state()).completed, (await state()).pending], [1, 2]);
      assertExit(await svc('db', 'migrate', '--to', 'nowhere'), 2);
      assertExit(await svc('db', 'migrate', 'rollback', '--to', 'nowhere'), 2);
    }),
  LONG,
);

test(
  'status prints the commands that one of several databases needs',
  async () => {
    const databases = [await freshDatabase(), await freshDatabase()];
    const [main, other] = databases.map(({ url }) => url) as [string, string];
    try {
      const shop = project({ main, other });
      const raw = (statement: string) => ({ type: 'raw', dialect: 'postgresql', statement, transaction: false });
      shop.write('svc/database/migrations/other/20260101_000000_half.json', {
        tag: '20260101_000000_half',
        name: 'half',
        up: [raw('CREATE TABLE half (n int)'), raw('SELECT 1 / 0')],
        down: [raw('DROP TABLE half')],
      });
      assertExit(await shop.svc('db', 'migrate'), 6);
      const { nextActions } = json(assertExit(await shop.svc('db', 'migrate', 'status', '--json'), 6));
      assert.deepEqual(
        nextActions.map(
          (action: string) => /^svc db migrate resolve --db other 20260101_000000_half (--[a-z-]+)/.exec(action)?.[1],
        ),
        ['--retry', '--applied', '--rolled-back'],
      );
      const file = 'svc/database/migrations/other/20260101_000000_half.json';
      const began = shop.read(file);
      const resolve = (decision: string) =>
        shop.svc('db', 'migrate', 'resolve', '--db', 'other', '20260101_000000_half', decision, '--json');
      const assertRefused = async (decision: string, edited: string) => {
        shop.write(file, edited);
        const { code, nextActions: next } = json(assertExit(await resolve(decision), 5));
        assert.equal(code, 'migration_edited', decision);
        assert.match(next.join(), /--rolled-back/);
      };
      const corrected = began.replace('1 / 0', '1 / 1');
      const changed = corrected.replace('n int', 'n bigint');
      await assertRefused('--retry', changed);
      await assertRefused('--applied', changed);
      await assertRefused('--applied', corrected);
      assertExit(await resolve('--retry'));
      assertExit(await shop.svc('db', 'migrate', 'status', '--db', 'other', '--check'));
    } finally {
      for (const { drop } of databases) await drop();
    }
  },
  LONG,
);

test(
  'several databases migrate in order up to the first failure; commands for one database are rejected',
  async () => {
    const [first, second] = [await freshDatabase(), await freshDatabase()];
    try {
      const shop = project({ main: first.url, broken: 'postgresql://postgres@127.0.0.1:1/none', other: second.url });
      shop.schema([
        { db: 'main', tables: users },
        { db: 'other', tables: users },
      ]);
      assert.match(assertExit(await shop.svc('db', 'schema', 'generate')).stderr, /no entry for "broken"/);
      const migrated = assertExit(await shop.svc('db', 'migrate', '--json'), 1);
      const { code, details } = json(migrated);
      assert.equal(code, 'connection_failed');
      assert.deepEqual(
        details.databases.map(
          ({ database, migrations, started }: { database: string; migrations?: unknown[]; started?: boolean }) => [
            database,
            migrations?.length,
            started,
          ],
        ),
        [
          ['main', 1, undefined],
          ['broken', undefined, undefined],
          ['other', undefined, false],
        ],
      );
      assert.match(
        assertExit(await shop.svc('db', 'migrate', 'status'), 1).stderr,
        /broken: failed; not started: other/,
      );
      for (const args of [['rollback'], ['--to', 'x'], ['resolve', 'x', '--retry'], ['export'], ['create', 'x']]) {
        assert.equal(
          json(assertExit(await shop.svc('db', 'migrate', ...args, '--json'), 2)).code,
          'database_ambiguous',
          args.join(' '),
        );
      }
      assertExit(await shop.svc('db', 'migrate', '--db', 'other'));
      assertExit(await shop.svc('db', 'migrate', 'rollback', '--db', 'other'));
      assert.equal(
        json(assertExit(await shop.svc('db', 'migrate', '--db', 'othr', '--json'), 2)).code,
        'database_unknown',
      );
      const raw = (statement: string) => ({ type: 'raw', dialect: 'postgresql', statement, transaction: false });
      shop.write('svc/database/migrations/main/20990101_000000_half.json', {
        tag: '20990101_000000_half',
        name: 'half',
        up: [raw('CREATE TABLE half (n int)'), raw('SELECT 1 / 0')],
        down: [raw('DROP TABLE half')],
      });
      const { nextActions } = json(assertExit(await shop.svc('db', 'migrate', '--json'), 6));
      assert.match(nextActions[0], /^svc db migrate resolve --db main 20990101_000000_half --retry/);
    } finally {
      await first.drop();
      await second.drop();
    }
  },
  LONG,
);

test(
  'a database of another product is rejected until it is adopted',
  () =>
    onServer(async ({ svc, schema, read, write }) => {
      schema(users);
      assertExit(await svc('db', 'schema', 'generate'));
      assertExit(await svc('db', 'migrate'));
      write('svc.config.json', read('svc.config.json').replace('"shop"', '"bar"'));
      assert.equal(json(assertExit(await svc('db', 'migrate', '--json'), 2)).code, 'database_foreign');
      assertExit(await svc('db', 'migrate', 'status'), 2);
      assertExit(await svc('db', 'migrate', '--adopt'));
      assert.match(assertExit(await svc('db', 'migrate', 'status')).stdout, /^OK/);
    }),
  LONG,
);

test(
  'a held lock exits with 7 after --lock-timeout',
  () =>
    onServer(async ({ root, svc, schema, write }) => {
      schema(users);
      assertExit(await svc('db', 'schema', 'generate'));
      write('svc/database/migrations/main/20000101_000000_slow.json', {
        tag: '20000101_000000_slow',
        up: [{ type: 'raw', dialect: 'postgresql', statement: 'SELECT pg_sleep(6)' }],
        down: [],
      });
      const [node, ...before] = command;
      const slow = spawn(node, [...before, 'db', 'migrate'], {
        cwd: root,
        env: cleanEnv(),
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const ended = new Promise<number | null>((settle) => slow.on('close', settle));
      await new Promise<void>((settle) =>
        slow.stderr.setEncoding('utf8').on('data', (text: string) => text.includes('Migrating') && settle()),
      );
      const waited = assertExit(await svc('db', 'migrate', '--lock-timeout', '0.2'), 7);
      assert.match(waited.stderr, /Waiting for another process[\s\S]*lock_timeout/);
      assert.equal(await ended, 0);
    }),
  LONG,
);

test(
  'a closed pipe ends the command without an error',
  () =>
    onServer(async ({ root, svc, schema }) => {
      schema(users);
      assertExit(await svc('db', 'schema', 'generate'));
      const [node, ...before] = command;
      const child = spawn(node, [...before, 'db', 'migrate', '--dry-run'], {
        cwd: root,
        env: cleanEnv(),
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      child.stdout.destroy();
      let stderr = '';
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        stderr += text;
      });
      assert.equal(await new Promise((settle) => child.on('close', settle)), 0);
      assert.equal(stderr, '');
    }),
  LONG,
);

const MISUSE: readonly [args: readonly string[], code: string][] = [
  [['db', 'migrate', 'rollback', '-n', '0'], 'usage'],
  [['db', 'migrate', 'rollback', '-n', 'two'], 'usage'],
  [['db', 'migrate', 'rollback', '-n', '1', '--to', 'x'], 'usage'],
  [['db', 'migrate', '--lock-timeout', 'soon'], 'usage'],
  [['db', 'migrate', 'resolve', 'x'], 'usage'],
  [['db', 'migrate', 'resolve', 'x', '--retry', '--forget'], 'usage'],
  [['db', 'schema', 'generate'], 'schema_missing'],
  [['db', 'schema', 'generate', '--db', 'nope'], 'database_unknown'],
];

test(
  'invalid arguments exit with 2 before any connection',
  async () => {
    const nowhere = project({ main: 'postgresql://postgres@127.0.0.1:1/none' });
    for (const [args, code] of MISUSE) {
      const { stdout } = assertExit(await nowhere.svc(...args, '--json'), 2);
      assert.equal(JSON.parse(stdout).code, code, args.join(' '));
    }
  },
  LONG,
);
