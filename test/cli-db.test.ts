import * as assert from 'node:assert/strict';
import { engines, type TestEngine } from './kit/engines.ts';
import { type Project, project } from './kit/project.ts';
import { id, json, LONG, ok, tagOf, users, withAge } from './kit/shop.ts';
import { test } from './kit/test.ts';

type Query = (text: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;

for (const engine of engines) {
  if (engine.missing === undefined) journeys(engine);
  else test.skip(`the commands on ${engine.name}`, engine.missing);
}

function journeys(engine: TestEngine): void {
  const onEngine = (body: (shop: Project, query: Query) => Promise<void>): Promise<void> =>
    engine.withUrl((url, connect) =>
      body(project({ main: url }), async (text) => {
        const { connection } = await connect();
        try {
          return await connection.query(text);
        } finally {
          await connection.close();
        }
      }),
    );

  test(
    `${engine.name}: from schema file to rollback`,
    () =>
      onEngine(async ({ svc, schema, files }, query) => {
        schema(users);
        const generated = ok(await svc('db', 'schema', 'generate'));
        const [file] = files();
        assert.match(file ?? '', /^\d{8}_\d{6}_create_users\.json$/);
        assert.equal(generated.stdout, `svc/database/migrations/main/${file}\n`);
        assert.match(ok(await svc('db', 'schema', 'generate')).stdout, /^Nothing to generate/);
        assert.deepEqual(
          await query("select 1 from pg_tables where tablename = 'users'"),
          [],
          'generate touches no database',
        );

        assert.match(
          ok(await svc('db', 'migrate', 'status', '--check'), 4).stdout,
          /^PENDING 1 {2}main \(dev\)\n\[ \] /,
        );
        const migrated = ok(await svc('db', 'migrate', '-v'));
        assert.match(
          migrated.stderr,
          new RegExp(
            `^Migrating main \\(dev\\) to ${tagOf(file)}: 1 migration\n  ${tagOf(file)}  \\d+ ms\n    CREATE TABLE`,
          ),
        );
        assert.match(migrated.stdout, /^1 migration, \d+ steps?, \d+ ms\n$/);
        assert.equal(ok(await svc('db', 'migrate')).stdout, 'Nothing to do in main (dev).\n');
        const status = ok(await svc('db', 'migrate', 'status', '--check')).stdout;
        assert.match(
          status,
          new RegExp(
            `^OK {2}main \\(dev\\)\n\\[x\\] ${tagOf(file)}  applied \\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d  \\d+ ms\n$`,
          ),
        );
        assert.match(ok(await svc('db', 'schema', 'check')).stdout, /^OK {2}main/);

        schema(withAge);
        ok(await svc('db', 'schema', 'generate', '--name', 'ages'));
        assert.match(ok(await svc('db', 'migrate')).stderr, new RegExp(`from ${tagOf(file)}: 1 migration`));
        assert.equal((await query("select 1 from information_schema.columns where column_name = 'age'")).length, 1);

        const back = ok(await svc('db', 'migrate', 'rollback', '-n', '2'));
        assert.match(
          back.stderr,
          /Will be undone in main \(dev\)[\s\S]*_ages\n {4}loses data[\s\S]*_create_users\n {4}loses data/,
        );
        assert.match(back.stdout, /^2 migrations rolled back/);
        assert.deepEqual(await query("select 1 from pg_tables where tablename = 'users'"), []);
        assert.match(ok(await svc('db', 'migrate', 'rollback')).stdout, /^Nothing to roll back/);
      }),
    LONG,
  );

  test(
    `${engine.name}: a rename is decided by a flag`,
    () =>
      onEngine(async ({ svc, schema }, query) => {
        schema({ users: { id, name: 'String' } });
        ok(await svc('db', 'schema', 'generate'));
        ok(await svc('db', 'migrate'));
        await query("insert into users (name) values ('Ada')");
        schema({ users: { id, full_name: 'String' } });
        const refused = json(ok(await svc('db', 'schema', 'generate', '--json'), 2));
        assert.equal(refused.code, 'rename_undecided');
        assert.deepEqual(refused.nextActions, ['--rename users.name:full_name or --drop users.name']);
        ok(await svc('db', 'schema', 'generate', '--rename', 'users.name:full_name'));
        ok(await svc('db', 'migrate'));
        assert.deepEqual(await query('select full_name from users'), [{ full_name: 'Ada' }]);
      }),
    LONG,
  );

  test(
    `${engine.name}: a migration that fails leaves nothing of itself and says where`,
    () =>
      onEngine(async ({ svc, schema, write }, query) => {
        schema(users);
        ok(await svc('db', 'schema', 'generate'));
        const created = ok(await svc('db', 'migrate', 'create', 'break it')).stdout.trim();
        assert.match(created, /_break_it\.json$/);
        const tag = tagOf(created);
        const sql = (statement: string) => ({ type: 'raw', dialect: 'postgresql', statement });
        write(created, {
          tag,
          name: 'break_it',
          up: [sql('CREATE TABLE a (x int)'), sql('CREATE TABLE b (x int)'), sql('SELECT 1/0')],
          down: [],
        });
        const failed = ok(await svc('db', 'migrate'), 1);
        assert.match(failed.stderr, /why .*22012|why .*division by zero/);
        assert.match(failed.stderr, /state .*Nothing of it stays; 1 of 2/);
        assert.deepEqual(await query("select tablename from pg_tables where tablename in ('a', 'b', 'users')"), [
          { tablename: 'users' },
        ]);
        write(created, { tag, name: 'break_it', up: [], down: [] });
        assert.match(ok(await svc('db', 'migrate'), 2).stderr, /no operations yet/);
        write(created, { tag, name: 'break_it', up: [sql('CREATE TABLE a (x int)')], down: [sql('DROP TABLE a')] });
        ok(await svc('db', 'migrate'));
      }),
    LONG,
  );

  test(
    `${engine.name}: an existing database is adopted in two commands`,
    () =>
      onEngine(async ({ svc, schema, files, read }, query) => {
        await query(`create table teams (id serial primary key, title varchar(40) not null unique);
      create table people (id uuid primary key default gen_random_uuid(), team int references teams (id) on delete cascade, mood text check (mood in ('good', 'bad')), born date);
      create index people_born on people (born desc, mood); insert into teams (title) values ('red')`);
        const pulled = ok(await svc('db', 'schema', 'pull'));
        assert.equal(files().length, 1);
        assert.match(pulled.stdout, /schema\.json\n$/);
        ok(await svc('db', 'migrate', 'baseline'));
        assert.match(ok(await svc('db', 'schema', 'generate')).stdout, /^Nothing to generate/);
        assert.match(ok(await svc('db', 'migrate', 'status', '--check')).stdout, /^OK/);
        assert.match(ok(await svc('db', 'schema', 'check')).stdout, /^OK/);
        const [entry] = JSON.parse(read('svc/database/schema.json'));
        schema({ ...entry, tables: { ...entry.tables, teams: { ...entry.tables.teams, motto: 'Text' } } }.tables);
        assert.deepEqual(await query('select title from teams'), [{ title: 'red' }]);
      }),
    LONG,
  );

  test(
    `${engine.name}: check tells what somebody changed by hand`,
    () =>
      onEngine(async ({ svc, schema }, query) => {
        schema(users);
        ok(await svc('db', 'schema', 'generate'));
        ok(await svc('db', 'migrate'));
        await query(
          'alter table users drop column email; alter table users add column nick int; create table stray (id int primary key)',
        );
        const drift = ok(await svc('db', 'schema', 'check', '--strict'), 5).stdout;
        for (const part of [
          'DRIFT  main (dev)',
          'field users.email is missing',
          'field users.nick is not expected',
          'table stray is not expected',
        ])
          assert.ok(drift.includes(part), drift);
        const { code, databases } = json(ok(await svc('db', 'schema', 'check', '--ignore', 'stray', '--json'), 5));
        assert.equal(code, 'drift');
        assert.equal(databases[0].differences.length, 2);
      }),
    LONG,
  );
}
