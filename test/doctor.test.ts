import * as assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { agentMarker } from '../cli/agent.ts';
import { auditTable, historyTable, metaTable } from '../core/migration/history-table.ts';
import { cassandra } from '../plugins/dialects/cassandra/dialect.ts';
import { dynamodb } from '../plugins/dialects/dynamodb/dialect.ts';
import { mongodb } from '../plugins/dialects/mongodb/dialect.ts';
import { freshKeyspace } from './kit/cassandra.ts';
import { freshPrefix } from './kit/dynamodb.ts';
import { sqlEngines } from './kit/engines.ts';
import { freshMongo } from './kit/mongodb.ts';
import { assertExit, json, LONG, type Project, project, users, withAge } from './kit/project.ts';
import { rabbitmqUnderTest } from './kit/rabbitmq.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { find } from './servers/find.ts';
import { freePort } from './suites/free-port.ts';

interface Check {
  readonly name: string;
  readonly result: string;
  readonly message: string;
  readonly next?: readonly string[];
}

/** What doctor says about the database. */
async function doctor({ svc }: Pick<Project, 'svc'>, status = 0): Promise<readonly Check[]> {
  const { checks } = json(assertExit(await svc('doctor', '--json'), status));
  return (checks as readonly Check[]).filter(({ name }) => name === 'database main');
}

test('an agent is found by the variables of its shell, and by values that only an agent sets', () => {
  for (const [variables, marker] of [
    [{ CLAUDECODE: '1' }, 'CLAUDECODE'],
    [{ OR_APP_NAME: 'Aider' }, 'OR_APP_NAME'],
    [{ AWS_EXECUTION_ENV: 'AmazonQ-For-CLI Version/1.9.0' }, 'AWS_EXECUTION_ENV'],
    [{ CLAUDECODE: '', OR_APP_NAME: 'Another', AWS_EXECUTION_ENV: 'AWS_ECS_FARGATE' }, undefined],
  ] as const)
    assert.equal(agentMarker(variables), marker);
});

const BROKER = 'doctor connects to a broker, and names one that does not answer without its password';
if (rabbitmqUnderTest.skip !== undefined) test.skip(BROKER, rabbitmqUnderTest.skip);
else {
  test(BROKER, async () => {
    const { host, port } = rabbitmqUnderTest.server;
    const of = async (url: string, status: number): Promise<Check | undefined> => {
      const { svc } = project({}, { brokers: { bus: { type: 'rabbitmq', url } } });
      const { checks } = json(assertExit(await svc('doctor', '--json'), status));
      return (checks as readonly Check[]).find(({ name }) => name === 'broker bus');
    };
    assert.equal((await of(String(rabbitmqUnderTest.options(host, port).url), 0))?.result, 'ok');
    const dead = await of(`amqp://svc:not-a-secret@127.0.0.1:${await freePort()}`, 1);
    assert.equal(dead?.result, 'fail');
    assert.match(dead?.message ?? '', /127\.0\.0\.1:\d+.*ECONNREFUSED/);
    assert.doesNotMatch(JSON.stringify(dead), /not-a-secret/);
  });
}

test('doctor names the package of a broker whose driver cannot be loaded', async () => {
  const { svc, write } = project({}, { brokers: { bus: { type: 'rabbitmq', url: 'amqp://127.0.0.1:1' } } });
  write('node_modules/amqplib/index.js', "throw new Error('half installed');");
  const { checks } = json(assertExit(await svc('doctor', '--json'), 1));
  const check = (checks as readonly Check[]).find(({ name }) => name === 'broker bus');
  assert.match(check?.message ?? '', /^The RabbitMQ driver cannot be loaded\. .*half installed$/);
  assert.deepEqual(check?.next, ['npm install amqplib']);
});

test('approvals are not checked where their database does not respond', async () => {
  const { svc } = project(
    { main: `postgres://127.0.0.1:${await freePort()}/shop` },
    { approvals: { store: { database: 'main' } } },
  );
  const { stdout } = assertExit(await svc('doctor'), 1);
  assert.match(stdout, /^fail {2}database main: /m);
  assert.match(stdout, /^warn {2}approvals: not checked, because of the failed check of database main$/m);
});

test('a plugin that cannot be used is one failed check, and names the rest that is not checked', async () => {
  const { write, svc } = project(
    { main: 'abacus://beads' },
    { plugins: ['./broken.mjs'], brokers: { bus: { type: 'acme' } } },
  );
  write('broken.mjs', "export default { name: 'broken', api: 1, apply() { throw new Error('no beads'); } };");
  const result = assertExit(await svc('doctor'), 1);
  assert.equal(result.stdout.match(/no beads/g)?.length, 1, result.stdout);
  assert.match(result.stdout, /^warn {2}database main: not checked, because of the failed check of plugins$/m);
  assert.match(result.stdout, /^warn {2}broker bus: not checked, because of the failed check of plugins$/m);
  assert.match(result.stdout, /^1 of \d+ checks failed\.$/m);
});

test('a dialect that throws when it identifies a URL is named, as is its plugin', async () => {
  const databases = { main: { dialect: 'abacus', url: 'abacus://beads' } };
  const { write, svc } = project({}, { plugins: ['./plugin.mjs'], databases });
  write(
    'plugin.mjs',
    `const abacus = { name: 'abacus', identify() { throw new Error('no rod'); } };
export default { name: 'acme-abacus', api: 1, apply: (kernel) => kernel.dialects.register('abacus', abacus) };`,
  );
  const error = json(assertExit(await svc('db', 'migrate', 'status', '--json'), 2));
  assert.equal(error.code, 'plugin_invalid', JSON.stringify(error));
  assert.equal(error.why, 'In the plugin "acme-abacus", "identify" threw: no rod');
});

test('a dialect that throws when it connects is named, as is its plugin, and is no bug of svc', async () => {
  const databases = { main: { dialect: 'abacus', url: 'abacus://beads' } };
  const { write, svc } = project({}, { plugins: ['./plugin.mjs'], databases });
  write(
    'plugin.mjs',
    `const abacus = { name: 'abacus', identify: (url) => url, async connect() { throw new Error('connect ECONNREFUSED'); } };
export default { name: 'acme-abacus', api: 1, apply: (kernel) => kernel.dialects.register('abacus', abacus) };`,
  );
  const error = json(assertExit(await svc('db', 'migrate', 'status', '--json'), 1));
  assert.equal(error.code, 'connection_failed', JSON.stringify(error));
  assert.equal(error.why, 'In the plugin "acme-abacus", "connect" threw: connect ECONNREFUSED');
  assert.match(
    assertExit(await svc('doctor'), 1).stdout,
    /^fail {2}database main: The dialect "abacus" could not open the database/m,
  );
});

const messages = (checks: readonly Check[]): string => checks.map(({ message }) => message).join('\n');

for (const engine of sqlEngines) {
  const on = (what: string, body: Parameters<typeof engine.withUrl>[0]): void => {
    if (engine.missing !== undefined) test.skip(`${engine.name}: ${what}`, engine.missing);
    else test(`${engine.name}: ${what}`, () => engine.withUrl(body), LONG);
  };

  on('doctor reports drift and edited files, and changes nothing', async (url, connect) => {
    const shop = project({ main: url });
    const tablesNow = async () => {
      const { connection } = await connect();
      const rows = await connection.query(
        `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = ${engine.sql.currentSchema} ORDER BY 1`,
      );
      await connection.close();
      return rows.map(({ name }) => name);
    };
    assert.match(messages(await doctor(shop)), /no history yet[\s\S]*the user may create tables, change/);
    assert.deepEqual(await tablesNow(), []);
    const wrong = 'svc/database/migrations/main/20260101_000000_wrong.json';
    shop.write(wrong, { tag: '20260101_000000_wrong', up: [{ type: 'addFeld' }] });
    const invalid = await doctor(shop, 1);
    assert.match(messages(invalid), /20260101_000000_wrong\.json is not a valid migration[\s\S]*no history yet/);
    rmSync(join(shop.root, wrong));
    shop.schema(users);
    assertExit(await shop.svc('db', 'schema', 'generate'));
    assertExit(await shop.svc('db', 'migrate'));
    const before = await tablesNow();
    const well = await doctor(shop);
    assert.match(messages(well), /1 of 1 migration file applied\nthe schema matches/);
    assert.deepEqual(await tablesNow(), before);

    const { connection } = await connect();
    await connection.query('ALTER TABLE users ADD COLUMN by_hand int');
    await connection.close();
    const drifted = (await doctor(shop)).find(({ result }) => result === 'warn');
    assert.match(drifted?.message ?? '', /differs from the applied migrations in 1 place/);
    assertExit(await shop.svc(...(drifted?.next?.[0] ?? '').split(' ').slice(1)), 5);

    const [file = ''] = shop.files();
    const path = `svc/database/migrations/main/${file}`;
    shop.write(path, shop.read(path).replace('"email"', '"mail"'));
    const edited = (await doctor(shop, 1)).find(({ result }) => result === 'fail');
    assert.match(edited?.message ?? '', /edited: \d+_\d+_create_users/);
    assertExit(await shop.svc(...(edited?.next?.[0] ?? '').split(' ').slice(1)), 5);
  });

  if (engine.name === 'pglite') continue;
  on('doctor reports what a user may not do', async (url, connect) => {
    const owner = project({ main: url });
    owner.schema(users);
    const user = `svc_${randomUUID().replaceAll('-', '').slice(0, 20)}`;
    const asUser = new URL(url);
    [asUser.username, asUser.password] = [user, 'Secret_1'];
    const { connection } = await connect();
    const database = asUser.pathname.slice(1);
    const isPostgresql = engine.dialect.name === 'postgresql';
    const execute = async (...texts: readonly string[]) => {
      for (const text of texts) await connection.query(text);
    };
    const as = { mysql: `'${user}'@'%'`, postgresql: user }[isPostgresql ? 'postgresql' : 'mysql'];
    try {
      await execute(
        ...(isPostgresql
          ? [`CREATE ROLE ${user} LOGIN PASSWORD 'Secret_1'`, 'REVOKE CREATE ON SCHEMA public FROM PUBLIC']
          : [`CREATE USER ${as} IDENTIFIED BY 'Secret_1'`, `GRANT SELECT ON ${database}.* TO ${as}`]),
      );
      const guest = project({ main: asUser.href });
      const empty = messages(await doctor(guest, 1));
      assert.match(empty, /the user may not create tables \(/);
      assert.doesNotMatch(empty, /Secret_1/);

      assertExit(await owner.svc('db', 'schema', 'generate'));
      assertExit(await owner.svc('db', 'migrate'));
      const refused = messages(await doctor(guest, 1));
      assert.match(refused, /may not create tables[\s\S]*write the history/);
      if (isPostgresql) {
        assert.doesNotMatch(refused, /no history yet/);
        assert.match(refused, /42501/);
        await execute(`GRANT CREATE ON SCHEMA public TO ${user}`);
        await execute(`GRANT ALL ON ALL TABLES IN SCHEMA public TO ${user}`);
        const tables = messages(await doctor(guest, 1));
        assert.match(tables, /the user may not change the tables \(not of users\)$/);
        await execute(`ALTER TABLE users OWNER TO ${user}`);
      } else {
        await execute(`GRANT ALL ON ${database}.* TO ${as}`);
      }
      for (const file of owner.files()) {
        const path = `svc/database/migrations/main/${file}`;
        guest.write(path, owner.read(path));
      }
      assert.match(messages(await doctor(guest)), /the user may create tables, change/);
      guest.schema(withAge);
      assertExit(await guest.svc('db', 'schema', 'generate'));
      assertExit(await guest.svc('db', 'migrate'));
    } finally {
      await connection.query(isPostgresql ? `DROP OWNED BY ${user}` : 'SELECT 1');
      await connection.query(isPostgresql ? `DROP ROLE ${user}` : `DROP USER ${as}`);
      await connection.close();
    }
  });

  on('doctor tries whether a pending foreign key may reference its table', async (url, connect) => {
    const { connection } = await connect();
    const user = `svc_${randomUUID().replaceAll('-', '').slice(0, 20)}`;
    const asUser = new URL(url);
    [asUser.username, asUser.password] = [user, 'Secret_1'];
    const isPostgresql = engine.dialect.name === 'postgresql';
    const database = asUser.pathname.slice(1);
    const as = isPostgresql ? user : `'${user}'@'%'`;
    const execute = async (...texts: readonly string[]) => {
      for (const text of texts) await connection.query(text);
    };
    const own = [historyTable, metaTable, auditTable].map(({ collection }) => collection);
    const guest = project({ main: asUser.href });
    const id = { name: 'id', type: 'integer', primaryKey: true };
    const referenceTo = (table: string) => ({
      type: 'addConstraint',
      collection: 'orders',
      constraint: { name: `of_${table}`, type: 'foreignKey', columns: ['id'], references: { table, columns: ['id'] } },
    });
    guest.write('svc/database/migrations/main/20260101_000000_orders.json', {
      tag: '20260101_000000_orders',
      up: [
        { type: 'createCollection', name: 'customers', fields: [id] },
        { type: 'renameCollection', collection: 'customers', to: 'clients' },
        { type: 'createCollection', name: 'orders', fields: [id] },
        referenceTo('clients'),
        referenceTo('accounts'),
      ],
      down: [],
    });
    try {
      await execute('CREATE TABLE accounts (id int PRIMARY KEY)');
      await execute(
        ...(isPostgresql
          ? [`CREATE ROLE ${user} LOGIN PASSWORD 'Secret_1'`, `GRANT CREATE ON SCHEMA public TO ${user}`]
          : [
              `CREATE USER ${as} IDENTIFIED BY 'Secret_1'`,
              `GRANT CREATE, ALTER, DROP, INDEX, CREATE TEMPORARY TABLES ON ${database}.* TO ${as}`,
              ...[...own, '_svc_lock', '_svc_doctor_missing', 'orders', 'customers', 'clients'].map(
                (table) => `GRANT ALL ON ${database}.${table} TO ${as}`,
              ),
            ]),
      );
      const refused = messages(await doctor(guest, 1));
      assert.match(refused, /the user may not reference the table "accounts" \([^()]+\)$/);
      // MySQL and MariaDB hide the fields of the table too.
      assertExit(await guest.svc('db', 'migrate'), isPostgresql ? 1 : 2);
      await execute(
        isPostgresql ? `GRANT REFERENCES (id) ON accounts TO ${user}` : `GRANT SELECT, REFERENCES ON accounts TO ${as}`,
      );
      assert.match(messages(await doctor(guest)), /the user may [^\n]*, reference the table "accounts"$/);
      assertExit(await guest.svc('db', 'migrate'));
      assert.doesNotMatch(messages(await doctor(guest)), /reference/);
    } finally {
      await connection.query(isPostgresql ? `DROP OWNED BY ${user}` : 'SELECT 1');
      await connection.query(isPostgresql ? `DROP ROLE ${user}` : `DROP USER ${as}`);
      await connection.close();
    }
  });
}

for (const [name, dialect, fresh] of [
  ['mongodb', mongodb, () => freshMongo()],
  ['dynamodb', dynamodb, (url: string) => freshPrefix(Number(new URL(url).port))],
  ['cassandra', cassandra, () => freshKeyspace()],
] as const) {
  const found = await find(name);
  const what = `${name}: the probes of permissions pass for an administrator, and change nothing`;
  if ('missing' in found) {
    test.skip(what, found.missing);
    continue;
  }
  test(what, async () => {
    const { url, drop } = await fresh(found.url);
    const { connection } = await connectTarget(dialect, url);
    try {
      assert.ok(connection.permissionProbes && connection.permissionProbes.length >= 3);
      for (const { text } of connection.permissionProbes) {
        const code = await connection.query(text).then(
          () => undefined,
          (error) => error.code,
        );
        assert.ok([undefined, 'collection_unknown', 'migration_failed'].includes(code), `${text}: ${code}`);
      }
      assert.deepEqual([...(await connection.introspect()).keys()], []);
      assert.deepEqual(await connection.unsupportedObjects(), []);
    } finally {
      await connection.close();
      await drop();
    }
  });
}
