import * as assert from 'node:assert/strict';
import { schemaDifference } from '../config/project/schema-difference.ts';
import type { Connection } from '../core/dialect.ts';
import type { SchemaModel } from '../core/schema/model.ts';
import { assertDistinctNames } from '../core/schema/names.ts';
import type { FieldDefinition } from '../core/schema/operation.ts';
import { NO_RENAMES } from '../core/schema/rename/renames.ts';
import { svc } from './kit/cli.ts';
import { docsBlocks } from './kit/docs-blocks.ts';
import { committingEngines, engines, sqlEngines, type TestEngine } from './kit/engines.ts';
import { folder } from './kit/folder.ts';
import { postgresql } from './kit/object-files.ts';
import { assertExit, id, json, LONG, type Project, project, tagOf } from './kit/project.ts';
import { sixEngines } from './kit/six-engines.ts';
import { test } from './kit/test.ts';
import { applyMoves, CHOICES, namesFor, randomMoves } from './suites/random-schema.ts';

/** `svc db schema diff`: two of databases, the schema file and the history. */

const BEFORE = { users: { id, email: { type: 'String', required: true, unique: true }, gone: 'boolean' }, old: { id } };
const AFTER = {
  users: {
    id,
    email: { type: 'String', length: 80, required: true, unique: true },
    n: { type: 'integer', default: 3 },
  },
  posts: { id, author: { type: 'Integer', references: { table: 'users', column: 'id' } } },
};
const VIEW = 'svc/database/objects/main/view/mails.sql';

const diff = (shop: Project, from: string, to: string, ...more: readonly string[]) =>
  shop.svc('db', 'schema', 'diff', '--from', from, '--to', to, ...more);

/** The statements that lead from one to the other. */
async function statements(shop: Project, from: string, to: string, ...more: readonly string[]): Promise<string[]> {
  const { changes } = json(assertExit(await diff(shop, from, to, '--json', ...more)));
  return changes.flatMap((change: { statements: { text: string }[] }) => change.statements.map(({ text }) => text));
}

async function assertSame(shop: Project, from: string, to: string, ...more: readonly string[]): Promise<void> {
  assert.equal(assertExit(await diff(shop, from, to, '--exit-code', ...more)).stdout, '');
}

type Connect = Parameters<Parameters<TestEngine['withUrl']>[0]>[1];

/** Runs statements as they were printed. */
async function run(connect: Connect, texts: readonly string[]): Promise<void> {
  const { connection } = await connect();
  for (const text of texts) await connection.query(text);
  await connection.close();
}

async function migrated(shop: Project, tables: object): Promise<void> {
  shop.schema(tables);
  assertExit(await shop.svc('db', 'schema', 'generate'));
  assertExit(await shop.svc('db', 'migrate'));
}

function on(list: readonly TestEngine[], title: string, body: Parameters<TestEngine['withUrl']>[0]): void {
  for (const engine of list) {
    if (engine.missing === undefined) test(`${engine.name}: ${title}`, () => engine.withUrl(body), LONG);
    else test.skip(`${engine.name}: ${title}`, engine.missing);
  }
}

on(
  [...engines.slice(1), ...committingEngines.slice(0, 1)],
  'statements make a database into the schema file, and back',
  async (url, connect) => {
    const shop = project({ main: url });
    await migrated(shop, BEFORE);
    shop.schema(AFTER);
    shop.write(VIEW, 'create view mails as select id, email from users where n > 2;\n');
    const different = assertExit(await diff(shop, 'main', 'files', '--exit-code'), 5).stdout;
    assert.match(different, /^-- destroys data:\nDROP TABLE .old.;$/m);
    assert.match(different, /^create view mails as/m);
    const there = await statements(shop, 'main', 'files');
    assert.deepEqual(there, await statements(shop, 'migrations', 'files'));
    await run(connect, there);
    await assertSame(shop, 'files', 'main');
    assertExit(await shop.svc('db', 'schema', 'check'), 5);
    await run(connect, await statements(shop, 'main', 'migrations'));
    await assertSame(shop, 'main@prd', 'migrations');
    assert.match(assertExit(await shop.svc('db', 'schema', 'check', '--strict')).stdout, /^OK/);
  },
);

/** Types, expressions, indexes and objects that the server spells in its own way. */
const GROWN: Readonly<Record<string, readonly string[]>> = {
  postgresql: [
    `create type mood as enum ('sad', 'ok', 'happy')`,
    `create domain positive as integer check (value > 0)`,
    `create function slug(t text) returns text language sql immutable as $$ select lower(t) $$`,
    `create table users (id int primary key, name text not null default slug('A b'), mood mood not null default 'ok',
      age positive, at timestamptz default now(), price numeric(12,2) check (price > 0 and price < 1e6), check (slug(name) <> ''))`,
    `create index users_slug on users (slug(name)) where age > 3`,
    `create table posts (id serial primary key, user_id int references users (id) on delete cascade, tags text[])`,
    `create index posts_tags on posts using gin (tags)`,
    `create view active as select u.id, u.name, count(p.id) as posts from users u left join posts p on p.user_id = u.id group by u.id`,
    `create materialized view totals as select user_id, count(*) as posts from posts group by user_id`,
    `create unique index totals_user on totals (user_id)`,
    `create function touch() returns trigger language plpgsql as $$ begin new.at := now(); return new; end $$`,
    `create trigger touch before update of name on users for each row execute function touch()`,
  ],
  mysql: [
    `create table users (id int unsigned primary key auto_increment, name varchar(40) not null default 'A b',
      mood enum('sad', 'ok') not null default 'ok', seen timestamp null default current_timestamp on update current_timestamp,
      price decimal(12,2) check (price > 0), low varchar(40) as (lower(name)) stored)`,
    `create index users_low on users (low(10) desc)`,
    `create table posts (id bigint primary key, user_id int unsigned, constraint author foreign key (user_id) references users (id) on delete cascade)`,
    `create view active as select u.id, u.name, count(p.id) as posts from users u left join posts p on p.user_id = u.id group by u.id`,
    `create trigger lower_name before insert on users for each row set new.name = trim(new.name)`,
  ],
};

for (const engine of sqlEngines.filter(({ name }) => name !== 'pglite')) {
  const title = `${engine.name}: two databases by URL, without a project: the statements make one into the other`;
  if (engine.missing !== undefined) {
    test.skip(title, engine.missing);
    continue;
  }
  test(
    title,
    () =>
      engine.withUrl((grown, connectGrown) =>
        engine.withUrl(async (empty, connectEmpty) => {
          await run(connectGrown, GROWN[engine.name === 'postgresql' ? 'postgresql' : 'mysql'] ?? []);
          const cwd = folder({});
          const none: Project = { ...project({}), svc: (...args) => svc(args, { cwd }) };
          const dialect = ['--dialect', engine.name];
          await run(connectEmpty, await statements(none, empty, grown, ...dialect));
          await assertSame(none, empty, grown, ...dialect);
          await run(connectEmpty, await statements(none, empty, 'empty', ...dialect));
          await assertSame(none, empty, 'empty', ...dialect);
        }),
      ),
    LONG,
  );
}

const MOVED = (
  labels: string,
  limit: number,
) => `create type mood as enum (${labels}); create domain price as int check (value > ${limit});
create schema billing; create type billing.state as enum ('open');
create table billing.invoices (id int primary key, state billing.state default 'open', check (state = 'open'));
create view billing.open as select id, 'open'::billing.state as state from billing.invoices;
create table users (id int primary key, mood mood not null default 'ok', moods mood[], price price)`;

on(
  postgresql.filter(({ name }) => name !== 'pglite'),
  'types that are made again, with their fields, and a schema that one side lacks',
  async (first, connectFirst) => {
    const [other] = postgresql;
    await other?.withUrl(async (second, connectSecond) => {
      const cwd = folder({});
      const none: Project = { ...project({}), svc: (...args) => svc(args, { cwd }) };
      const listed = ['--schemas', 'public,billing'];
      await run(connectFirst, [MOVED(`'ok', 'sad'`, 0)]);
      const made = await statements(none, second, first, ...listed);
      assert.match(made.join('\n'), /CREATE SCHEMA IF NOT EXISTS billing/);
      await run(connectSecond, made);
      await assertSame(none, second, first, ...listed);
      await run(connectSecond, [
        'drop schema billing cascade; drop table users; drop type mood; drop domain price',
        MOVED(`'ok', 'glad'`, 1),
      ]);
      await run(connectSecond, ["insert into users values (1, 'ok', '{ok}', 2)"]);
      await run(connectSecond, await statements(none, second, first, ...listed));
      await assertSame(none, second, first, ...listed);
      await run(connectSecond, await statements(none, second, 'empty', ...listed));
      await assertSame(none, second, 'empty', ...listed);
    });
  },
);

for (const engine of sixEngines.filter(({ name }) => !['postgresql', 'mysql', 'mariadb'].includes(name))) {
  const title = `${engine.name}: a database, the schema file and the history as of a migration`;
  if (engine.missing !== undefined) {
    test.skip(title, engine.missing);
    continue;
  }
  test(
    title,
    async () => {
      const { url, drop } = await engine.createDatabase();
      try {
        const shop = project({}, { databases: { main: { dialect: engine.name, url } } });
        const key = { type: 'String', length: 40, primaryKey: true };
        await migrated(shop, { users: { id: key, email: { type: 'String', length: 60 } } });
        const [first] = shop.files();
        const more = { email: { type: 'String', length: 60 }, age: 'Integer' };
        await migrated(shop, [
          {
            db: 'main',
            tables: { users: { id: key, ...more } },
            indexes: { users: [{ columns: ['email'], name: 'mails' }] },
          },
        ]);
        const types = async (from: string, to: string): Promise<readonly string[]> =>
          json(assertExit(await diff(shop, from, to, '--json'))).changes.map(
            ({ operation }: { operation: { type: string } }) => operation.type,
          );
        assert.deepEqual(await types(url, 'files'), []);
        assert.deepEqual(await types(tagOf(first), 'main'), ['addField', 'createIndex']);
        assert.deepEqual(await types('main', tagOf(first)), ['dropIndex', 'dropField']);
        assert.notEqual(assertExit(await diff(shop, tagOf(first), 'main')).stdout, '');
      } finally {
        await drop();
      }
    },
    LONG,
  );
}

test('the schema file and the history are compared without a database, as the page says', async () => {
  const shop = project({ main: 'postgresql://nobody:secret@127.0.0.1:1/none' });
  shop.schema(BEFORE);
  assertExit(await shop.svc('db', 'schema', 'generate'));
  const [file] = shop.files();
  const tag = tagOf(file);
  shop.schema({ people: BEFORE.users, old: { id, title: 'string' } });
  const renamed = assertExit(await diff(shop, tag, 'files'));
  assert.match(renamed.stdout, /DROP TABLE "users"/);
  assert.match(renamed.stderr, /"users" was removed and "people" added\. If that is a rename: --rename users:people/);
  assert.match(
    assertExit(await diff(shop, tag, 'files', '--rename', 'users:people')).stdout,
    /^ALTER TABLE "users" RENAME/m,
  );
  assert.match(
    assertExit(await diff(shop, 'files', tag, '--rename', 'people:users')).stdout,
    /^ALTER TABLE "people" RENAME/m,
  );
  const block = docsBlocks().find(({ page, language }) => page === 'docs/reference/commands.md' && language === 'sh');
  const [, args = ''] = /^npx svc (.*)$/.exec(block?.text.trim() ?? '') ?? [];
  assert.match(assertExit(await shop.svc(...args.split(' '))).stdout, /CREATE TABLE "people"/);
  assert.deepEqual(
    JSON.parse(
      assertExit(await diff(shop, tag, 'files', '--operations', '--ignore', 'users', '--ignore', 'people')).stdout,
    ),
    [{ type: 'addField', collection: 'old', field: { name: 'title', type: 'string' } }],
  );
  const unknown = assertExit(await diff(shop, `${tag}x`, 'files'), 2).stderr;
  assert.match(unknown, new RegExp(`migration_unknown.*\n.*\n.*Did you mean "${tag}"`));
  assert.match(assertExit(await diff(shop, 'main@nowhere', 'files'), 2).stderr, /env_unknown/);
  assert.match(
    assertExit(await diff(shop, 'files', 'mysql://root:hidden@127.0.0.1/shop'), 2).stderr,
    /postgresql cannot be compared/,
  );
  assert.match(assertExit(await diff(shop, 'empty', 'empty'), 2).stderr, /Both sides are empty/);
  assert.match(assertExit(await diff(shop, 'nothing://x', 'empty'), 2).stderr, /No dialect has URLs/);
  const refused = await diff(shop, 'main', 'files');
  assert.equal(refused.status, 1);
  assert.doesNotMatch(refused.stdout + refused.stderr, /secret/);
});

on(engines.slice(0, 1), 'random schemas: the statements make one into the other', async (_url, connect) => {
  const { connection, dialect } = await connect();
  const isComplete = ({ type, precision, scale }: FieldDefinition) =>
    type !== 'decimal' || (precision !== undefined && scale !== undefined);
  const choices = { ...CHOICES, names: namesFor(dialect), fields: CHOICES.fields.filter(isComplete) };
  let compared = 0;
  for (let seed = 1; seed <= 40; seed += 1) {
    const from = applyMoves(randomMoves(30, seed, choices), new Map(), choices).model;
    const to = applyMoves(randomMoves(12, -seed, choices), from, choices).model;
    if (![from, to].every(hasDistinctNames)) continue;
    compared += 1;
    await create(connection, { from: await connection.introspect(), to: from });
    await create(connection, { from: await connection.introspect(), to });
    const normal = await connection.normalize(to);
    assert.deepEqual(await connection.introspect(), normal, `seed ${seed}`);
  }
  assert.ok(compared > 10);

  function hasDistinctNames(model: SchemaModel): boolean {
    try {
      assertDistinctNames(dialect.name, dialect.capabilities.names, model);
      return true;
    } catch {
      return false;
    }
  }

  async function create(on: Connection, models: Record<'from' | 'to', SchemaModel>) {
    const { changes, unchangeable } = await schemaDifference({
      dialect,
      from: { model: models.from, objects: new Map(), connection: on },
      to: { model: models.to, objects: new Map() },
      renames: NO_RENAMES,
    });
    assert.deepEqual(unchangeable, []);
    for (const { statements: all, refusal } of changes) {
      assert.equal(refusal, undefined);
      for (const { text } of all) await on.query(text);
    }
  }
});

on(committingEngines.slice(0, 1), 'what the catalog alone knows of a column is kept', async (url, connect) => {
  const shop = project({ main: url });
  await run(connect, [
    `create table legacy (id int primary key, name varchar(40) charset latin1 comment 'of the user')`,
  ]);
  shop.schema({
    legacy: {
      id: { type: 'Integer', primaryKey: true },
      name: { type: 'String', length: 90, native: 'varchar(90) character set latin1', comment: 'of the user' },
    },
  });
  assert.match(assertExit(await diff(shop, 'main', 'files')).stdout, /varchar\(90\).*latin1.*COMMENT 'of the user'/s);
  await run(connect, await statements(shop, 'main', 'files'));
  await assertSame(shop, 'main', 'files');
});
