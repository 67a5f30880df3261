import * as assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { alterSequence } from '../plugins/dialects/mysql/compile/sequence.ts';
import { committingEngines } from './kit/engines.ts';
import { connectedBy } from './kit/object-files.ts';
import { assertExit, json, LONG, project } from './kit/project.ts';
import { test } from './kit/test.ts';

// A sequence of MariaDB is an object, with a value that its definition does not have.

const altered = (definition: string, was = 'create sequence s'): string =>
  alterSequence({ name: 's', definition, was });

test('ALTER SEQUENCE names every option, as CREATE would set it', () => {
  assert.equal(
    altered('create sequence if not exists s -- all defaults'),
    'ALTER SEQUENCE `s` START WITH 1 NOMINVALUE NOMAXVALUE INCREMENT BY 1 CACHE 1000 NOCYCLE',
  );
  assert.equal(
    altered('create sequence s increment = -2 maxvalue 9 no minvalue nocache cycle'),
    'ALTER SEQUENCE `s` START WITH 9 NOMINVALUE MAXVALUE 9 INCREMENT BY -2 NOCACHE CYCLE',
  );
  assert.equal(
    altered('CREATE SEQUENCE `s` start with 5 minvalue -3 maxvalue 10 increment by 3 cache 7 nocycle'),
    'ALTER SEQUENCE `s` START WITH 5 MINVALUE -3 MAXVALUE 10 INCREMENT BY 3 CACHE 7 NOCYCLE',
  );
});

test('what ALTER SEQUENCE cannot change is rejected', () => {
  assert.throws(() => altered('create sequence s as int'), { code: 'migration_invalid' });
  assert.throws(() => altered("create sequence s comment = 'a'"), { code: 'migration_invalid' });
  const commented = "create sequence s increment 2 comment='a'";
  assert.match(altered(commented, "create sequence s comment='a'"), /INCREMENT BY 2 CACHE 1000 NOCYCLE$/);
});

for (const engine of committingEngines.filter(({ name }) => name === 'mariadb')) {
  const what = 'mariadb: sequences are pulled, created before their tables, replaced and dropped';
  if (engine.missing !== undefined) {
    test.skip(what, engine.missing);
    continue;
  }
  test(
    what,
    () =>
      engine.withUrl(async (url, connect) => {
        const query = (text: string) => connectedBy(connect)((connection) => connection.query(text));
        await query(`create sequence numbers start with 100 increment by 5;
          create table tickets (id int primary key, n int not null default nextval(numbers));
          insert into tickets (id) values (1)`);
        const { svc, root, read, write, files } = project({ main: url });
        const { warnings, objects } = json(assertExit(await svc('db', 'schema', 'pull', '--json')));
        assert.deepEqual([warnings, objects], [[], ['sequence/numbers']]);
        const [entry] = JSON.parse(read('svc/database/schema.json'));
        assert.deepEqual(entry.tables.tickets.n.default, { $expression: 'nextval(`numbers`)' });
        const [first = ''] = files();
        const types = JSON.parse(read(`svc/database/migrations/main/${first}`)).up.map(
          (one: { type: string }) => one.type,
        );
        assert.deepEqual(types, ['createObject', 'createCollection']);
        assertExit(await svc('db', 'migrate', 'baseline'));
        assert.match(assertExit(await svc('db', 'schema', 'check')).stdout, /^OK/);

        const file = 'svc/database/objects/main/sequence/numbers.sql';
        write(file, 'create sequence numbers start 100 increment 7 nocache;\n');
        assertExit(await svc('db', 'schema', 'generate'));
        assertExit(await svc('db', 'migrate'));
        assert.match(assertExit(await svc('db', 'schema', 'check')).stdout, /^OK/);
        await query('insert into tickets (id) values (2)');
        const rows = await query('select n from tickets order by id');
        assert.equal(rows[0]?.n, 100);
        assert.ok(Number(rows[1]?.n) > 100, 'its value stays');

        delete entry.tables.tickets.n.default;
        write('svc/database/schema.json', [entry]);
        rmSync(join(root, file));
        assertExit(await svc('db', 'schema', 'generate'));
        assertExit(await svc('db', 'migrate'), 8);
        assertExit(await svc('db', 'migrate', '--allow-destructive'));
        assert.deepEqual(await query("show tables like 'numbers'"), []);
        assertExit(await svc('db', 'migrate', 'rollback'));
        assert.match(
          String((await query('show create sequence numbers'))[0]?.['Create Table']),
          /increment by 7 nocache/,
        );
      }),
    LONG,
  );
}
