import * as assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { docsBlocks } from './kit/docs-blocks.ts';
import { committingEngines } from './kit/engines.ts';
import { adopted, makeAgain, OBJECTS, on, types } from './kit/object-files.ts';
import { assertExit, json } from './kit/project.ts';
import { svcHere } from './kit/svc-here.ts';

/** Views, functions, triggers and types: a file each, through the command line, on databases with rows. */

const SCHEMA = 'svc/database/schema.json';

const GROWN = `
create type mood as enum ('sad', 'ok', 'happy');
create type price as (amount numeric(12,2), currency text);
create domain positive as integer check (value > 0);
comment on domain positive is 'more than nothing';
create sequence tickets start 1000 increment 5;
create function slug(t text) returns text language sql immutable as $$ select lower(regexp_replace(t, '[^a-z]+', '-', 'gi')) $$;
create function touch() returns trigger language plpgsql as $$ begin new.updated_at := now(); return new; end $$;
comment on function touch() is 'sets updated_at';
create function twice(a int) returns int language sql as 'select a * 2';
create function twice(a text) returns text language sql as 'select a || a';
create procedure nothing() language plpgsql as $$ begin end $$;
create table users (id int primary key, name text not null default slug('A b'), mood mood not null default 'ok', moods mood[],
  price price, age positive, ticket int default nextval('tickets'), updated_at timestamptz, check (slug(name) <> ''));
create index users_slug on users (slug(name));
create table posts (id int primary key, user_id int references users (id), title text, views int);
create trigger touch before update of name on users for each row when (old.name <> new.name) execute function touch();
create constraint trigger late after insert on posts deferrable initially deferred for each row execute function touch();
alter table posts disable trigger late;
create view active as select u.id, u.name, u.mood, count(p.id) as posts from users u left join posts p on p.user_id = u.id group by u.id;
comment on view active is 'who wrote';
comment on column active.posts is 'how many';
alter view active alter column name set default 'none';
create view very_active with (security_barrier = true) as select * from active where posts > 10;
create materialized view totals as select user_id, sum(views) as views from posts group by user_id;
create unique index totals_user on totals (user_id);
create trigger instead instead of insert on active for each row execute function touch();
create rule protect as on delete to posts do instead nothing;
alter table posts add constraint once exclude using gist (int4range(id, id + 1) with &&) where (id > 1000);
create statistics posts_views (dependencies) on user_id, views from posts;
alter table posts enable row level security;
alter table posts force row level security;
create policy own on posts as restrictive for select using (user_id > 0);
create function author(p posts) returns users language sql stable as $$ select * from users where id = p.user_id $$;
`;

const ROWS = `
insert into users (id, name, mood, moods, age) values (1, 'Ann', 'happy', '{sad,ok}', 4), (2, 'Ben', 'sad', null, null);
insert into posts (id, user_id, views) values (1, 1, 7), (2, 1, 1), (3, 2, 5);
`;

on(
  'a database with objects is pulled, made again from its files, and rolled back to nothing',
  (fixture, engine) => makeAgain(fixture, engine, async (made) => void (await made.query(ROWS))),
  GROWN,
);

on(
  'what reads a field is moved aside when its type changes, and keeps its grants, comments and indexes',
  async (fixture) => {
    const { svc, edit, query } = fixture;
    await adopted(fixture);
    await query('create role svc_reader').catch(() => undefined);
    await query(
      'grant select on active to svc_reader with grant option; grant select on totals to public; grant select (name) on very_active to svc_reader',
    );
    const before = await fixture.objects();
    const grants = () =>
      query(
        "select relname, relacl::text as acl, (select string_agg(attname || attacl::text, ' ') from pg_attribute a where a.attrelid = c.oid) as fields, pg_get_userbyid(relowner) as owner from pg_class c where relkind in ('v', 'm') and relnamespace = current_schema()::regnamespace order by 1",
      );
    const granted = await grants();
    assert.deepEqual(
      granted.map(({ relname }) => relname),
      ['active', 'totals', 'very_active'],
    );

    edit(SCHEMA, (text) => {
      const [entry] = JSON.parse(text);
      const { users, posts } = entry.tables;
      posts.views = { type: 'BigInt' };
      users.name = { ...users.name, type: 'String', length: 80 };
      return JSON.stringify([entry]);
    });
    edit(`${OBJECTS}/view/active.sql`, (text) => text.replace('u.mood,', "u.mood, 'new' AS added,"));
    assertExit(await svc('db', 'schema', 'generate'));
    const planned = types(fixture);
    const order = (...keys: readonly string[]) => keys.map((key) => planned.indexOf(key));
    for (const places of [
      order(
        'dropObject view/very_active',
        'dropObject view/active',
        'modifyField users',
        'createObject view/active',
        'createObject view/very_active',
      ),
      order(
        'dropObject trigger/active.instead',
        'dropObject view/active',
        'createObject view/active',
        'createObject trigger/active.instead',
      ),
      order('dropObject trigger/users.touch', 'modifyField users', 'createObject trigger/users.touch'),
      order('dropObject materialized_view/totals', 'modifyField posts', 'createObject materialized_view/totals'),
    ]) {
      assert.ok(!places.includes(-1), planned.join('\n'));
      assert.deepEqual(
        places,
        [...places].sort((a, b) => a - b),
        planned.join('\n'),
      );
    }
    assert.match(
      assertExit(await svc('db', 'migrate', '--dry-run')).stdout,
      /DROP MATERIALIZED VIEW "totals"[\s\S]*ALTER TABLE "posts"[\s\S]*CREATE MATERIALIZED VIEW totals/,
    );
    assertExit(await svc('db', 'migrate', '--allow-destructive'));
    assert.match(assertExit(await svc('db', 'schema', 'check')).stdout, /^OK/);
    assert.deepEqual(await grants(), granted);
    const [total] = await query('select views::text as views from totals where user_id = 1');
    assert.equal(total?.views, '8');
    const after = await fixture.objects();
    const changed = [...after].filter(([key, text]) => before.get(key) !== text).map(([key]) => key);
    assert.deepEqual(
      changed.sort(),
      ['trigger/users.touch', 'view/active'].filter((key) => changed.includes(key)),
    );
    assert.ok(changed.includes('view/active'));

    assertExit(await svc('db', 'migrate', 'rollback', '--allow-destructive'));
    assert.deepEqual(await fixture.objects(), before);
    assert.deepEqual(await grants(), granted);
    await query('drop owned by svc_reader; drop role svc_reader');
  },
  GROWN + ROWS,
);

on(
  'a value is added to a native enum where the file has it, and one is removed if no row has it',
  async (fixture) => {
    const { svc, edit, query } = fixture;
    await adopted(fixture);
    const file = `${OBJECTS}/type/mood.sql`;
    const labels = async () =>
      (await query('select unnest(enum_range(null::mood))::text as label')).map(({ label }) => label);
    const moods = () => query('select id, mood::text as mood, moods::text as moods from users order by id');
    const rows = await moods();
    edit(file, (text) => text.replace("'sad',", "'awful',\n  'sad',\n  'so-so',"));
    assertExit(await svc('db', 'schema', 'generate'));
    assert.deepEqual(types(fixture), ['replaceObject type/mood']);
    assertExit(await svc('db', 'migrate'));
    assert.deepEqual(await labels(), ['awful', 'sad', 'so-so', 'ok', 'happy']);
    assert.match(assertExit(await svc('db', 'schema', 'check')).stdout, /^OK/);

    await query("update users set mood = 'awful' where id = 2");
    const held = assertExit(await svc('db', 'migrate', 'rollback'), 1);
    assert.match(held.stderr, /awful/);
    assert.match(held.stderr, /None of it took effect/);
    assert.equal((await labels()).length, 5);
    await query("update users set mood = 'sad' where id = 2");

    assertExit(await svc('db', 'migrate', 'rollback'));
    assert.deepEqual(await labels(), ['sad', 'ok', 'happy']);
    assert.deepEqual(await moods(), rows);
    assert.match(assertExit(await svc('db', 'schema', 'check')).stdout, /^OK/);
    const [field] = await query(
      "select pg_get_expr(adbin, adrelid) as value from pg_attrdef d join pg_attribute a on a.attrelid = adrelid and a.attnum = adnum where adrelid = 'users'::regclass and attname = 'mood'",
    );
    assert.equal(field?.value, "'ok'::mood");
  },
  `${GROWN.replace(/create view active[^;]*;|comment on (?:view|column) active[^;]*;|alter view active[^;]*;|create view very_active[^;]*;|create trigger instead[^;]*;/g, '')}${ROWS}`,
);

on(
  'what reads a field of a native enum is moved aside when the enum loses a value, also by a rollback',
  async (fixture) => {
    const { svc, edit, query } = fixture;
    await adopted(fixture);
    const before = await fixture.objects();
    const file = `${OBJECTS}/type/mood.sql`;
    edit(file, (text) => text.replace("'sad',", "'sad',\n  'low',"));
    assertExit(await svc('db', 'schema', 'generate'));
    assert.deepEqual(types(fixture), ['replaceObject type/mood']);
    assertExit(await svc('db', 'migrate'));
    assert.match(assertExit(await svc('db', 'schema', 'check')).stdout, /^OK/);
    assertExit(await svc('db', 'migrate', 'rollback'));
    assert.deepEqual(await fixture.objects(), before);
    assertExit(await svc('db', 'migrate'));

    await query("update users set mood = 'ok' where mood = 'happy'");
    edit(file, (text) => text.replace(/,\s*'happy'/, ''));
    assertExit(await svc('db', 'schema', 'generate'));
    const planned = types(fixture);
    for (const [first, then] of [
      ['dropObject view/very_active', 'dropObject view/active'],
      ['dropObject view/active', 'replaceObject type/mood'],
      ['replaceObject type/mood', 'createObject view/active'],
      ['createObject view/active', 'createObject view/very_active'],
    ] as const)
      assert.ok(planned.includes(first) && planned.indexOf(first) < planned.indexOf(then), planned.join('\n'));
    assertExit(await svc('db', 'migrate'));
    assert.match(assertExit(await svc('db', 'schema', 'check')).stdout, /^OK/);
    assertExit(await svc('db', 'migrate', 'rollback'));
    assertExit(await svc('db', 'migrate', 'rollback'));
    assert.deepEqual(await fixture.objects(), before);
  },
  GROWN + ROWS,
);

on(
  'a value of a native enum is renamed where a comment names the old one, with rows and a default that have it',
  async ({ root, edit, files, read, write, query }) => {
    const run = async (...args: readonly string[]) => assertExit(await svcHere(args, root));
    await run('db', 'schema', 'pull');
    await run('db', 'migrate', 'baseline');
    edit(`${OBJECTS}/type/mood.sql`, (text) =>
      text.replace("'ok'", "'fine' -- renamedFrom 'ok'\n").replace("'sad'", "'sad', 'low'"),
    );
    write(SCHEMA, read(SCHEMA).replace("'ok'::mood", "'fine'::mood").replace('"default": "ok"', '"default": "fine"'));
    await run('db', 'schema', 'generate');
    await run('db', 'migrate');
    const state = () => query('select id, m::text as m, enum_range(null::mood)::text as labels from t order by id');
    await query('insert into t (id) values (3)');
    const labels = '{sad,low,fine}';
    assert.deepEqual(await state(), [
      { id: 1, m: 'fine', labels },
      { id: 2, m: 'sad', labels },
      { id: 3, m: 'fine', labels },
    ]);
    assert.match((await run('db', 'schema', 'check')).stdout, /^OK/);
    assert.match((await run('db', 'schema', 'generate')).stdout, /^Nothing to generate/);
    await run('db', 'migrate', 'rollback', '-n', String(files().length - 1));
    assert.deepEqual(
      (await state()).map(({ m }) => m),
      ['ok', 'sad', 'ok'],
    );
    assert.match((await run('db', 'schema', 'check')).stdout, /^OK/);
  },
  `create type mood as enum ('sad', 'ok'); create table t (id int primary key, m mood not null default 'ok');
   insert into t values (1, 'ok'), (2, 'sad');`,
);

on(
  'a function is replaced in place, or dropped and created if its arguments change',
  async (fixture) => {
    const { svc, edit, query, write, root } = fixture;
    await adopted(fixture);
    edit(`${OBJECTS}/function/touch.sql`, (text) => text.replace('now()', "'2020-01-01'"));
    write(
      `${OBJECTS}/function/added.sql`,
      "create function added(a int)\nreturns int language sql as 'select a + 1';\n",
    );
    assertExit(await svc('db', 'schema', 'generate'));
    assert.deepEqual(types(fixture), ['createObject function/added', 'replaceObject function/touch']);
    assertExit(await svc('db', 'migrate'));
    await query("update users set name = 'Zoe' where id = 1");
    const [user] = await query('select updated_at::date::text as day from users where id = 1');
    assert.equal(user?.day, '2020-01-01');
    // The text of a person differs from the one of the server, and means the same.
    assert.match(assertExit(await svc('db', 'schema', 'check')).stdout, /^OK/);
    const pulled = json(assertExit(await svc('db', 'schema', 'pull', '--json')));
    assert.deepEqual(pulled.migrations, []);

    await query('revoke execute on function added from public');
    write(
      `${OBJECTS}/function/added.sql`,
      "create or replace function added(a int, b int)\nreturns int language sql as 'select a + b';\n",
    );
    assertExit(await svc('db', 'schema', 'generate'));
    assertExit(await svc('db', 'migrate'));
    const found = await query(
      "select pg_get_function_identity_arguments(oid) as args, proacl::text as acl from pg_proc where proname = 'added'",
    );
    assert.equal(found.length, 1);
    assert.equal(found[0]?.args, 'a integer, b integer');
    assert.doesNotMatch(String(found[0]?.acl), /[{,]=X/);
    assertExit(await svc('db', 'migrate', 'rollback'));
    assert.equal((await query('select added(1) as two')).at(0)?.two, 2);

    rmSync(join(root, OBJECTS, 'function/added.sql'));
    assertExit(await svc('db', 'schema', 'generate'));
    assert.deepEqual(types(fixture), ['dropObject function/added']);
  },
  GROWN + ROWS,
);

on('an object changed by hand is a difference, which pull adopts or which is undone', async (fixture) => {
  const { svc, query, read, write } = fixture;
  await query('create table t (id int primary key, a int); create view v as select a from t');
  await adopted(fixture);
  await query('create or replace view v as select a, id from t; create view w as select 1 as one');
  const checked = assertExit(await svc('db', 'schema', 'check'), 5).stdout;
  assert.match(checked, /view\/v has another definition/);
  assert.match((await svc('doctor')).stdout, /the schema differs from the applied migrations in 1 place/);
  assert.doesNotMatch(checked, /view\/w is not expected/);
  assert.match(
    assertExit(await svc('db', 'schema', 'check', '--strict', '--ignore', 'view/w'), 5).stdout,
    /^DRIFT.*\n {2}view\/v has another definition\n$/,
  );
  write(`${OBJECTS}/view/mine.sql`, 'create view mine as select 2 as two');
  const pulled = json(assertExit(await svc('db', 'schema', 'pull', '--json')));
  assert.equal(pulled.migrations.length, 1);
  assert.deepEqual(types(fixture), ['replaceObject view/v', 'createObject view/w']);
  assert.match(read(`${OBJECTS}/view/v.sql`), /\bid\b/);
  assertExit(await svc('db', 'migrate', 'baseline'));
  assertExit(await svc('db', 'schema', 'check', '--strict'));
  assertExit(await svc('db', 'schema', 'generate'));

  await query('drop view w');
  assert.match(assertExit(await svc('db', 'schema', 'check'), 5).stdout, /view\/w is missing/);
  await query('create view w as select 1 as one');
  assertExit(await svc('db', 'schema', 'check'));
});

on('a file that does not create its object is refused before anything is written', async (fixture) => {
  const { svc, write, root, files } = fixture;
  write(SCHEMA, [{ db: 'main', tables: { t: { id: { type: 'Integer', primaryKey: true } } } }]);
  const refused = async (file: string, text: string, why: RegExp) => {
    write(`${OBJECTS}/${file}`, text);
    const { stderr } = assertExit(await svc('db', 'schema', 'generate'), 2);
    assert.match(stderr, /schema_invalid/, file);
    assert.match(stderr, why, file);
    assert.match(stderr, /Nothing was written/, file);
    assert.equal(files().length, 0);
    rmSync(join(root, 'svc/database/objects'), { recursive: true });
  };
  await refused('view/v.sql', 'create view w as select 1', /names "w", and its file "v"/);
  await refused('view/v.sql', 'create view public.v as select 1', /has a schema/);
  await refused('view/v.sql', 'create table v (id int)', /begins with: create table v/i);
  await refused('view/v.sql', 'create view v as select 1; commit', /COMMIT/);
  await refused('view/v.sql', "create view v as select 'a", /unclosed/);
  await refused('views/v.sql', 'create view v as select 1', /Did you mean "view"/);
  await refused('trigger/t.sql', 'create trigger t before insert on t execute function f()', /<table>\.<name>\.sql/);
  await refused('trigger/t.touch.sql', 'create trigger touch before insert on u execute function f()', /is on "u"/);
  await refused('policy/t.own.sql', '', /begins with/);
  await refused('exclusion/t.e.sql', 'alter table u add constraint e exclude (id with =)', /is on "u"/);
  await refused('exclusion/t.e.sql', 'alter table t add constraint f exclude (id with =)', /names "f"/);
  await refused('exclusion/t.e.sql', 'alter table t add constraint e unique (id)', /begins with/);

  write('svc/database/objects/mian/view/v.sql', 'create view v as select 1');
  assert.match(
    assertExit(await svc('db', 'schema', 'generate'), 2).stderr,
    /database_unknown[\s\S]*Did you mean "main"/,
  );
  rmSync(join(root, 'svc/database/objects'), { recursive: true });
  await refused('v.sql', 'create view v as select 1', /is not in a folder of its kind/);

  write(`${OBJECTS}/view/v.sql`, 'create view v as select 1 as one; drop table t');
  const [planned] = json(assertExit(await svc('db', 'schema', 'generate', '--dry-run', '--json'))).migrations;
  assert.ok(
    planned.plan.some(({ statements }: { statements: { destructive: boolean }[] }) =>
      statements.some((one) => one.destructive),
    ),
  );

  write(`${OBJECTS}/view/v.sql`, '-- who\ncreate view v as select id from missing;\n');
  assertExit(await svc('db', 'schema', 'generate'));
  const failed = assertExit(await svc('db', 'migrate'), 2).stderr;
  assert.match(failed, /missing/);
  assert.match(failed, /None of it took effect/);
});

on('the page on objects does what it prints', async (fixture) => {
  const blocks = docsBlocks().filter(({ page }) => page === 'docs/reference/objects.md');
  const text = (wanted: string): string => blocks.find(({ language }) => language === wanted)?.text ?? '';
  const users = { id: { type: 'Integer', primaryKey: true }, name: 'Text', last_seen: 'Timestamp' };
  fixture.schema({ users });
  fixture.write(`${OBJECTS}/view/active_users.sql`, text('sql'));
  const run = async () => {
    for (const [, args = ''] of text('sh').matchAll(/npx svc (.*)/g)) assertExit(await fixture.svc(...args.split(' ')));
  };
  await run();
  assert.deepEqual([...(await fixture.objects()).keys()], ['view/active_users']);
  fixture.schema({ users: { ...users, name: { type: 'String', length: 80 } } });
  await run();
  assert.deepEqual(types(fixture), [
    'dropObject view/active_users',
    'modifyField users',
    'createObject view/active_users',
  ]);
  assertExit(await fixture.svc('db', 'schema', 'check', '--strict'));
});

const GROWN_MYSQL = [
  'create table users (id int primary key, name varchar(40), n int)',
  'create table log (id int auto_increment primary key, text varchar(200))',
  'create view named as select id, upper(name) as name from users where n > 0 with check option',
  'create sql security invoker view few as select * from named where id < 10',
  "create function twice(a int, b varchar(20)) returns varchar(20) deterministic comment 'two' begin declare x int; set x = a * 2; return concat(x, b); end",
  "create procedure noted(in t text) begin insert into log (text) values (t); insert into log (text) values ('; end'); end",
  "create trigger audit after update on users for each row begin if new.name <> old.name then call noted(concat(old.name, '->', new.name)); end if; end",
  'create trigger `Before It` before insert on users for each row set new.n = coalesce(new.n, 1)',
  "create event nightly on schedule every 1 day starts '2030-01-01 00:00:00' on completion preserve disable do delete from log",
];

on(
  'views, routines, triggers and events are pulled, made again, and rolled back to nothing',
  (fixture, engine) =>
    makeAgain(fixture, engine, async (made) => {
      assert.equal((await made.objects()).size, 7);
      await made.query("insert into users values (1, 'Ann', null)");
      await made.query("update users set name = 'Bea'");
      assert.deepEqual(
        (await made.query('select text from log order by id')).map(({ text }) => text),
        ['Ann->Bea', '; end'],
      );
      assert.equal((await made.query('select name from few')).at(0)?.name, 'BEA');
    }),
  GROWN_MYSQL,
  committingEngines,
);

on(
  'a view and a trigger are moved aside when what they read is renamed or dropped, and replaced as their files are',
  async (fixture) => {
    const { svc, edit, query, write } = fixture;
    await adopted(fixture);
    await query("insert into users values (1, 'Ann', 5)");
    edit(SCHEMA, (text) => {
      const [entry] = JSON.parse(text);
      const { n, ...users } = entry.tables.users;
      entry.tables.users = { ...users, amount: { ...n, renamedFrom: 'n' } };
      return JSON.stringify([entry]);
    });
    edit(`${OBJECTS}/view/named.sql`, (text) => text.replace('`users`.`n`', '`users`.`amount`'));
    edit(`${OBJECTS}/trigger/users.Before It.sql`, (text) =>
      text.replaceAll('new.n', 'new.amount').replace('(new.n', '(new.amount'),
    );
    edit(`${OBJECTS}/function/twice.sql`, (text) => text.replace('a * 2', 'a * 2 + 1'));
    write(`${OBJECTS}/view/mine.sql`, 'create   view mine as select ID as ID, amount+1 as more from users');
    assertExit(await svc('db', 'schema', 'generate'));
    const planned = types(fixture);
    const places = ['dropObject view/named', 'renameField users', 'createObject view/named'].map((one) =>
      planned.indexOf(one),
    );
    assert.ok(!places.includes(-1), planned.join('\n'));
    assert.deepEqual(
      places,
      [...places].sort((a, b) => a - b),
    );
    assert.ok(planned.includes('replaceObject function/twice'), planned.join('\n'));
    assertExit(await svc('db', 'migrate'));
    assert.match(assertExit(await svc('db', 'schema', 'check')).stdout, /^OK/);
    assert.deepEqual(json(assertExit(await svc('db', 'schema', 'pull', '--json'))).migrations, []);
    await query("insert into users (id, name) values (2, 'Bob')");
    const mine = await query('select more from mine order by 1');
    assert.deepEqual(
      mine.map(({ more }) => Number(more)),
      [2, 6],
    );
    assert.equal((await query("select twice(1, 'x') as v")).at(0)?.v, '3x');
    assertExit(await svc('db', 'migrate', 'rollback'));
    assert.match(assertExit(await svc('db', 'schema', 'check')).stdout, /^OK/);
    assert.equal((await query("select twice(1, 'x') as v")).at(0)?.v, '2x');
  },
  GROWN_MYSQL,
  committingEngines,
);
