import * as assert from 'node:assert/strict';
import { sqlEngines, type TestEngine } from './kit/engines.ts';
import { assertExit, id, json, LONG, type Project, project, tagOf, users, withAge } from './kit/project.ts';
import { test } from './kit/test.ts';

type Query = (text: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;

for (const engine of sqlEngines) {
  if (engine.missing === undefined) journeys(engine);
  else test.skip(`the commands on ${engine.name}`, engine.missing);
}

function journeys(engine: TestEngine): void {
  const { currentSchema, existingTables } = engine.sql;
  const { name: dialect, capabilities } = engine.dialect;
  const tables = (...names: string[]) =>
    `select table_name as name from information_schema.tables where table_schema = ${currentSchema} and table_name in (${names.map((name) => `'${name}'`).join(', ')}) order by 1`;
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
        const generated = assertExit(await svc('db', 'schema', 'generate'));
        const [file] = files();
        assert.match(file ?? '', /^\d{8}_\d{6}_create_users\.json$/);
        assert.equal(generated.stdout, `svc/database/migrations/main/${file}\n`);
        assert.match(assertExit(await svc('db', 'schema', 'generate')).stdout, /^Nothing to generate/);
        assert.deepEqual(await query(tables('users')), [], 'generate touches no database');

        assert.match(
          assertExit(await svc('db', 'migrate', 'status', '--check'), 4).stdout,
          /^PENDING 1 {2}main \(dev\)\n\[ \] /,
        );
        const migrated = assertExit(await svc('db', 'migrate', '-v'));
        assert.match(
          migrated.stderr,
          new RegExp(
            `^Migrating main \\(dev\\) to ${tagOf(file)}: 1 migration\n  ${tagOf(file)}  [\\d.]+ m?s\n    CREATE TABLE`,
          ),
        );
        assert.match(migrated.stdout, /^1 migration, \d+ steps?, [\d.]+ m?s\n$/);
        assert.equal(assertExit(await svc('db', 'migrate')).stdout, 'Nothing to do in main (dev).\n');
        const status = assertExit(await svc('db', 'migrate', 'status', '--check')).stdout;
        assert.match(
          status,
          new RegExp(
            `^OK {2}main \\(dev\\)\n\\[x\\] ${tagOf(file)}  applied \\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d  [\\d.]+ m?s\n$`,
          ),
        );
        assert.match(assertExit(await svc('db', 'schema', 'check')).stdout, /^OK {2}main/);

        schema(withAge);
        assertExit(await svc('db', 'schema', 'generate', '--name', 'ages'));
        assert.match(assertExit(await svc('db', 'migrate')).stderr, new RegExp(`from ${tagOf(file)}: 1 migration`));
        assert.equal(
          (
            await query(
              `select 1 from information_schema.columns where column_name = 'age' and table_schema = ${currentSchema}`,
            )
          ).length,
          1,
        );

        const back = assertExit(await svc('db', 'migrate', 'rollback', '-n', '2'));
        assert.match(
          back.stderr,
          /will be rolled back in main \(dev\)[\s\S]*_ages\n {4}loses data[\s\S]*_create_users\n {4}loses data/,
        );
        assert.match(back.stdout, /^2 migrations rolled back/);
        assert.deepEqual(await query(tables('users')), []);
        assert.match(assertExit(await svc('db', 'migrate', 'rollback')).stdout, /^Nothing to roll back/);
      }),
    LONG,
  );

  test(
    `${engine.name}: a flag confirms a rename`,
    () =>
      onEngine(async ({ svc, schema }, query) => {
        schema({ users: { id, name: 'String' } });
        assertExit(await svc('db', 'schema', 'generate'));
        assertExit(await svc('db', 'migrate'));
        await query("insert into users (name) values ('Ada')");
        schema({ users: { id, full_name: 'String' } });
        const refused = json(assertExit(await svc('db', 'schema', 'generate', '--json'), 2));
        assert.equal(refused.code, 'rename_undecided');
        assert.deepEqual(refused.nextActions, ['--rename users.name:full_name or --drop users.name']);
        assertExit(await svc('db', 'schema', 'generate', '--rename', 'users.name:full_name'));
        assertExit(await svc('db', 'migrate'));
        assert.deepEqual(await query('select full_name from users'), [{ full_name: 'Ada' }]);
      }),
    LONG,
  );

  test(
    `${engine.name}: a failed migration reports where it failed and what remains`,
    () =>
      onEngine(async ({ svc, schema, write }, query) => {
        schema(users);
        assertExit(await svc('db', 'schema', 'generate'));
        const created = assertExit(await svc('db', 'migrate', 'create', 'break it')).stdout.trim();
        assert.match(created, /_break_it\.json$/);
        const tag = tagOf(created);
        const sql = (statement: string) => ({ type: 'raw', dialect, statement });
        write(created, {
          tag,
          name: 'break_it',
          up: [sql('CREATE TABLE a (x int)'), sql('CREATE TABLE b (x int)'), sql('SELECT nope')],
          down: [],
        });
        const isTransactional = capabilities.transactionalDdl;
        const failed = assertExit(await svc('db', 'migrate'), isTransactional ? 1 : 6);
        assert.match(failed.stderr, /why .*(42703|1054)/);
        assert.match(
          failed.stderr,
          isTransactional ? /state .*None of it took effect; 1 of 2/ : /state .*2 of 3 steps are committed/,
        );
        assert.deepEqual(
          (await query(tables('a', 'b', 'users'))).map(({ name }) => name),
          isTransactional ? ['users'] : ['a', 'b', 'users'],
        );
        if (!isTransactional) {
          assertExit(await svc('db', 'migrate', 'status', '--check'), 6);
          await query('DROP TABLE a');
          await query('DROP TABLE b');
          assertExit(await svc('db', 'migrate', 'resolve', tag, '--rolled-back'));
        }
        write(created, { tag, name: 'break_it', up: [], down: [] });
        assert.match(assertExit(await svc('db', 'migrate'), 2).stderr, /no operations yet/);
        write(created, { tag, name: 'break_it', up: [sql('CREATE TABLE a (x int)')], down: [sql('DROP TABLE a')] });
        assertExit(await svc('db', 'migrate'));
      }),
    LONG,
  );

  test(
    `${engine.name}: an existing database is adopted in two commands`,
    () =>
      onEngine(async ({ svc, schema, files, read }, query) => {
        await query(existingTables);
        await query("insert into teams (title) values ('red')");
        const pulled = assertExit(await svc('db', 'schema', 'pull'));
        assert.equal(files().length, 1);
        assert.match(pulled.stdout, /schema\.json\n$/);
        assertExit(await svc('db', 'migrate', 'baseline'));
        assert.match(assertExit(await svc('db', 'schema', 'generate')).stdout, /^Nothing to generate/);
        assert.match(assertExit(await svc('db', 'migrate', 'status', '--check')).stdout, /^OK/);
        assert.match(assertExit(await svc('db', 'schema', 'check')).stdout, /^OK/);
        const [entry] = JSON.parse(read('svc/database/schema.json'));
        schema({ ...entry, tables: { ...entry.tables, teams: { ...entry.tables.teams, motto: 'Text' } } }.tables);
        assert.deepEqual(await query('select title from teams'), [{ title: 'red' }]);
      }),
    LONG,
  );

  test(
    `${engine.name}: check reports manual changes`,
    () =>
      onEngine(async ({ svc, schema }, query) => {
        schema(users);
        assertExit(await svc('db', 'schema', 'generate'));
        assertExit(await svc('db', 'migrate'));
        await query(
          'alter table users drop column email; alter table users add column nick int; create table stray (id int primary key)',
        );
        const drift = assertExit(await svc('db', 'schema', 'check', '--strict'), 5).stdout;
        for (const part of [
          'DRIFT  main (dev)',
          'field users.email is missing',
          'field users.nick is not expected',
          'table stray is not expected',
        ])
          assert.ok(drift.includes(part), drift);
        const { code, databases } = json(
          assertExit(await svc('db', 'schema', 'check', '--ignore', 'stray', '--json'), 5),
        );
        assert.equal(code, 'drift');
        assert.equal(databases[0].differences.length, 2);
      }),
    LONG,
  );
}
