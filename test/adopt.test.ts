import * as assert from 'node:assert/strict';
import { engines, sqlEngines, type TestEngine } from './kit/engines.ts';
import { connectedBy } from './kit/object-files.ts';
import { assertExit, json, LONG, project } from './kit/project.ts';
import { test } from './kit/test.ts';

const UNUSUAL_SCHEMA = `
create schema lib;
create type lib.mood as enum ('sad', 'it''s ok', 'happy');
create function quiet() returns trigger language plpgsql as 'begin return new; end';
create sequence from_hundred start 100 increment 5;
create table accounts (
  id integer primary key default nextval('from_hundred'),
  email varchar(120) not null,
  role varchar(20) check (role in ('a', 'b')),
  feeling lib.mood not null default 'sad' check (feeling <> 'happy'),
  feelings lib.mood[], grid int[][], code char(4), at timestamptz, address inet check (address <> '0.0.0.0'), pause interval, during int4range,
  lowered text generated always as (lower(email)) stored,
  constraint email_once unique (email) include (code));
create index accounts_lower_email on accounts (lower(email));
create index accounts_part on accounts (role) where role = 'a';
create index accounts_grid on accounts using gin (grid);
create index accounts_brin on accounts using brin (id);
create index accounts_hash on accounts using hash (email);
create index accounts_wide on accounts (role) include (code);
create index accounts_like on accounts (email varchar_pattern_ops);
create function lib.own(text) returns text immutable language sql as 'select $1';
create index accounts_own on accounts (lib.own(email));
create index accounts_plain on accounts (role, email desc);
create table notes (id uuid primary key, account int, constraint later foreign key (account) references accounts (id) deferrable);
create constraint trigger late after insert on notes for each row execute function quiet();
create table papers (id int primary key, data json check (json_typeof(data) = 'object'), tags varchar[] check (tags <@ array['a']::varchar[]),
  day timestamp(3) default current_date, constraint no_rows check (false) no inherit);
create table spans (id int primary key, span int4range, exclude using gist (span with &&));
comment on table notes is 'n'; comment on column notes.id is 'i';
create foreign data wrapper w; create server s foreign data wrapper w; create foreign table far (id int) server s;
create view everybody as select id from accounts;
create trigger quiet before insert on notes for each row execute function quiet();
create table nopk (a int);
create table loose (id int primary key, price numeric);
create table priced (id int primary key, loose int references loose (id));
`;

const EXPECTED_WARNINGS = [
  'The field "accounts.feeling" has the type lib.mood, which svc cannot create; the nearest is enum.',
  'The field "accounts.feelings" has the type lib.mood[]',
  'has the constraint "accounts_feeling_check", which svc cannot create',
  'has the index "accounts_own", which svc cannot create: it uses function lib.own(text), which',
  'The table "far" is a foreign table, which svc cannot create.',
];

// The unsupported objects of MySQL and MariaDB are tested in mysql-schema.test.ts.
for (const engine of engines) {
  if (engine.missing === undefined) testAdoption(engine);
  else test.skip(`adopting a database on ${engine.name}`, engine.missing);
}

function testAdoption(engine: TestEngine): void {
  test(
    `${engine.name}: a database with many unsupported objects is adopted, and everything left out is reported`,
    () =>
      engine.withUrl(async (url, connect) => {
        const query = (text: string) => connectedBy(connect)((connection) => connection.query(text));
        await query(UNUSUAL_SCHEMA);
        const { svc, read, files } = project({ main: url });
        const ran = assertExit(await svc('db', 'schema', 'pull', '--json'));
        const { warnings, leftOut, objects } = json(ran);
        for (const part of EXPECTED_WARNINGS) {
          const matching = warnings.filter((line: string) => line.includes(part));
          assert.equal(matching.length, 1, `${part}\n${warnings.join('\n')}`);
          assert.ok(ran.stderr.includes(matching[0]), 'on stderr too');
        }
        assert.deepEqual(leftOut, []);
        assert.deepEqual(objects.filter((key: string) => !key.startsWith('extension/')).sort(), [
          'exclusion/spans.spans_span_excl',
          'function/quiet',
          'sequence/from_hundred',
          'trigger/notes.late',
          'trigger/notes.quiet',
          'view/everybody',
        ]);
        assert.match(ran.stderr, /stay in the database.*do not create them in a new one.*raw migration/);
        const [{ tables }] = JSON.parse(read('svc/database/schema.json'));
        assert.deepEqual(tables.accounts.feeling.enumValues, ['sad', "it's ok", 'happy']);
        assert.deepEqual(Object.keys(tables).sort(), [
          'accounts',
          'loose',
          'nopk',
          'notes',
          'papers',
          'priced',
          'spans',
        ]);
        assert.equal(tables.accounts.address.native, 'inet');
        assert.equal(tables.loose.price.native, 'numeric');
        assert.equal(tables.accounts.lowered.native, 'text GENERATED ALWAYS AS (lower((email)::text)) STORED');
        assert.equal(files().length, 1);

        assertExit(await svc('db', 'migrate', 'baseline'));
        assert.match(assertExit(await svc('db', 'schema', 'generate')).stdout, /^Nothing to generate/);
        assert.match(assertExit(await svc('db', 'schema', 'check')).stdout, /^OK/);
        assertExit(await svc('db', 'schema', 'check', '--strict'));

        const again = json(assertExit(await svc('db', 'schema', 'pull', '--json')));
        assert.deepEqual(again.migrations, [], 'a second pull finds no changes');

        await query('alter table accounts drop constraint accounts_role_check');
        assert.match(
          assertExit(await svc('db', 'schema', 'check'), 5).stdout,
          /constraint accounts.accounts_role_check is missing/,
        );
      }),
    LONG,
  );
}

for (const engine of engines) {
  if (engine.missing === undefined) testSequence(engine);
  else test.skip(`a field with the default nextval(…) on ${engine.name}`, engine.missing);
}

function testSequence(engine: TestEngine): void {
  test(
    `${engine.name}: an optional field with the default nextval(…) is not taken for an identity, and becomes required`,
    () =>
      engine.withUrl(async (url, connect) => {
        const query = (text: string) => connectedBy(connect)((connection) => connection.query(text));
        await query(`create sequence numbers;
          create table tickets (id serial primary key, number int default nextval('numbers'),
            code varchar(20) not null default nextval('numbers'));
          insert into tickets (number) values (null)`);
        const { svc, read, write, files } = project({ main: url });
        const { warnings, objects } = json(assertExit(await svc('db', 'schema', 'pull', '--json')));
        assert.deepEqual(warnings, []);
        assert.deepEqual(objects, ['sequence/numbers']);
        const schema = JSON.parse(read('svc/database/schema.json'));
        const { id, number, code } = schema[0].tables.tickets;
        assert.deepEqual([id.autoGenerate, number.autoGenerate, code.autoGenerate], [true, undefined, undefined]);
        assert.deepEqual(number.default, { $expression: "nextval('numbers'::regclass)" });
        assertExit(await svc('db', 'migrate', 'baseline'));
        assert.match(assertExit(await svc('db', 'schema', 'check')).stdout, /^OK/);

        number.required = true;
        write('svc/database/schema.json', schema);
        assertExit(await svc('db', 'schema', 'generate'));
        assert.equal(files().length, 2);
        const refused = assertExit(await svc('db', 'migrate'), 1);
        assert.match(refused.stderr, /data_violates/, 'a row has no number');
        await query('update tickets set number = 1');
        assertExit(await svc('db', 'migrate'));
        assert.equal(
          (
            await query(
              "select attnotnull from pg_attribute where attrelid = 'tickets'::regclass and attname = 'number'",
            )
          ).at(0)?.attnotnull,
          true,
        );
        assert.match(assertExit(await svc('db', 'schema', 'check')).stdout, /^OK/);
        assert.deepEqual(json(assertExit(await svc('db', 'schema', 'pull', '--json'))).migrations, []);
        await query('alter table tickets alter column number drop not null');
        assert.match(assertExit(await svc('db', 'schema', 'check'), 5).stdout, /tickets\.number/);
      }),
    LONG,
  );
}

/** By hand, after adoption: what a schema file declared before can no longer be declared. */
const CHANGED_BY_HAND = {
  postgresql: [
    'drop index people_born',
    "create schema lib; create function lib.own(date) returns date immutable language sql as 'select $1'",
    'create index people_born on people (lib.own(born))',
    'drop table seen; create foreign data wrapper w; create server s foreign data wrapper w; create foreign table seen (id int) server s',
  ],
  mysql: [],
  mariadb: [
    'drop table seen',
    'create table seen (id int, s timestamp(6) generated always as row start, e timestamp(6) generated always as row end, period for system_time (s, e)) with system versioning',
  ],
};

for (const engine of sqlEngines) {
  if (engine.missing === undefined) testNothingDropped(engine);
  else test.skip(`a second pull drops nothing on ${engine.name}`, engine.missing);
}

function testNothingDropped(engine: TestEngine): void {
  const changes = CHANGED_BY_HAND[engine.dialect.name as keyof typeof CHANGED_BY_HAND];
  const isSeenGone = changes.length > 0;
  test(
    `${engine.name}: a pull keeps and names what is there, even if it can no longer be declared`,
    () =>
      engine.withUrl(async (url, connect) => {
        const query = async (...texts: readonly string[]) => {
          const { connection } = await connect();
          try {
            let rows: Awaited<ReturnType<typeof connection.query>> = [];
            for (const text of texts) rows = await connection.query(text);
            return rows;
          } finally {
            await connection.close();
          }
        };
        await query(
          'create table teams (id int primary key, title varchar(40))',
          'create table keyless (id int)',
          'create table people (id int primary key, name varchar(40), born date, team int, constraint people_team foreign key (team) references teams (id))',
          'create index people_born on people (born)',
          'create index people_name on people (name)',
          'create table seen (id int primary key)',
          "insert into teams values (1, 'a')",
          'insert into keyless values (1)',
        );
        const { svc, read, files } = project({ main: url });
        assertExit(await svc('db', 'schema', 'pull'));
        assertExit(await svc('db', 'migrate', 'baseline'));
        const before = JSON.parse(read('svc/database/schema.json'));

        const { readOnly } = engine.sql;
        if (readOnly) {
          // Existing rows have no value for such a default.
          const [column, value] = readOnly.column.split(' default ');
          await query(
            `alter table teams add ${column}`,
            `alter table teams alter ${column?.split(' ')[0]} set default ${value}`,
          );
        }
        await query(...changes);
        const again = json(assertExit(await svc('db', 'schema', 'pull', '--json')));
        assert.deepEqual(again.migrations, [], 'no migration, and so no drop');
        assert.deepEqual(again.leftOut, []);
        assert.deepEqual(again.kept.toSorted(), [...(isSeenGone ? ['seen'] : []), ...(readOnly ? ['teams'] : [])]);
        const warned = (part: RegExp) =>
          assert.equal(again.warnings.filter((line: string) => part.test(line)).length, 1, again.warnings.join('\n'));
        if (readOnly) warned(new RegExp(`^The table "teams" keeps the definition.*${readOnly.why.source}`));
        if (isSeenGone) {
          warned(/^The table "seen" keeps the definition/);
          warned(/^The table "seen" (?:is a foreign table|has columns for its period)/);
        }
        if (changes === CHANGED_BY_HAND.postgresql)
          warned(/^The table "people" has the index "people_born", which svc cannot create/);
        assert.deepEqual(JSON.parse(read('svc/database/schema.json')), before);

        await query('alter table people add nick varchar(10)');
        const changed = json(assertExit(await svc('db', 'schema', 'pull', '--json')));
        assert.deepEqual(changed.migrations.length, 1);
        const [, added] = files();
        const { up } = JSON.parse(read(`svc/database/migrations/main/${added}`));
        assert.deepEqual(
          up.map(({ type }: { readonly type: string }) => type),
          ['addField'],
        );
        assertExit(await svc('db', 'migrate', 'baseline'));
        assertExit(await svc('db', 'migrate', '--allow-destructive'));
        assert.deepEqual(
          (await query('select title from teams')).map(({ title }) => title),
          ['a'],
        );
        assert.equal((await query('select id from keyless')).length, 1);
      }),
    LONG,
  );
}

for (const engine of sqlEngines.filter(({ name }) => name === 'mariadb')) {
  const title = `${engine.name}: a foreign key to a field that is not unique is left out of the schema file, which says so`;
  if (engine.missing !== undefined) test.skip(title, engine.missing);
  else
    test(
      title,
      () =>
        engine.withUrl(async (url, connect) => {
          const { connection } = await connect();
          await connection.query('create table p (id int primary key, a int, key (a))');
          await connection.query(
            'create table c (id int primary key, a int, constraint loose foreign key (a) references p (a))',
          );
          const { svc } = project({ main: url });
          const { warnings } = json(assertExit(await svc('db', 'schema', 'pull', '--json')));
          assert.deepEqual(warnings, [
            'The table "c" has the constraint "loose", which svc cannot create: it references fields that are not unique.',
          ]);
          assertExit(await svc('db', 'migrate', 'baseline'));
          assertExit(await svc('db', 'schema', 'check'));
        }),
      LONG,
    );
}
