import * as assert from 'node:assert/strict';
import { makeAgain, on, postgresql, types } from './kit/object-files.ts';
import { assertExit, json } from './kit/project.ts';

/** Tables of PostgreSQL that use views, other tables, and what these are in: the objects come between the tables. */

on(
  'a table with fields of views, of partitions and of types of tables comes after them',
  (fixture, engine) =>
    makeAgain(fixture, engine, async (made) => {
      await made.query(`insert into people (id, name) values (1, 'Ann');
insert into a_uses values (1, row(1, 'Ann'), array[row(2, 'Bo')::b_names], row(row(1, 'Ann', 2)), row(3), default, default)`);
      assert.deepEqual(await made.query('select (v).name as name, n, c::int as c from a_uses'), [
        { name: 'Ann', n: 7, c: 1 },
      ]);
      await assert.rejects(made.query('update a_uses set n = 0'), { code: 'data_violates' });
    }),
  `create table people (id int, name text, n int default 2);
create unique index people_id on people (id);
alter table people add constraint people_key primary key using index people_id;
create view b_names as select id, name from people group by id;
create type kept as (p people);
create domain checked as b_names check ((value).id is not null or value is null);
create table parts (id int) partition by list (id);
create table parts_3 partition of parts for values in (3);
create function seven(b_names) returns int language sql immutable as 'select 7';
create function counted() returns bigint language sql begin atomic select count(*) from people; end;
create table a_uses (id int primary key, v b_names, vs b_names[], k kept, p parts_3, n int default seven(row(1, 'x')), c bigint default counted(), d checked,
  check (n = seven(null)));
create index a_uses_seven on a_uses (seven(row(id, 'x')::b_names));
create table a_rows (id int, v int);
create function of_rows(a_rows) returns int language sql immutable as 'select 1';
alter table a_rows add constraint a_rows_one check (of_rows(a_rows) = 1);
create index a_rows_of on a_rows (of_rows(a_rows));
create materialized view z_more as select v, seven(v) as seven from a_uses;`,
  postgresql,
);

on(
  'what needs the table itself is left out, and a warning says so',
  async (fixture, engine) => {
    const { warnings } = json(assertExit(await fixture.svc('db', 'schema', 'pull', '--json')));
    assert.deepEqual(warnings, [
      'The field "trees.n" has a default that uses function size_of(trees), which migrations do not create before it.',
      'The field "chains.n" has a default that uses function last_of(), which migrations do not create before it.',
      'The field "others.n" has a default that uses function sum_of(), which migrations do not create before it.',
    ]);
    assert.ok(engine);
  },
  `create table trees (id int primary key);
create function size_of(trees) returns int language sql immutable as 'select 1';
alter table trees add n int;
alter table trees alter n set default size_of(null);
create table chains (id int primary key);
create table others (id int primary key);
create function sum_of() returns bigint language sql begin atomic select count(*) from chains; end;
create function last_of() returns bigint language sql begin atomic select count(*) from others; end;
alter table chains add n bigint default last_of();
alter table others add n bigint default sum_of();`,
  postgresql,
);

on(
  'a view that has the name of a field comes after its table',
  async (fixture) => {
    const { svc } = fixture;
    fixture.write(
      'svc/database/schema.json',
      JSON.stringify([
        {
          db: 'main',
          tables: {
            orders: {
              id: { type: 'Integer', primaryKey: true },
              status: { type: 'Text' },
              lowered: { type: 'Text', native: 'text GENERATED ALWAYS AS (lower(status)) STORED' },
            },
          },
        },
      ]),
    );
    fixture.write('svc/database/objects/main/view/status.sql', 'CREATE VIEW status AS SELECT status FROM orders;');
    fixture.write('svc/database/objects/main/type/lower.sql', "CREATE TYPE lower AS ENUM ('orders');");
    assertExit(await svc('db', 'schema', 'generate'));
    assert.deepEqual(types(fixture), [
      'createObject type/lower',
      'createCollection orders',
      'createObject view/status',
    ]);
    assertExit(await svc('db', 'migrate'));
    assertExit(await svc('db', 'migrate', 'rollback', '--allow-destructive'));
  },
  '',
  postgresql,
);
