import * as assert from 'node:assert/strict';
import { adopted, makeAgain, OBJECTS, on, postgresql, types } from './kit/object-files.ts';
import { assertExit } from './kit/project.ts';

/** Casts and text search of PostgreSQL: a file each, created before the tables that use them. */

const GROWN = `
create type pair as (low int, high int);
create type mood as enum ('sad', 'ok');
create type span as range (subtype = float8);
create function z_text(pair) returns text language sql immutable as $$ select ($1).low || '-' || ($1).high $$;
create cast (pair as text) with function z_text(pair) as assignment;
comment on cast (pair as text) is 'with a dash';
create cast (text as mood) with inout as implicit;
create cast (pair as int4range) with inout;
create function a_text(p pair) returns text language sql immutable as $$ select p::text $$;
create text search dictionary z_words (template = simple, stopwords = english, accept = false);
comment on text search dictionary z_words is 'short ones';
create text search dictionary "Plain one" (template = pg_catalog.simple);
create text search configuration notes_of (copy = simple);
alter text search configuration notes_of alter mapping for asciiword, word with z_words, "Plain one", english_stem;
alter text search configuration notes_of drop mapping for email;
comment on text search configuration notes_of is 'of notes';
create text search configuration nothing_of (parser = default);
create table notes (id int primary key, body text, found tsvector generated always as (to_tsvector('notes_of', coalesce(body, ''))) stored, p pair, m mood default 'ok'::text);
create index notes_body on notes using gin (to_tsvector('notes_of', body));
create view note_pairs as select id, p::text as pair, to_tsvector('notes_of', body) as found from notes;
`;

const ROWS = `insert into notes (id, body, p) values (1, 'The cats a@b.example', row(1, 2)), (2, null, null);`;

const RESULTS = `select (select string_agg(found::text, ' ') from notes) as found, (select pair from note_pairs where id = 1) as pair, a_text(row(3, 4)) as of`;

on(
  'casts, dictionaries and configurations are made again from their files',
  (fixture, engine) =>
    makeAgain(fixture, engine, async (made) => {
      await made.query(ROWS);
      const [row] = await made.query(RESULTS);
      assert.deepEqual([row?.pair, row?.of], ['1-2', '3-4']);
      assert.match(String(row?.found), /'cats'/);
      assert.doesNotMatch(String(row?.found), /'the'|example/);
    }),
  GROWN,
  postgresql,
);

on(
  'a changed cast and a changed configuration are dropped and created, with what reads them',
  async (fixture) => {
    const { svc, edit, query } = fixture;
    await adopted(fixture);
    const before = await fixture.objects();
    edit(`${OBJECTS}/cast/pair AS text.sql`, (text) => text.replace('AS ASSIGNMENT', 'as implicit'));
    edit(`${OBJECTS}/text_search_configuration/topics_of.sql`, (text) =>
      text.replaceAll('WITH simple', 'WITH english_stem'),
    );
    assertExit(await svc('db', 'schema', 'generate'));
    assert.deepEqual(types(fixture), [
      'dropObject view/found',
      'dropObject text_search_configuration/topics_of',
      'replaceObject cast/pair AS text',
      'createObject text_search_configuration/topics_of',
      'createObject view/found',
    ]);
    const words = () => query('select words::text as words from found');
    assert.deepEqual(await words(), [{ words: "'cats':1" }]);
    assertExit(await svc('db', 'migrate', '--allow-destructive'));
    assert.deepEqual(await words(), [{ words: "'cat':1" }]);
    assert.match(assertExit(await svc('db', 'schema', 'check')).stdout, /^OK/);
    const contexts = () => query("select castcontext::text as context from pg_cast where castsource = 'pair'::regtype");
    assert.deepEqual(await contexts(), [{ context: 'i' }]);
    assertExit(await svc('db', 'migrate', 'rollback', '--allow-destructive'));
    assert.deepEqual(await fixture.objects(), before);
    assert.deepEqual(await words(), [{ words: "'cats':1" }]);
    assert.deepEqual(await contexts(), [{ context: 'a' }]);
  },
  `create type pair as (low int, high int);
create function z_text(pair) returns text language sql immutable as 'select null::text';
create cast (pair as text) with function z_text(pair) as assignment;
create text search configuration topics_of (copy = simple);
create table topics (id int primary key, body text);
insert into topics values (1, 'cats');
create view found as select to_tsvector('topics_of', body) as words from topics;`,
  postgresql,
);
