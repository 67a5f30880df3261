import * as assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { background } from './kit/background.ts';
import { engines, sqlEngines, type TestEngine } from './kit/engines.ts';
import { type Project, project } from './kit/project.ts';
import { QUICK } from './kit/quick.ts';
import { refusedText } from './kit/refused-command.ts';
import { ok, users } from './kit/shop.ts';
import { test } from './kit/test.ts';
import { waitUntil } from './suites/wait-until.ts';

// Interruptions, crowds and readers that go away, through the real command line.

const MIGRATIONS = 'svc/database/migrations/main';
const SLOW = { timeoutMs: 240_000 };
const raw = (statement: string, more: object = {}) => ({ type: 'raw', dialect: 'postgresql', statement, ...more });
/** Takes as long as nobody has written into the table `gate`. */
const WAITS = raw('DO $$ BEGIN WHILE NOT EXISTS (SELECT FROM gate) LOOP PERFORM pg_sleep(0.02); END LOOP; END $$');
const [FIRST, SECOND] = ['20260101_000000_first', '20260102_000000_second'];

function write(shop: Project, tag: string, up: readonly object[], down: readonly object[] = []): void {
  shop.write(`${MIGRATIONS}/${tag}.json`, { tag, name: tag.slice(16), up, down });
}

type Query = (text: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;

const onEngine = (engine: TestEngine, body: (shop: Project, query: Query, url: string) => Promise<void>) => () =>
  engine.withUrl((url, connect) =>
    body(
      project({ main: url }),
      async (text) => {
        const { connection } = await connect();
        try {
          return await connection.query(text);
        } finally {
          await connection.close();
        }
      },
      url,
    ),
  );

const tables = async (query: Query, here = 'current_schema()'): Promise<unknown[]> =>
  (
    await query(
      `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = ${here} AND table_name NOT LIKE '\\_svc\\_%' AND table_name <> 'gate' ORDER BY 1`,
    )
  ).map(({ name }) => name);

for (const engine of sqlEngines) {
  if (engine.missing !== undefined) {
    test.skip(`${engine.name}: bad days`, engine.missing);
    continue;
  }
  const { here } = engine.words;
  const dialect = engine.dialect.name;

  test(
    `${engine.name}: Ctrl-C between two migrations keeps the first, and the next run goes on`,
    onEngine(engine, async (shop, query) => {
      // The hook sends the signal while the first migration is about to run.
      shop.write(
        'stop.mjs',
        `let sent = false;
        export default { name: 'stop', api: 1, apply: (kernel) => kernel.hooks['migration:up'].tapPromise('stop', async () => {
          if (sent || process.env.GO_ON) return;
          sent = true;
          const heard = new Promise((settle) => process.once('SIGINT', settle));
          process.kill(process.pid, 'SIGINT');
          await heard;
        }) };`,
      );
      const config = JSON.parse(shop.read('svc.config.json'));
      shop.write('svc.config.json', { ...config, plugins: ['./stop.mjs'] });
      write(shop, FIRST, [raw('CREATE TABLE a (i int)', { dialect })]);
      write(shop, SECOND, [raw('CREATE TABLE b (i int)', { dialect })]);
      const text = refusedText(await shop.svc('db', 'migrate'), 130, 'interrupted');
      assert.match(text, /1 of 2 migrations are finished/);
      assert.deepEqual(await tables(query, here), ['a']);
      shop.write('svc.config.json', config);
      assert.match(ok(await shop.svc('db', 'migrate')).stdout, /^1 migration,/);
      assert.deepEqual(await tables(query, here), ['a', 'b']);
    }),
    SLOW,
  );

  const many = engine.name === 'pglite' ? 4 : 16;
  test(
    `${engine.name}: ${many} times svc db migrate at once apply everything once and all end with 0`,
    onEngine(engine, async (shop, query) => {
      write(shop, FIRST, [raw('CREATE TABLE a (i int)', { dialect }), raw('INSERT INTO a VALUES (1)', { dialect })]);
      write(shop, SECOND, [raw('INSERT INTO a VALUES (2)', { dialect, transaction: false })]);
      const ended = await Promise.all(
        Array.from({ length: many }, () => shop.svc('db', 'migrate', '--json', '--lock-timeout', '180')),
      );
      const applied = ended.map((ran) => JSON.parse(ok(ran).stdout).databases[0].migrations.length);
      assert.equal(
        applied.reduce((sum, one) => sum + one, 0),
        2,
      );
      assert.deepEqual(await query('SELECT i FROM a ORDER BY i'), [{ i: 1 }, { i: 2 }]);
    }),
    SLOW,
  );

  test(
    `${engine.name}: a reader that went away before migrate wrote its line does not stop it`,
    onEngine(engine, async (shop, query) => {
      write(shop, FIRST, [raw('CREATE TABLE a (i int)', { dialect })]);
      for (const args of [
        ['db', 'migrate'],
        ['db', 'migrate', 'status', '--json'],
      ]) {
        const running = background(args, shop.root, engine.name === 'pglite' ? [QUICK] : []);
        running.child.stdout?.destroy();
        const { status, stderr } = await running.ended;
        assert.equal(status, 0, stderr);
        assert.doesNotMatch(stderr, /EPIPE|error|bug/);
      }
      assert.deepEqual(await tables(query, here), ['a']);
      assert.equal(ok(await shop.svc('db', 'migrate')).stdout, 'Nothing to do in main (dev).\n');
    }),
    SLOW,
  );

  test(
    `${engine.name}: in a pipe nothing is coloured, nor on a terminal that is dumb`,
    onEngine(engine, async (shop) => {
      shop.schema(users);
      for (const args of [
        ['schema', 'generate'],
        ['migrate', '-v'],
        ['migrate', 'status'],
        ['migrate', 'rollback'],
      ]) {
        const { stdout, stderr } = ok(await shop.svc('db', ...args));
        assert.ok(!`${stdout}${stderr}`.includes('\u001b'), args.join(' '));
      }
    }),
    SLOW,
  );
}

for (const engine of engines.filter(({ name, missing }) => name === 'postgresql' && missing === undefined)) {
  const waiting = (query: Query) =>
    waitUntil(
      async () =>
        (
          await query(
            "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE '%FROM gate%' AND datname = current_database() AND pid <> pg_backend_pid()",
          )
        ).length > 0,
      'the migration never waited',
    );

  test(
    'postgresql: Ctrl-C lets the migration that runs finish and commits it; the next run goes on',
    onEngine(engine, async (shop, query) => {
      await query('CREATE TABLE gate (i int)');
      write(shop, FIRST, [raw('CREATE TABLE a (i int)'), WAITS]);
      write(shop, SECOND, [raw('CREATE TABLE b (i int)')]);
      const running = background(['db', 'migrate'], shop.root);
      await waiting(query);
      running.child.kill('SIGINT');
      await running.shows('stopping after what runs now');
      await query('INSERT INTO gate VALUES (1)');
      const text = refusedText(await running.ended, 130, 'interrupted');
      assert.match(text, /1 of 2 migrations are finished[\s\S]*svc db migrate/);
      assert.deepEqual(await tables(query), ['a']);
      assert.match(ok(await shop.svc('db', 'migrate', '--lock-timeout', '1')).stdout, /^1 migration,/);
      assert.deepEqual(await tables(query), ['a', 'b']);
    }),
    SLOW,
  );

  test(
    'postgresql: Ctrl-C in a migration of steps journals the one that runs; the next run goes on with the one after it',
    onEngine(engine, async (shop, query) => {
      await query('CREATE TABLE gate (i int)');
      const apart = (statement: string) => raw(statement, { transaction: false });
      write(shop, FIRST, [
        apart('CREATE TABLE a (i int)'),
        { ...WAITS, transaction: false },
        apart('INSERT INTO a VALUES (3)'),
      ]);
      const running = background(['db', 'migrate'], shop.root);
      await waiting(query);
      running.child.kill('SIGTERM');
      await running.shows('stopping after what runs now');
      await query('INSERT INTO gate VALUES (1)');
      assert.match(
        refusedText(await running.ended, 130, 'interrupted'),
        /2 of 3 steps of "20260101_000000_first" are committed and journaled/,
      );
      assert.deepEqual(await query('SELECT i FROM a'), []);
      assert.match(ok(await shop.svc('db', 'migrate', 'status')).stdout, /\[!\] 20260101_000000_first {2}interrupted/);
      ok(await shop.svc('db', 'migrate', '--lock-timeout', '1'));
      assert.deepEqual(await query('SELECT i FROM a'), [{ i: 3 }]);
      assert.match(ok(await shop.svc('db', 'migrate', 'status', '--check')).stdout, /^OK/);
    }),
    SLOW,
  );

  test(
    'postgresql: a rollback killed between its steps is finished by the same command, which takes back nothing more',
    onEngine(engine, async (shop, query) => {
      await query('CREATE TABLE gate (i int)');
      const apart = (statement: string, more = {}) => raw(statement, { transaction: false, ...more });
      write(shop, FIRST, [raw('CREATE TABLE a (i int)')], [raw('DROP TABLE a')]);
      write(
        shop,
        SECOND,
        [apart('CREATE TABLE b (i int)')],
        [apart(WAITS.statement, { check: 'SELECT 1 FROM gate' }), apart('DROP TABLE b')],
      );
      ok(await shop.svc('db', 'migrate'));
      const running = background(['db', 'migrate', 'rollback'], shop.root);
      await waiting(query);
      const beside = ok(await shop.svc('db', 'migrate', 'status'));
      assert.match(beside.stdout, /^PENDING 1[\s\S]*\[>\] 20260102_000000_second {2}rollback running: step 1 of 2/);
      assert.doesNotMatch(beside.stderr, /next/);
      running.child.kill('SIGKILL');
      await running.ended;
      const told = ok(await shop.svc('db', 'migrate', 'status'));
      assert.match(told.stdout, /\[!\] 20260102_000000_second {2}rollback interrupted at step 1 of 2/);
      assert.match(told.stderr, /next {2}svc db migrate resolve 20260102_000000_second --retry/);
      await query('INSERT INTO gate VALUES (1)');
      refusedText(await shop.svc('db', 'migrate', 'rollback', '-n', '2'), 6, 'migration_half_done');
      const shown = ok(await shop.svc('db', 'migrate', 'rollback'));
      assert.match(shown.stderr, /in this order:\n {2}20260102_000000_second\n/);
      assert.match(shown.stdout, /^1 migration rolled back/);
      assert.deepEqual(await tables(query), ['a']);
    }),
    SLOW,
  );

  test(
    'postgresql: Ctrl-C twice ends at once, leaves nothing of the migration and no lock',
    onEngine(engine, async (shop, query) => {
      await query('CREATE TABLE gate (i int)');
      write(shop, FIRST, [raw('CREATE TABLE a (i int)'), WAITS]);
      const running = background(['db', 'migrate'], shop.root);
      await waiting(query);
      running.child.kill('SIGINT');
      await running.shows('stopping after what runs now');
      running.child.kill('SIGINT');
      assert.equal((await running.ended).status, 130);
      // The server notices by itself that its client is gone, though the gate is still shut.
      await waitUntil(
        async () =>
          (
            await query(
              "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
            )
          ).length === 0,
        'the lock stayed',
      );
      assert.deepEqual(await tables(query), []);
      await query('INSERT INTO gate VALUES (1)');
      ok(await shop.svc('db', 'migrate', '--lock-timeout', '1'));
      assert.deepEqual(await tables(query), ['a']);
    }),
    SLOW,
  );
}

for (const engine of engines.filter(({ name }) => name === 'pglite')) {
  test(
    'pglite: while another process has the folder, a migrator waits and others are refused',
    async () => {
      await engine.withUrl(async (url, connect) => {
        const shop = project({ main: url });
        write(shop, FIRST, [raw('CREATE TABLE a (i int)')]);
        const { connection } = await connect();
        for (const args of [
          ['migrate', 'status'],
          ['schema', 'check'],
          ['migrate', '--dry-run'],
        ]) {
          const text = refusedText(await shop.svc('db', ...args), 7, 'database_in_use');
          assert.match(text, new RegExp(`process ${process.pid}`));
        }
        refusedText(await shop.svc('db', 'migrate', '--lock-timeout', '0.2'), 7, 'database_in_use');
        const left = background(['db', 'migrate'], shop.root, [QUICK]);
        await left.shows('waiting for it');
        left.child.kill('SIGINT');
        refusedText(await left.ended, 130, 'interrupted');
        const waits = background(['db', 'migrate'], shop.root, [QUICK]);
        await waits.shows('waiting for it');
        await connection.close();
        assert.match(ok(await waits.ended).stdout, /^1 migration,/);
        assert.ok(!existsSync(`${new URL(url).pathname}.lock`));
      });
    },
    SLOW,
  );
}
