import * as assert from 'node:assert/strict';
import { adopted, makeAgain, OBJECTS, on, postgresql, types } from './kit/object-files.ts';
import { assertExit, json } from './kit/project.ts';

/** Operators and collations of PostgreSQL: a file each, created before the tables that use them. */

const GROWN = `
create type pair as (low int, high int);
create function z_less(pair, pair) returns boolean language sql immutable as $$ select $1.low < $2.low $$;
create function z_more(pair, pair) returns boolean language sql immutable as $$ select $1.low > $2.low $$;
create function z_same(pair, pair) returns boolean language sql immutable as $$ select $1.low = $2.low $$;
create function z_width(pair) returns int language sql immutable as $$ select $1.high - $1.low $$;
create function z_near(text, text) returns boolean language sql immutable as $$ select lower($1) = lower($2) $$;
create operator <<< (leftarg = pair, rightarg = pair, function = z_less, commutator = >>>, restrict = scalarltsel, join = scalarltjoinsel);
create operator >>> (leftarg = pair, rightarg = pair, function = z_more, commutator = <<<);
create operator === (leftarg = pair, rightarg = pair, function = z_same, commutator = ===, hashes, merges);
create operator === (leftarg = text, rightarg = text, function = z_near);
create operator @# (rightarg = pair, function = z_width);
comment on operator @# (none, pair) is 'how wide';
create collation plain (locale = 'C');
comment on collation plain is 'of bytes';
create collation "Mixed One" (lc_collate = 'C', lc_ctype = 'POSIX');
create type named as (title text collate plain);
create domain title as text collate plain check (value <> '');
create table spans (id int primary key, s pair, name text collate plain, other text collate "Mixed One" default ('a' collate "Mixed One"),
  wide int generated always as (@# s) stored, check (s >>> row(0, 0)::pair), check (name === 'a'));
create index spans_name on spans (name, other);
create index spans_order on spans ((name collate "C"), (other collate plain)) where name === 'A';
create view span_widths as select id, @# s as width, name from spans where s === s;
create aggregate first_of(text) (sfunc = text_smaller, stype = text, sortop = <);
`;

const ROWS = `insert into spans (id, s, name) values (1, row(1, 5), 'A'), (2, row(2, 3), 'a');`;

on(
  'operators and collations are made again from their files',
  (fixture, engine) =>
    makeAgain(fixture, engine, async (made) => {
      await made.query(ROWS);
      assert.deepEqual(await made.query('select width, name from span_widths order by name'), [
        { width: 4, name: 'A' },
        { width: 1, name: 'a' },
      ]);
      await assert.rejects(made.query(`insert into spans (id, name) values (3, 'b')`), { code: 'data_violates' });
      const linked = `select oprcom::regoperator::text as other from pg_operator where oid = '<<<(pair,pair)'::regoperator`;
      assert.deepEqual(await made.query(linked), [{ other: '>>>(pair,pair)' }]);
    }),
  GROWN,
  postgresql,
);

on(
  'a changed operator and a changed collation are dropped and created, unless something uses them',
  async (fixture) => {
    const { svc, edit, query } = fixture;
    await adopted(fixture);
    const before = await fixture.objects();
    edit(`${OBJECTS}/operator/%3D%3D%3D(text, text).sql`, (text) => text.replace('z_near', 'z_far'));
    edit(`${OBJECTS}/collation/plain.sql`, (text) => text.replace("'C'", "'POSIX'"));
    assertExit(await svc('db', 'schema', 'generate'));
    assert.deepEqual(types(fixture), [
      'dropObject type/named',
      'dropObject collation/plain',
      'createObject collation/plain',
      'createObject type/named',
      'replaceObject operator/===(text, text)',
    ]);
    const same = () => query(`select 'a' === 'A' as same`);
    assert.deepEqual(await same(), [{ same: true }]);
    assertExit(await svc('db', 'migrate', '--allow-destructive'));
    assert.deepEqual(await same(), [{ same: false }]);
    assert.match(assertExit(await svc('db', 'schema', 'check')).stdout, /^OK/);
    assertExit(await svc('db', 'migrate', 'rollback', '--allow-destructive'));
    assert.deepEqual(await fixture.objects(), before);

    edit(`${OBJECTS}/operator/%3D%3D%3D(text, text).sql`, () => 'CREATE OPERATOR == (FUNCTION = z_far);');
    assert.match(assertExit(await svc('db', 'schema', 'generate'), 2).stderr, /names "==", and its file "==="/);
  },
  `create collation plain (locale = 'C');
create type named as (title text collate plain);
create function z_near(text, text) returns boolean language sql immutable as 'select lower($1) = lower($2)';
create function z_far(text, text) returns boolean language sql immutable as 'select $1 = $2';
create operator === (leftarg = text, rightarg = text, function = z_near);`,
  postgresql,
);

on(
  'a type and a function whose text has an operator are left out, as no name says what comes first',
  async (fixture, engine) => {
    const { warnings } = json(assertExit(await fixture.svc('db', 'schema', 'pull', '--json')));
    assert.deepEqual(warnings, [
      'The field "notes.near" has the type a_near, which svc cannot create; the nearest is text.',
      'The domain "a_near" is left out: it uses operator ===(text,text), which migrations do not create.',
      'The function "a_is" is left out: it uses operator ===(text,text), which migrations do not create.',
      'The view "near_notes" is left out: it uses function a_is(text), which migrations do not create.',
    ]);
    assert.ok(engine);
  },
  `create function z_near(text, text) returns boolean language sql immutable as 'select lower($1) = lower($2)';
create operator === (leftarg = text, rightarg = text, function = z_near);
create domain a_near as text check (value === 'a');
create function a_is(text) returns boolean language sql immutable begin atomic select $1 === 'a'; end;
create table notes (id int primary key, near a_near);
create view near_notes as select a_is(near) as is from notes;`,
  postgresql,
);

on(
  'a table of a type is made again',
  (fixture, engine) =>
    makeAgain(fixture, engine, async (made) => {
      await assert.rejects(made.query('alter table pairs add column other int'), { why: /typed table/ });
    }),
  "create type pair as (low int, high text); create table pairs of pair (low primary key, high default 'x');",
  postgresql,
);
