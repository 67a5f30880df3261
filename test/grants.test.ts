import * as assert from 'node:assert/strict';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { sameStatements } from '../plugins/dialects/postgresql/compile/table-objects.ts';
import { connectedBy, OBJECTS } from './kit/object-files.ts';
import { assertExit, json, project } from './kit/project.ts';
import { onPostgresql as on, type Query } from './kit/roles.ts';
import { test } from './kit/test.ts';

/** Privileges of PostgreSQL with the option `grants`: a file for each thing that others than its owner may use. */

const GROWN = `
create type mood as enum ('sad');
create domain positive as int check (value > 0);
create table orders (id serial primary key, total int, "Note" text);
create table "Odd one" (id int primary key);
create view open_orders as select id from orders;
create materialized view all_orders as select id from orders;
create sequence tickets;
create function sum_of(a int, b mood) returns int language sql as 'select 1';
create function sum_of(a text) returns int language sql as 'select 1';
create aggregate largest(int) (sfunc = int4larger, stype = int);
create procedure nothing() language plpgsql as 'begin end';
create table logs (id int, at date) partition by range (at);
create table logs_2026 partition of logs for values from ('2026-01-01') to ('2027-01-01');
grant select, insert, delete, truncate on orders to READER;
grant update (total, "Note"), select ("Note") on orders to READER;
grant references on orders to WRITER with grant option;
grant select on "Odd one", open_orders, all_orders, logs_2026 to public;
grant usage on sequence orders_id_seq, tickets to READER;
revoke execute on function sum_of(int, mood) from public;
grant execute on function sum_of(int, mood), sum_of(text), largest(int) to WRITER;
revoke all on procedure nothing() from public;
revoke usage on type mood from public;
grant usage on type positive to WRITER with grant option;
grant usage on schema public to WRITER;
`;

/** In an order of its own: that of the statements. */
const sorted = (acl: string): string => `(select array_agg(x::text order by x::text) from unnest(${acl}) x)`;
const ACLS = `select relname::text as name, ${sorted('relacl')} as acl from pg_class where relnamespace = 'public'::regnamespace and relacl is not null and relname !~ '^_svc_'
union all select relname || '.' || attname, ${sorted('attacl')} from pg_attribute a join pg_class c on c.oid = attrelid where relnamespace = 'public'::regnamespace and attacl is not null
union all select oid::regprocedure::text, ${sorted('proacl')} from pg_proc where pronamespace = 'public'::regnamespace and proacl is not null
union all select typname, ${sorted('typacl')} from pg_type where typnamespace = 'public'::regnamespace and typacl is not null
union all select nspname, ${sorted('nspacl')} from pg_namespace where nspname = 'public' order by 1`;

const OPTIONS = { options: { grants: true } };

on(
  'privileges are made again, changed statement by statement, and taken back',
  async ({ engine, reader, writer, url, query }) => {
    await query(GROWN.replaceAll('READER', reader).replaceAll('WRITER', writer));
    const before = await query(ACLS);
    const pulled = project({ main: url }, {}, {}, OPTIONS);
    const { warnings } = json(assertExit(await pulled.svc('db', 'schema', 'pull', '--json')));
    assert.deepEqual(warnings, []);
    assertExit(await pulled.svc('db', 'migrate', 'baseline'));
    assert.match(assertExit(await pulled.svc('db', 'schema', 'check', '--strict')).stdout, /^OK/);

    if (engine.name !== 'pglite')
      await engine.withUrl(async (to, connect) => {
        const made = project({ main: to }, {}, {}, OPTIONS);
        cpSync(join(pulled.root, 'svc'), join(made.root, 'svc'), { recursive: true });
        const here: Query = (text) => connectedBy(connect)((connection) => connection.query(text));
        const empty = await here(ACLS);
        try {
          assertExit(await made.svc('db', 'migrate'));
          assert.deepEqual(await here(ACLS), before);
          assert.match(assertExit(await made.svc('db', 'schema', 'check', '--strict')).stdout, /^OK/);
          assertExit(await made.svc('db', 'migrate', 'rollback', '--allow-destructive'));
          assert.deepEqual(await here(ACLS), empty);
        } finally {
          await here(`drop owned by ${reader}, ${writer}`);
        }
      });

    const file = `${OBJECTS}/grants/orders.sql`;
    assert.match(pulled.read(file), new RegExp(`GRANT DELETE, INSERT, SELECT, TRUNCATE ON TABLE orders TO ${reader};`));
    pulled.write(
      file,
      `GRANT REFERENCES ON orders TO ${writer} WITH GRANT OPTION;
GRANT SELECT ("Note"), UPDATE ("Note", total) ON TABLE orders TO ${reader};
GRANT INSERT ON TABLE orders TO ${reader}, PUBLIC;`,
    );
    pulled.write(`${OBJECTS}/grants/type mood.sql`, `GRANT USAGE ON TYPE mood TO ${writer};`);
    assertExit(await pulled.svc('db', 'schema', 'generate'));
    assertExit(await pulled.svc('db', 'migrate'));
    assert.match(assertExit(await pulled.svc('db', 'schema', 'check', '--strict')).stdout, /^OK/);
    const may = `select has_table_privilege('${reader}', 'orders', 'DELETE') as gone, has_column_privilege('${reader}', 'orders', 'total', 'UPDATE') as kept, has_type_privilege('${reader}', 'mood', 'USAGE') as back`;
    assert.deepEqual(await query(may), [{ gone: false, kept: true, back: true }]);
    assertExit(await pulled.svc('db', 'migrate', 'rollback'));
    assert.deepEqual(await query(ACLS), before);

    pulled.write(`${OBJECTS}/grants/tickets.sql`, 'GRANT USAGE ON SEQUENCE tickets TO svc_nobody;');
    assertExit(await pulled.svc('db', 'schema', 'generate'));
    const refused = assertExit(await pulled.svc('db', 'migrate'), 2);
    assert.match(refused.stderr, /The role "svc_nobody" does not exist/);
    assert.deepEqual(await query(ACLS), before);
    for (const text of [
      'GRANT USAGE ON SEQUENCE orders_id_seq TO PUBLIC',
      `REVOKE USAGE ON SEQUENCE tickets FROM ${reader}`,
      'GRANT USAGE ON SEQUENCE tickets TO CURRENT_USER',
    ]) {
      pulled.write(`${OBJECTS}/grants/tickets.sql`, text);
      const { stderr } = assertExit(await pulled.svc('db', 'schema', 'generate'), 2);
      assert.match(stderr, /does not create the grants "tickets"/);
    }
  },
);

/** With what nobody has changed, too. */
const EFFECTIVE = `select relname::text as name, ${sorted("coalesce(relacl, acldefault('r', relowner))")} as acl from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'v', 'm') and relname !~ '^_svc_'
union all select relname || '.' || attname, ${sorted('attacl')} from pg_attribute a join pg_class c on c.oid = attrelid where relnamespace = 'public'::regnamespace and attacl is not null
union all select oid::regprocedure::text, ${sorted("coalesce(proacl, acldefault('f', proowner))")} from pg_proc where pronamespace = 'public'::regnamespace
union all select typname, ${sorted("coalesce(typacl, acldefault('T', typowner))")} from pg_type where typnamespace = 'public'::regnamespace and typtype = 'e' order by 1`;

on(
  'what is moved aside or made again has the privileges that it had, whatever new things have',
  async ({ reader, writer, url, query }) => {
    await query(`create type mood as enum ('a', 'b'); create table t (id int primary key, a int, m mood);
create view secret as select a from t; create view shared as select a, id from t; create materialized view kept as select a from t;
create function first_of(secret) returns int language sql as 'select 1';
grant select on shared to ${reader} with grant option; grant update (a) on shared to ${writer}; revoke insert on shared from current_user;
revoke usage on type mood from public; grant usage on type mood to ${writer}; revoke execute on function first_of(secret) from public;
alter default privileges grant select, delete on tables to public; alter default privileges grant usage on types to ${reader} with grant option;
alter default privileges grant execute on functions to ${reader}`);
    const before = await query(EFFECTIVE);
    const { svc, read, write } = project({ main: url });
    assertExit(await svc('db', 'schema', 'pull'));
    assertExit(await svc('db', 'migrate', 'baseline'));
    const [main] = JSON.parse(read('svc/database/schema.json'));
    write('svc/database/schema.json', [
      {
        ...main,
        tables: { t: { ...main.tables.t, a: { ...main.tables.t.a, type: 'bigint', native: undefined } } },
      },
    ]);
    write(`${OBJECTS}/type/mood.sql`, "CREATE TYPE mood AS ENUM ('a', 'c')");
    assertExit(await svc('db', 'schema', 'generate'));
    assertExit(await svc('db', 'migrate', '--yes'));
    assert.deepEqual(
      await query(
        "select format_type(atttypid, -1) as a from pg_attribute where attrelid = 'secret'::regclass and attname = 'a'",
      ),
      [{ a: 'bigint' }],
    );
    assert.deepEqual(await query(EFFECTIVE), before);
    assertExit(await svc('db', 'migrate', 'rollback', '--yes'));
    assert.deepEqual(await query(EFFECTIVE), before);
  },
);

test('texts that give the same privileges are the same, however their statements are grouped', () => {
  const isSame = (written: string, found: string): boolean => sameStatements('grants', written, found);
  for (const [written, found] of [
    [
      'grant select, insert on orders to a, PUBLIC',
      'GRANT INSERT, SELECT ON TABLE orders TO PUBLIC; GRANT INSERT, SELECT ON TABLE orders TO a',
    ],
    ['grant select ("Note", total) on orders to a', 'GRANT SELECT (total, "Note") ON TABLE orders TO a'],
    ['grant all privileges on sequence s to "A b"', 'GRANT SELECT, UPDATE, USAGE ON SEQUENCE s TO "A b"'],
    ['grant all on t to a', 'GRANT DELETE, INSERT, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE t TO a'],
    [
      'grant all on t to a',
      'GRANT DELETE, INSERT, MAINTAIN, REFERENCES, SELECT, TRIGGER, TRUNCATE, UPDATE ON TABLE t TO a',
    ],
    ['revoke all on function f(int, text) from public', 'REVOKE EXECUTE ON ROUTINE f(integer, text) FROM PUBLIC'],
    ['grant usage on domain d to group a', 'GRANT USAGE ON TYPE d TO a'],
    ['grant all (a) on t to b', 'GRANT INSERT (a), REFERENCES (a), SELECT (a), UPDATE (a) ON TABLE t TO b'],
  ] as const)
    assert.ok(isSame(written, found), written);
  for (const [written, found] of [
    ['grant select on t to a', 'GRANT SELECT ON TABLE t TO a WITH GRANT OPTION'],
    ['grant select on t to a', 'GRANT SELECT ON TABLE t TO b'],
    ['grant select on t to a', 'GRANT SELECT (id) ON TABLE t TO a'],
    ['grant select, update on t to a', 'GRANT SELECT ON TABLE t TO a'],
    ['revoke usage on type mood from public', 'GRANT USAGE ON TYPE mood TO PUBLIC'],
    ['grant all on t to a', 'GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE t TO a'],
  ] as const)
    assert.ok(!isSame(written, found), written);
});
