import * as assert from 'node:assert/strict';
import { adopted, makeAgain, OBJECTS, on, types } from './kit/object-files.ts';
import { assertExit } from './kit/project.ts';

/** Names with a dot of what belongs to a table, which are quoted after the name of the table. */

const SETUP = `
create table users (id int primary key, at int4range, name text);
create function quiet() returns trigger language plpgsql as $$ begin return new; end $$;
create trigger "a.b" before insert on users for each row execute function quiet();
comment on trigger "a.b" on users is 'x';
create trigger "a.""b.c" after update on users for each row execute function quiet();
create trigger """d""" after delete on users for each row execute function quiet();
create rule "a.b" as on delete to users where old.id < 0 do instead nothing;
create policy "a.b" on users using (id > 0);
alter table users add constraint "a.b" exclude using gist (at with &&);
create view active as select id from users;
create trigger "a.b" instead of insert on active for each row execute function quiet();
`;

on(
  'what belongs to a table may have a dot in its name',
  (fixture, engine) =>
    makeAgain(fixture, engine, async ({ objects }) => {
      const names = [...(await objects()).keys()];
      for (const name of [
        'trigger/users."a.b"',
        'trigger/active."a.b"',
        'trigger/users."a.""b.c"',
        'policy/users."a.b"',
      ])
        assert.ok(names.includes(name), names.join('\n'));
    }),
  SETUP,
);

on(
  'a trigger with a dot in its name is moved aside and replaced',
  async (fixture) => {
    const { svc, edit } = fixture;
    await adopted(fixture);
    const file = `${OBJECTS}/trigger/users.%22a.b%22.sql`;
    edit(file, (text) => text.replace('BEFORE INSERT', 'BEFORE UPDATE OF name'));
    assertExit(await svc('db', 'schema', 'generate'));
    assert.deepEqual(types(fixture), ['replaceObject trigger/users."a.b"']);
    assertExit(await svc('db', 'migrate'));
    edit('svc/database/schema.json', (text) => {
      const [entry] = JSON.parse(text);
      entry.tables.users.name = { type: 'String' };
      return JSON.stringify([entry]);
    });
    assertExit(await svc('db', 'schema', 'generate'));
    assert.ok(types(fixture).includes('dropObject trigger/users."a.b"'), types(fixture).join('\n'));
    assertExit(await svc('db', 'migrate', '--allow-destructive'));
    assert.match(assertExit(await svc('db', 'schema', 'check', '--strict')).stdout, /^OK/);
    assertExit(await svc('db', 'migrate', 'rollback', '--allow-destructive'));
  },
  SETUP,
);
