import * as assert from 'node:assert/strict';
import { sqlEngines, type TestEngine } from './kit/engines.ts';
import { type Project, project } from './kit/project.ts';
import { id, json, LONG, ok, tagOf, users, withAge } from './kit/shop.ts';
import { test } from './kit/test.ts';

type Query = (text: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;

for (const engine of sqlEngines) {
  if (engine.missing === undefined) journeys(engine);
  else test.skip(`the commands on ${engine.name}`, engine.missing);
}

function journeys(engine: TestEngine): void {
  const { here, adoptable } = engine.words;
  const { name: dialect, capabilities } = engine.dialect;
  const tables = (...names: string[]) =>
    `select table_name as name from information_schema.tables where table_schema = ${here} and table_name in (${names.map((name) => `'${name}'`).join(', ')}) order by 1`;
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
        assert.deepEqual(await query(tables('users')), [], 'generate touches no database');

        assert.match(
          ok(await svc('db', 'migrate', 'status', '--check'), 4).stdout,
          /^PENDING 1 {2}main \(dev\)\n\[ \] /,
        );
        const migrated = ok(await svc('db', 'migrate', '-v'));
        assert.match(
          migrated.stderr,
          new RegExp(
            `^Migrating main \\(dev\\) to ${tagOf(file)}: 1 migration\n  ${tagOf(file)}  [\\d.]+ m?s\n    CREATE TABLE`,
          ),
        );
        assert.match(migrated.stdout, /^1 migration, \d+ steps?, [\d.]+ m?s\n$/);
        assert.equal(ok(await svc('db', 'migrate')).stdout, 'Nothing to do in main (dev).\n');
        const status = ok(await svc('db', 'migrate', 'status', '--check')).stdout;
        assert.match(
          status,
          new RegExp(
            `^OK {2}main \\(dev\\)\n\\[x\\] ${tagOf(file)}  applied \\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d  [\\d.]+ m?s\n$`,
          ),
        );
        assert.match(ok(await svc('db', 'schema', 'check')).stdout, /^OK {2}main/);

        schema(withAge);
        ok(await svc('db', 'schema', 'generate', '--name', 'ages'));
        assert.match(ok(await svc('db', 'migrate')).stderr, new RegExp(`from ${tagOf(file)}: 1 migration`));
        assert.equal(
          (await query(`select 1 from information_schema.columns where column_name = 'age' and table_schema = ${here}`))
            .length,
          1,
        );

        const back = ok(await svc('db', 'migrate', 'rollback', '-n', '2'));
        assert.match(
          back.stderr,
          /will be rolled back in main \(dev\)[\s\S]*_ages\n {4}loses data[\s\S]*_create_users\n {4}loses data/,
        );
        assert.match(back.stdout, /^2 migrations rolled back/);
        assert.deepEqual(await query(tables('users')), []);
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
    `${engine.name}: a migration that fails says where, and what stays of it`,
    () =>
      onEngine(async ({ svc, schema, write }, query) => {
        schema(users);
        ok(await svc('db', 'schema', 'generate'));
        const created = ok(await svc('db', 'migrate', 'create', 'break it')).stdout.trim();
        assert.match(created, /_break_it\.json$/);
        const tag = tagOf(created);
        const sql = (statement: string) => ({ type: 'raw', dialect, statement });
        write(created, {
          tag,
          name: 'break_it',
          up: [sql('CREATE TABLE a (x int)'), sql('CREATE TABLE b (x int)'), sql('SELECT nope')],
          down: [],
        });
        const whole = capabilities.transactionalDdl;
        const failed = ok(await svc('db', 'migrate'), whole ? 1 : 6);
        assert.match(failed.stderr, /why .*(42703|1054)/);
        assert.match(
          failed.stderr,
          whole ? /state .*None of it took effect; 1 of 2/ : /state .*2 of 3 steps are committed/,
        );
        assert.deepEqual(
          (await query(tables('a', 'b', 'users'))).map(({ name }) => name),
          whole ? ['users'] : ['a', 'b', 'users'],
        );
        if (!whole) {
          ok(await svc('db', 'migrate', 'status', '--check'), 6);
          await query('DROP TABLE a');
          await query('DROP TABLE b');
          ok(await svc('db', 'migrate', 'resolve', tag, '--rolled-back'));
        }
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
        await query(adoptable);
        await query("insert into teams (title) values ('red')");
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
