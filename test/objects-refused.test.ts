import * as assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { OBJECTS } from './kit/object-files.ts';
import { assertExit, json, project } from './kit/project.ts';
import { type Fixture, onPostgresql } from './kit/roles.ts';

const SCHEMA = 'svc/database/schema.json';

async function adopted({ url, reader, query }: Fixture) {
  await query(`create type person as (id int, name text); create table people of person; create table src (id int primary key, n int);
create view v as select id, n from src; create table uses (id int primary key, r v, rs v[]); create view plain as select id from src;
create function twice(a int) returns int language sql as 'select 1'; create function thrice(a int) returns int language sql as 'select 1';
grant select on plain, src to ${reader}; grant execute on function twice(int), thrice(int) to ${reader}`);
  const shop = project({ main: url }, {}, {}, { options: { grants: true } });
  assertExit(await shop.svc('db', 'schema', 'pull'));
  assertExit(await shop.svc('db', 'migrate', 'baseline'));
  const [main] = JSON.parse(shop.read(SCHEMA));
  const remove = (file: string) => rmSync(join(shop.root, OBJECTS, file));
  const tables = (changes: object) => shop.write(SCHEMA, [{ ...main, tables: { ...main.tables, ...changes } }]);
  return { ...shop, main, remove, tables };
}

onPostgresql('what the server would refuse is refused before a migration is written', async (fixture) => {
  const { svc, read, write, files, main, remove, tables } = await adopted(fixture);
  const { people, src, ...others } = main.tables;
  const before = files();
  const changes: readonly (readonly [() => void, RegExp, ...(readonly string[])])[] = [
    [() => remove('view/v.sql'), /view "v" cannot be dropped or made again[\s\S]*"uses.r"/],
    [() => tables({ src: { ...src, n: { type: 'bigint' } } }), /view "v" cannot be dropped or made again/],
    [() => remove('view/plain.sql'), /grants\/plain.sql is about something/],
    [() => remove('function/twice.sql'), /grants\/function twice\(integer\).sql is about something/],
    [
      () => tables({ people: { ...people, age: { type: 'integer' } } }),
      /those of the type "person"[\s\S]*type\/person.sql/,
    ],
    [() => tables({ people: { id: people.id } }), /those of the type "person"/, '--drop', 'people.name'],
    [
      () => write(SCHEMA, [{ ...main, tables: { people, ...others, sources: src } }]),
      /grants\/src.sql is about/,
      '--rename',
      'src:sources',
    ],
  ];
  const texts = ['view/v', 'view/plain', 'function/twice'].map(
    (name) => [`${OBJECTS}/${name}.sql`, read(`${OBJECTS}/${name}.sql`)] as const,
  );
  for (const [change, message, ...flags] of changes) {
    change();
    const error = json(assertExit(await svc('db', 'schema', 'generate', '--json', ...flags), 2));
    assert.equal(error.code, 'schema_invalid');
    assert.match(JSON.stringify(error).replaceAll('\\"', '"'), message);
    for (const [file, text] of texts) write(file, text);
    write(SCHEMA, [main]);
  }
  assert.deepEqual(files(), before);
});

onPostgresql('and works as the refusals say', async (fixture) => {
  const { svc, write, main, remove, tables } = await adopted(fixture);
  const { people, uses } = main.tables;
  for (const file of ['view/plain', 'grants/plain', 'function/twice', 'grants/function twice(integer)'])
    remove(`${file}.sql`);
  write(
    `${OBJECTS}/function/thrice.sql`,
    'CREATE FUNCTION thrice(a int) RETURNS bigint LANGUAGE sql AS $$ SELECT 3 $$',
  );
  write(`${OBJECTS}/type/person.sql`, 'CREATE TYPE person AS (id int, name text, age int)');
  tables({ people: { ...people, age: { type: 'integer' } } });
  assertExit(await svc('db', 'schema', 'generate'));
  assertExit(await svc('db', 'migrate', '--yes'));
  assert.match(assertExit(await svc('db', 'schema', 'check', '--strict')).stdout, /^OK/);
  assertExit(await svc('db', 'migrate', 'rollback', '--allow-destructive'));
  assertExit(await svc('db', 'migrate', '--yes'));
  tables({ people: { ...people, age: { type: 'integer' } }, uses: { id: uses.id, r: { type: 'text' } } });
  assertExit(await svc('db', 'schema', 'generate', '--drop', 'uses.rs'));
  assertExit(await svc('db', 'migrate', '--yes', '--allow-destructive'));
  remove('view/v.sql');
  assertExit(await svc('db', 'schema', 'generate'));
  assertExit(await svc('db', 'migrate', '--yes'));
  assert.match(assertExit(await svc('db', 'schema', 'check', '--strict')).stdout, /^OK/);
});
