import * as assert from 'node:assert/strict';
import { type AdviceProject, adviceProject, advised, applied, inShop, testOnServer, withServer } from './kit/advice.ts';
import { committingEngines } from './kit/engines.ts';
import { assertExit, json, users } from './kit/project.ts';
import { test } from './kit/test.ts';

const MIGRATIONS = 'svc/database/migrations/main';
const raw = (dialect: string, statement: string) => ({ type: 'raw', dialect, statement });

for (const { name, dialect, missing, withUrl } of committingEngines.map((engine) => ({
  name: engine.name,
  dialect: engine.dialect.name,
  missing: engine.missing,
  withUrl: engine.withUrl.bind(engine),
}))) {
  const on = (
    what: string,
    body: (shop: AdviceProject, connect: Parameters<Parameters<typeof withUrl>[0]>[1]) => Promise<void>,
  ): void => {
    if (missing === undefined)
      test(`${name}: ${what}`, () => withUrl((url, connect) => body(adviceProject({ main: url }), connect)));
    else test.skip(`${name}: ${what}`, missing);
  };
  on('the advised statement makes a field unsigned for a foreign key and keeps NOT NULL', async (shop, connect) => {
    const { connection } = await connect();
    await connection.query('CREATE TABLE owners (id int unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY)');
    const field = (more = {}) => ({
      name: 'owner',
      type: 'BigInt',
      required: true,
      comment: 'who',
      default: 7,
      ...more,
    });
    const pets = [{ name: 'id', type: 'Integer', primaryKey: true }, field({ comment: undefined })];
    const create = {
      tag: '20260101_000000_pets',
      up: [{ type: 'createCollection', name: 'pets', fields: pets }],
      down: [],
    };
    shop.write(`${MIGRATIONS}/${create.tag}.json`, create);
    assertExit(await shop.svc('db', 'migrate'));
    const tag = '20260102_000000_key';
    const key = {
      type: 'addConstraint',
      collection: 'pets',
      constraint: {
        type: 'foreignKey',
        name: 'pets_owner',
        columns: ['owner'],
        references: { table: 'owners', columns: ['id'] },
      },
    };
    shop.write(`${MIGRATIONS}/${tag}.json`, { tag, up: [key], down: [] });
    const failed = await shop.svc('db', 'migrate');
    const [, statement = ''] =
      /constraint: (.*)$/s.exec(
        advised(failed, 'Change its type in a raw statement before the constraint: ALTER TABLE <…> MODIFY <…>'),
      ) ?? [];
    shop.write(`${MIGRATIONS}/${tag}.json`, { tag, up: [raw(dialect, statement), key], down: [] });
    assertExit(await shop.svc('db', 'migrate'));
    const rows = await connection.query(
      "SELECT IS_NULLABLE AS n, COLUMN_TYPE AS t, COLUMN_DEFAULT AS d FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'pets' AND column_name = 'owner'",
    );
    assert.match(String(rows[0]?.t), /^int.*unsigned$/);
    assert.equal(String(rows[0]?.d), '7');
    assert.equal(rows[0]?.n, 'NO');
  });
  on('check --strict after pull does not advise to pull again', async (shop, connect) => {
    const { connection } = await connect();
    await connection.query(
      "CREATE TABLE odd (id int unsigned PRIMARY KEY, name varchar(20) NOT NULL, b bit(7), e enum('a'), s set('x'), ts timestamp NULL, y year, g varchar(10) GENERATED ALWAYS AS (name), KEY p (name(5)))",
    );
    assertExit(await shop.svc('db', 'schema', 'pull'));
    assertExit(await shop.svc('db', 'migrate', 'baseline'));
    const checked = await shop.svc('db', 'schema', 'check', '--strict');
    assert.doesNotMatch(checked.stdout, /pull/);
  });
}

testOnServer('postgresql: check --strict after pull does not advise to pull again', () =>
  withServer(async (shop, query) => {
    await query(`CREATE TABLE odd (id int PRIMARY KEY, code varchar(20) DEFAULT gen_random_uuid());
      CREATE TABLE fine (id int PRIMARY KEY, a inet, odd int REFERENCES odd (id));
      CREATE INDEX part ON fine (odd) WHERE id > 1;
      CREATE VIEW v AS SELECT 1;
      CREATE TABLE arr (id int PRIMARY KEY, a int[][], x int GENERATED ALWAYS AS (id + 1) STORED)`);
    assertExit(await shop.svc('db', 'schema', 'pull'));
    assertExit(await shop.svc('db', 'migrate', 'baseline'));
    const checked = await shop.fails('drift', 'db', 'schema', 'check', '--strict');
    for (const action of json(checked).nextActions) {
      assert.doesNotMatch(action, /pull/);
      await shop.follow(action);
    }
  }),
);

test('generate warns about a file older than the one that makes its table', () =>
  inShop(async (shop) => {
    await applied(shop, users);
    const tag = '20200101_000000_early';
    const addField = { type: 'addField', collection: 'users', field: { name: 'n', type: 'Integer' } };
    shop.write(`${MIGRATIONS}/${tag}.json`, { tag, up: [addField], down: [] });
    const { stderr } = assertExit(await shop.svc('db', 'schema', 'generate'));
    assert.match(stderr, /warning Migrations change the table "users" before one creates it/);
  }));

testOnServer('postgresql: a schema that does not exist is not created unless asked', () =>
  withServer(async (_shop, query, url) => {
    const main = { dialect: 'postgresql', url, schema: 'nope' };
    const shop = adviceProject({}, { databases: { main } });
    shop.schema(users);
    assertExit(await shop.svc('db', 'schema', 'generate'));
    const failed = await shop.fails('config_invalid', 'db', 'migrate');
    for (const command of ['db migrate status', 'db migrate --dry-run', 'doctor', 'db schema check', 'db schema pull'])
      assert.notEqual((await shop.svc(...command.split(' '))).status, 0, command);
    assert.deepEqual(await query("SELECT FROM pg_namespace WHERE nspname = 'nope'"), []);
    await query(advised(failed, 'Or create it: CREATE SCHEMA <…>').replace('Or create it: ', ''));
    assertExit(await shop.svc('db', 'migrate'));
    await query('DROP SCHEMA nope CASCADE');
    await shop.fails('config_invalid', 'db', 'migrate');
    advised(failed, 'Or let the first migration create it: options: { createSchema: true }');
    const asked = { ...main, options: { createSchema: true } };
    shop.write('svc.config.json', { product: 'shop', env: 'dev', databases: { main: asked } });
    assertExit(await shop.svc('db', 'migrate'));
  }),
);
