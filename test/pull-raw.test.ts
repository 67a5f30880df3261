import * as assert from 'node:assert/strict';
import { engines, sqlEngines } from './kit/engines.ts';
import { assertExit, id, json, LONG, project } from './kit/project.ts';
import { test } from './kit/test.ts';

const MIGRATIONS = 'svc/database/migrations/main';

const users = { users: { id, email: { type: 'String', length: 100, required: true } } };

/** What the raw statements of `rawFile` make. */
const MADE = [
  {
    type: 'createCollection',
    name: 'readings',
    fields: [
      { name: 'id', type: 'integer', primaryKey: true },
      { name: 'value', type: 'integer' },
    ],
  },
  { type: 'addField', collection: 'users', field: { name: 'nick', type: 'string', length: 20 } },
  { type: 'createIndex', collection: 'users', index: 'by_email', columns: [{ name: 'email' }] },
];

const RAW = [
  'CREATE TABLE readings (id int PRIMARY KEY, value int)',
  'ALTER TABLE users ADD COLUMN nick varchar(20)',
  'CREATE INDEX by_email ON users (email)',
];

for (const engine of sqlEngines) {
  const what = `${engine.name}: what raw statements made is not pulled, and declared with makes on every database`;
  if (engine.missing !== undefined) {
    test.skip(what, engine.missing);
    continue;
  }
  const dialect = engine.dialect.name;
  const raw = (statement: string, makes?: object) => ({ type: 'raw', dialect, statement, ...(makes && { makes }) });
  test(
    what,
    () =>
      engine.withUrl(async (url) => {
        const { svc, schema, write, files, read } = project({ main: url });
        schema(users);
        assertExit(await svc('db', 'schema', 'generate'));
        const rawTag = '29990101_000000_raw';
        write(`${MIGRATIONS}/${rawTag}.json`, { tag: rawTag, up: RAW.map((text) => raw(text)), down: [] });
        assertExit(await svc('db', 'migrate'));

        const drifted = json(assertExit(await svc('db', 'schema', 'check', '--json'), 5));
        assert.equal(drifted.databases[0].differences.length, 2);
        assert.equal(drifted.nextActions.length, 1);
        assert.match(drifted.nextActions[0], /svc db migrate create.*"makes"/);

        const before = files();
        const pulled = json(assertExit(await svc('db', 'schema', 'pull', '--json')));
        assert.deepEqual(pulled.rawMade.sort(), ['readings', 'users.by_email', 'users.nick']);
        assert.equal(pulled.warnings.filter((line: string) => line.includes(rawTag)).length, 3);
        assert.deepEqual(files(), before);
        assert.match(pulled.nextActions.join(), /"makes"/);

        const says = '29990102_000000_says';
        write(`${MIGRATIONS}/${says}.json`, { tag: says, up: [raw('SELECT 1', MADE)], down: [] });
        assertExit(await svc('db', 'migrate'));
        assertExit(await svc('db', 'schema', 'check', '--strict'));
        const again = json(assertExit(await svc('db', 'schema', 'pull', '--json')));
        assert.deepEqual([again.migrations, again.rawMade], [[], []]);
        assert.deepEqual(again.tables.sort(), ['readings', 'users']);
        await engine.withUrl(async (other) => {
          const fresh = project({ main: other });
          for (const file of files()) fresh.write(`${MIGRATIONS}/${file}`, read(`${MIGRATIONS}/${file}`));
          assertExit(await fresh.svc('db', 'migrate'));
          assertExit(await fresh.svc('db', 'schema', 'check', '--strict'));
        });
      }),
    LONG,
  );
}

for (const engine of engines) {
  const what = `${engine.name}: check advises nothing that pull would leave out again`;
  if (engine.missing !== undefined) {
    test.skip(what, engine.missing);
    continue;
  }
  test(
    what,
    () =>
      engine.withUrl(async (url, connect) => {
        const execute = async (text: string) => {
          const { connection } = await connect();
          await connection.query(text);
          await connection.close();
        };
        // svc reads its default, and would not declare a generated text of less than 36 characters.
        await execute('CREATE TABLE short (a int UNIQUE, code varchar(20) DEFAULT gen_random_uuid())');
        await execute(
          "CREATE SCHEMA lib; CREATE FUNCTION lib.own(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1'",
        );
        await execute(
          'CREATE TABLE users (id int PRIMARY KEY, a int REFERENCES short (a), b int); CREATE INDEX by_b ON users (b)',
        );
        const { svc } = project({ main: url });
        assertExit(await svc('db', 'schema', 'pull'));
        assertExit(await svc('db', 'migrate', 'baseline'));
        const check = (...options: readonly string[]) => svc('db', 'schema', 'check', ...options, '--json');
        assertExit(await check());

        const strict = json(assertExit(await check('--strict'), 5));
        assert.equal(strict.nextActions.length, 1, strict.nextActions.join());
        const advised = /^svc (db schema check --strict --ignore short) {4}/.exec(strict.nextActions[0])?.[1] ?? '';
        assertExit(await svc(...advised.split(' ')));

        await execute('DROP INDEX by_b; CREATE INDEX by_b ON users (lib.own(b))');
        const changed = json(assertExit(await check(), 5));
        assert.deepEqual(changed.databases[0].differences, [
          'The table "users" has the index "by_b", which svc cannot create: it uses function lib.own(integer), which migrations do not create before it.',
        ]);
        assert.deepEqual(changed.nextActions, ['Revert users.by_b manually: svc cannot create the present form']);

        await execute('ALTER TABLE users ADD COLUMN c int');
        const both = json(assertExit(await check(), 5));
        assert.match(
          both.nextActions.join(),
          /adopt it: svc db schema pull, then svc db migrate baseline,Revert users.by_b/,
        );
        assertExit(await svc('db', 'schema', 'pull'));
        assertExit(await svc('db', 'migrate', 'baseline'));
        assert.equal(json(assertExit(await check(), 5)).databases[0].differences.length, 1);
        await execute('DROP INDEX by_b; CREATE INDEX by_b ON users (b)');
        assertExit(await check());
      }),
    LONG,
  );
}
