import * as assert from 'node:assert/strict';
import { CreatedTables } from '../core/migration/affected-collections.ts';
import { compileOperation } from '../core/migration/compile-operation.ts';
import { migrate } from '../core/migration/migrate.ts';
import type { Migration } from '../core/migration/migration.ts';
import type { Target } from '../core/migration/target.ts';
import type { Operation } from '../core/schema/operation.ts';
import { dynamodb } from '../plugins/dialects/dynamodb/dialect.ts';
import { sqlEngines, type TestEngine } from './kit/engines.ts';
import { definedInCode } from './kit/migrations.ts';
import { assertExit, json, LONG, project } from './kit/project.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';

/*
 * A field is renamed in two halves. Between them, old programs write one name and new programs the other, and both read what
 * either has written.
 */

for (const engine of sqlEngines) {
  if (engine.missing !== undefined) test.skip(`two names for a field on ${engine.name}`, engine.missing);
  else {
    if (engine.name === 'postgresql' || engine.name === 'mysql') testCommands(engine);
    testRefusals(engine);
  }
}

const id = { type: 'Integer', primaryKey: true, autoGenerate: true } as const;
const before = {
  teams: { id, name: { type: 'String', unique: true } },
  users: {
    id,
    name: { type: 'String', length: 40, required: true, unique: true, default: 'anon' },
    nick: { type: 'String', length: 40 },
  },
} as const;
const { name, nick } = before.users;
const after = { ...before, users: { id, full_name: name, nickname: nick } };

/** Each statement on a connection of its own, as another program: a command opens an embedded database alone. */
async function run(engine: TestEngine, url: string, ...texts: readonly string[]): Promise<readonly object[]> {
  const { connection } = await connectTarget(engine.dialect, url);
  try {
    let rows: readonly object[] = [];
    for (const text of texts) rows = await connection.query(text);
    return rows;
  } finally {
    await connection.close();
  }
}

function testCommands(engine: TestEngine): void {
  test(
    `${engine.name}: generate --expand, migrate and contract, and both rollbacks`,
    () =>
      engine.withUrl(async (url) => {
        const { svc, schema, files, read } = project({ main: url });
        const sql = (...texts: readonly string[]) => run(engine, url, ...texts);
        schema(before);
        assertExit(await svc('db', 'schema', 'generate'));
        assertExit(await svc('db', 'migrate'));
        await sql("INSERT INTO users (name, nick) VALUES ('a', 'x')", "INSERT INTO users (name) VALUES ('b')");

        schema(after);
        const flags = ['--rename', 'users.name:full_name', '--rename', 'users.nick:nickname'];
        const generated = assertExit(await svc('db', 'schema', 'generate', ...flags, '--expand', '--json'));
        const [, expand = '', contract = ''] = files();
        assert.deepEqual(files().length, 3, generated.stdout);
        assert.match(expand, /_expand_/);
        const half: Migration = JSON.parse(read(`svc/database/migrations/main/${contract}`));
        assert.equal(`${half.contracts}.json`, expand);
        assert.match(assertExit(await svc('db', 'schema', 'generate')).stdout, /Nothing to generate/);

        const early = assertExit(await svc('db', 'migrate', 'contract'));
        assert.match(early.stdout, /Nothing to contract/);
        assert.match(early.stderr, new RegExp(`${half.tag}: first svc db migrate`));
        const ran = assertExit(await svc('db', 'migrate', '--json'));
        assert.deepEqual(json(ran).databases[0].contracts, [half.tag]);
        const status = assertExit(await svc('db', 'migrate', 'status', '--check'));
        assert.match(status.stdout, new RegExp(`\\[c\\] ${half.tag}  waits for svc db migrate contract`));
        assert.match(assertExit(await svc('db', 'migrate')).stdout, /Nothing to do/);
        assertExit(await svc('db', 'schema', 'check'));
        const script = assertExit(await svc('db', 'schema', 'diff', '--from', 'main', '--to', 'files')).stdout;
        assert.match(script, /DROP TRIGGER[^;]*;(.|\n)*DROP COLUMN/);

        await sql(
          "INSERT INTO users (name) VALUES ('old')",
          "INSERT INTO users (full_name, nickname) VALUES ('new', 'y')",
          "INSERT INTO users (nick) VALUES ('z')",
          "UPDATE users SET name = 'Old' WHERE name = 'old'",
          "UPDATE users SET full_name = 'New' WHERE name = 'new'",
          "UPDATE users SET nickname = NULL WHERE nick = 'x'",
          "UPDATE users SET nick = 'w' WHERE full_name = 'b'",
        );
        const written = [
          ['New', 'y'],
          ['Old', null],
          ['a', null],
          ['anon', 'z'],
          ['b', 'w'],
        ].map(([name, nick]) => ({ name, full_name: name, nick, nickname: nick }));
        const both = 'SELECT name, full_name, nick, nickname FROM users ORDER BY id';
        const byName = (rows: readonly object[]) =>
          rows.map((row) => ({ ...row })).sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
        assert.deepEqual(byName(await sql(both)), byName(written));

        assert.match(assertExit(await svc('db', 'migrate', 'contract', '--dry-run')).stdout, /DROP COLUMN/);
        const contracted = assertExit(await svc('db', 'migrate', 'contract', '--json'));
        assert.deepEqual(
          json(contracted).databases[0].migrations.map(({ tag }: { tag: string }) => tag),
          [half.tag],
        );
        assert.deepEqual(json(contracted).databases[0].contracts, []);
        assertExit(await svc('db', 'schema', 'check'));
        await sql(
          "UPDATE users SET full_name = 'd' WHERE full_name = 'anon'",
          "INSERT INTO users (nickname) VALUES ('v')",
        );
        await assert.rejects(async () => sql('SELECT name FROM users'));

        assertExit(await svc('db', 'migrate', 'rollback', '--yes'));
        await sql(
          "INSERT INTO users (full_name) VALUES ('back')",
          "UPDATE users SET nick = 'u' WHERE name = 'anon' AND nick = 'v'",
        );
        const rows = (await sql(both)) as readonly Record<string, unknown>[];
        assert.equal(rows.length, 7);
        for (const row of rows) assert.deepEqual([row.name, row.nick], [row.full_name, row.nickname]);
        assertExit(await svc('db', 'schema', 'check'));
        assertExit(await svc('db', 'migrate', 'rollback', '--yes'));
        assertExit(await svc('db', 'schema', 'check'));
        assert.equal((await sql('SELECT name, nick FROM users')).length, 7);
        await sql("INSERT INTO users (name) VALUES ('last')");
      }),
    LONG,
  );
}

function testRefusals(engine: TestEngine): void {
  test(`${engine.name}: while a field has two names, nothing breaks its trigger, and no value is lost`, () =>
    engine.withDatabase(async (target) => {
      const collection = 'users';
      const setup: Migration = {
        tag: '20260101_000000_setup',
        name: 'setup',
        up: [
          {
            type: 'createCollection',
            name: collection,
            fields: [
              { name: 'id', type: 'integer', primaryKey: true },
              { name: 'name', type: 'string', length: 20 },
            ],
          },
          { type: 'addField', collection, field: { name: 'full_name', type: 'string', length: 20 }, mirrors: 'name' },
        ],
        down: [{ type: 'dropCollection', collection }],
      };
      const started = [definedInCode(setup)];
      await migrate(target, started);
      const attempt = (...up: Operation[]) =>
        migrate(
          target,
          [...started, definedInCode({ tag: '20260102_000000_next', name: 'next', up, down: [], irreversible: 'No.' })],
          { allowDestructive: true },
        );
      const refused: readonly Operation[] = [
        { type: 'dropField', collection, field: 'name' },
        { type: 'renameField', collection, from: 'full_name', to: 'title' },
        { type: 'modifyField', collection, field: 'name', changes: { length: 40 } },
        { type: 'modifyField', collection, field: 'name', changes: { default: 'x' } },
        { type: 'renameCollection', collection, to: 'people' },
        { type: 'dropCollection', collection },
        { type: 'addField', collection, field: { name: 'third', type: 'string', length: 20 }, mirrors: 'name' },
      ];
      for (const operation of refused)
        await assert.rejects(attempt(operation), { code: 'field_in_use' }, JSON.stringify(operation));
      const invalid: readonly Operation[] = [
        { type: 'dropField', collection, field: 'name', mirrors: 'id' },
        { type: 'addField', collection, field: { name: 'key', type: 'bigint' }, mirrors: 'id' },
        { type: 'addField', collection, field: { name: 'key', type: 'integer' }, mirrors: 'id' },
      ];
      for (const operation of invalid)
        await assert.rejects(attempt(operation), { code: 'field_invalid' }, JSON.stringify(operation));

      await target.connection.query("INSERT INTO users (id, name) VALUES (1, 'a')");
      await withoutTriggers(engine, target, () => target.connection.query("UPDATE users SET name = 'b'"));
      const drop: Operation = { type: 'dropField', collection, field: 'name', mirrors: 'full_name' };
      await assert.rejects(attempt(drop), { code: 'data_violates' });
      assert.equal((await target.connection.query('SELECT name, full_name FROM users'))[0]?.name, 'b');
      await target.connection.query("UPDATE users SET full_name = 'c', name = 'c'");
      await attempt(drop);
      assert.equal((await target.connection.query('SELECT full_name FROM users'))[0]?.full_name, 'c');
    }));
}

/** MySQL cannot disable them; those that are dropped do not come back. */
async function withoutTriggers(
  engine: TestEngine,
  { connection }: Target,
  work: () => Promise<unknown>,
): Promise<void> {
  if (engine.dialect.name === 'postgresql') {
    await connection.query('ALTER TABLE users DISABLE TRIGGER USER');
    await work();
    await connection.query('ALTER TABLE users ENABLE TRIGGER USER');
    return;
  }
  const triggers = 'SELECT trigger_name AS t FROM information_schema.triggers WHERE trigger_schema = DATABASE()';
  for (const { t } of await connection.query(triggers)) await connection.query(`DROP TRIGGER ${t}`);
  await work();
}

test('generate --expand says what it cannot split, and what to do', async () => {
  const { svc, schema, files } = project({ main: 'postgresql://user@127.0.0.1:1/none' });
  const generate = (...flags: readonly string[]) => svc('db', 'schema', 'generate', ...flags);
  const refused = async (next: string, ...flags: readonly string[]) => {
    const { stderr } = assertExit(await generate(...flags), 2);
    assert.ok(stderr.includes(next), stderr);
    assert.equal(files().length, 1);
  };
  schema(before);
  assertExit(await generate());
  schema({ ...before, users: { ...before.users, age: 'Integer' } });
  await refused('svc db schema generate --rename <table>.<old field>:<new field> --expand', '--expand');
  schema({ teams: before.teams, people: after.users });
  const names = ['--rename', 'people.name:full_name', '--rename', 'people.nick:nickname'];
  const table = ['--rename', 'users:people'];
  await refused('First rename the table, without --expand: --rename users:people', ...table, ...names, '--expand');
  schema({ ...before, users: { id, nick: name } });
  await refused('or rename it without --expand', '--rename', 'users.name:nick', '--expand');
  schema({ teams: before.teams, people: before.users });
  assertExit(await generate(...table));
  schema({ teams: before.teams, people: after.users });
  assertExit(await generate(...names, '--expand'));
  assert.equal(files().length, 4);
});

test('an engine without triggers refuses two names for a field', async () => {
  const { svc, schema, files } = project({ main: 'dynamodb://eu-west-1/none' });
  const keyed = (field: string) => ({ users: { id: { type: 'String', primaryKey: true }, [field]: 'String' } });
  schema(keyed('name'));
  assertExit(await svc('db', 'schema', 'generate'));
  schema(keyed('full_name'));
  const rename = ['db', 'schema', 'generate', '--rename', 'users.name:full_name'];
  const { stderr } = assertExit(await svc(...rename, '--expand'), 2);
  assert.match(stderr, /not_supported/);
  assert.match(stderr, /without --expand or "mirrors"/);
  assertExit(await svc(...rename));
  assert.equal(files().length, 2);

  const operation = { type: 'addField', collection: 'a', field: { name: 'b', type: 'string' }, mirrors: 'c' } as const;
  await assert.rejects(
    compileOperation({ dialect: dynamodb } as never, operation, new Map(), { created: new CreatedTables() }),
    { code: 'not_supported' },
  );
});
