import * as assert from 'node:assert/strict';
import { freshDatabase, unavailable } from './kit/postgresql.ts';
import { id, LONG, type Project, project } from './kit/project.ts';
import { terminal } from './kit/terminal.ts';
import { test as declare } from './kit/test.ts';

const DOWN = '\u001b[B';

const missing = await unavailable();

function test(name: string, body: () => Promise<void>, options: typeof LONG): void {
  if (missing === undefined) declare(name, body, options);
  else declare.skip(name, missing);
}

async function onDatabase(body: (shop: Project) => Promise<void>): Promise<void> {
  const { url, drop } = await freshDatabase();
  try {
    await body(project({ main: url }));
  } finally {
    await drop();
  }
}

const typed = ({ root }: Project, ...args: string[]) => terminal(args, { cwd: root });

async function applied(shop: Project, tables: object): Promise<void> {
  shop.schema(tables);
  assert.equal((await shop.svc('db', 'schema', 'generate')).status, 0);
  assert.equal((await shop.svc('db', 'migrate')).status, 0);
}

test(
  'generate asks whether a missing name was renamed',
  () =>
    onDatabase(async (shop) => {
      shop.schema({ users: { id, name: 'String' } });
      assert.equal((await shop.svc('db', 'schema', 'generate')).status, 0);
      shop.schema({ users: { id, full_name: 'String' } });
      const asking = typed(shop, 'db', 'schema', 'generate');
      await asking.until('The field "users.name" was removed. What happened to it?');
      await asking.until('renamed to "full_name"');
      asking.type('\r');
      assert.equal(await asking.ended, 0, asking.shown());
      const { up } = JSON.parse(shop.read(`svc/database/migrations/main/${shop.files().at(-1)}`));
      assert.deepEqual(up, [{ type: 'renameField', collection: 'users', from: 'name', to: 'full_name' }]);

      shop.schema({ users: { id, title: 'String' } });
      const dropping = typed(shop, 'db', 'schema', 'generate');
      await dropping.until('dropped, with its data');
      dropping.type(DOWN);
      await dropping.until(/❯ dropped|> dropped/);
      dropping.type('\r');
      assert.equal(await dropping.ended, 0, dropping.shown());
      const last = JSON.parse(shop.read(`svc/database/migrations/main/${shop.files().at(-1)}`));
      assert.deepEqual(last.up.map(({ type }: { type: string }) => type).sort(), ['addField', 'dropField']);
    }),
  LONG,
);

test(
  'migrate asks before it destroys data, and declining exits with 3',
  () =>
    onDatabase(async (shop) => {
      await applied(shop, { users: { id, name: 'String' } });
      shop.schema({ users: { id } });
      assert.equal((await shop.svc('db', 'schema', 'generate')).status, 0);
      const no = typed(shop, 'db', 'migrate');
      await no.until('1 statement destroys data. Continue?');
      no.type('n\r');
      assert.equal(await no.ended, 3, no.shown());
      assert.match((await shop.svc('db', 'migrate', 'status')).stdout, /^PENDING 1/);
      const yes = typed(shop, 'db', 'migrate');
      await yes.until('Continue?');
      yes.type('y\r');
      assert.equal(await yes.ended, 0, yes.shown());
      assert.match((await shop.svc('db', 'migrate', 'status')).stdout, /^OK/);
    }),
  LONG,
);

test(
  'rollback shows what it will undo and asks; Ctrl-C at the question changes nothing',
  () =>
    onDatabase(async (shop) => {
      await applied(shop, { users: { id, name: 'String' } });
      const left = typed(shop, 'db', 'migrate', 'rollback');
      await left.until('Roll back 1 migration in main (dev)?');
      assert.match(left.shown(), /loses data/);
      left.type('\u0003');
      assert.equal(await left.ended, 130, left.shown());
      assert.match((await shop.svc('db', 'migrate', 'status')).stdout, /^OK/);
      const yes = typed(shop, 'db', 'migrate', 'rollback');
      await yes.until('Roll back 1 migration');
      yes.type('y\r');
      assert.equal(await yes.ended, 0, yes.shown());
      assert.match(yes.shown(), /1 migration rolled back/);
      assert.match((await shop.svc('db', 'migrate', 'status')).stdout, /^PENDING 1/);
    }),
  LONG,
);

test(
  'a protected environment is an error, not a question',
  () =>
    onDatabase(async (shop) => {
      await applied(shop, { users: { id } });
      const refused = typed(shop, 'db', 'migrate', 'rollback', '--env', 'prd');
      assert.equal(await refused.ended, 2, refused.shown());
    }),
  LONG,
);

test(
  'migrations are counted on one line of a terminal, and only terminals get color',
  () =>
    onDatabase(async (shop) => {
      for (let index = 0; index < 60; index++) {
        const tag = `20200101_0000${String(index).padStart(2, '0')}_t${index}`;
        const up = [
          { type: 'createCollection', name: `t${index}`, fields: [{ name: 'id', type: 'integer', primaryKey: true }] },
        ];
        shop.write(`svc/database/migrations/main/${tag}.json`, {
          tag,
          up,
          down: [{ type: 'dropCollection', collection: `t${index}` }],
        });
      }
      const run = typed(shop, 'db', 'migrate');
      assert.equal(await run.ended, 0, run.shown());
      assert.match(run.shown(), /\d+ of 60 {2}20200101_0000/);
      assert.match(run.shown(), /60 migrations, 60 steps, [\d.]+ m?s/);
      const csi = '\u001b[';
      const colored = typed(shop, 'db', 'migrate', 'status');
      assert.equal(await colored.ended, 0);
      assert.ok(colored.shown().includes(`${csi}32m[x]`), colored.shown().slice(0, 200));
      const plain = terminal(['db', 'migrate', 'status'], { cwd: shop.root, env: { NO_COLOR: '1' } });
      assert.equal(await plain.ended, 0);
      assert.ok(!plain.shown().includes(`${csi}32m`));
      assert.ok(!(await shop.svc('db', 'migrate', 'status')).stdout.includes(csi));
    }),
  LONG,
);
