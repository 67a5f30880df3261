import * as assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { startCli } from './kit/cli.ts';
import { errorText } from './kit/command-error.ts';
import { engines, sqlEngines, type TestEngine } from './kit/engines.ts';
import { LIFTOFF_ONLY } from './kit/node-flags.ts';
import { assertExit, type Project, project, users } from './kit/project.ts';
import { test } from './kit/test.ts';
import { waitUntil } from './suites/wait-until.ts';

// Interruptions, concurrent runs and closed pipes, through the real command line.

const MIGRATIONS = 'svc/database/migrations/main';
const SLOW = { timeoutMs: 240_000 };
const raw = (statement: string, more: object = {}) => ({ type: 'raw', dialect: 'postgresql', statement, ...more });
/** Waits until there is a row in the table `gate`. */
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
  const { currentSchema } = engine.sql;
  const dialect = engine.dialect.name;

  test(
    `${engine.name}: Ctrl-C between two migrations keeps the first, and the next run continues`,
    onEngine(engine, async (shop, query) => {
      // The hook sends the signal while the first migration is about to run.
      shop.write(
        'stop.mjs',
        `let sent = false;
        export default { name: 'stop', api: 1, apply: (kernel) => kernel.hooks['migration:up'].tapPromise('stop', async () => {
          if (sent || process.env.CONTINUE) return;
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
      const text = errorText(await shop.svc('db', 'migrate'), 130, 'interrupted');
      assert.match(text, /1 of 2 migrations are finished/);
      assert.deepEqual(await tables(query, currentSchema), ['a']);
      shop.write('svc.config.json', config);
      assert.match(assertExit(await shop.svc('db', 'migrate')).stdout, /^1 migration,/);
      assert.deepEqual(await tables(query, currentSchema), ['a', 'b']);
    }),
    SLOW,
  );

  const many = engine.name === 'pglite' ? 4 : 16;
  test(
    `${engine.name}: ${many} concurrent svc db migrate apply everything once and all exit with 0`,
    onEngine(engine, async (shop, query) => {
      write(shop, FIRST, [raw('CREATE TABLE a (i int)', { dialect }), raw('INSERT INTO a VALUES (1)', { dialect })]);
      write(shop, SECOND, [raw('INSERT INTO a VALUES (2)', { dialect, transaction: false })]);
      const ended = await Promise.all(
        Array.from({ length: many }, () => shop.svc('db', 'migrate', '--json', '--lock-timeout', '180')),
      );
      const applied = ended.map((ran) => JSON.parse(assertExit(ran).stdout).databases[0].migrations.length);
      assert.equal(
        applied.reduce((sum, one) => sum + one, 0),
        2,
      );
      assert.deepEqual(await query('SELECT i FROM a ORDER BY i'), [{ i: 1 }, { i: 2 }]);
    }),
    SLOW,
  );

  test(
    `${engine.name}: a pipe closed before migrate writes to it does not stop the run`,
    onEngine(engine, async (shop, query) => {
      write(shop, FIRST, [raw('CREATE TABLE a (i int)', { dialect })]);
      for (const args of [
        ['db', 'migrate'],
        ['db', 'migrate', 'status', '--json'],
      ]) {
        const running = startCli(args, shop.root, engine.name === 'pglite' ? [LIFTOFF_ONLY] : []);
        running.child.stdout?.destroy();
        const { status, stderr } = await running.ended;
        assert.equal(status, 0, stderr);
        assert.doesNotMatch(stderr, /EPIPE|error|bug/);
      }
      assert.deepEqual(await tables(query, currentSchema), ['a']);
      assert.equal(assertExit(await shop.svc('db', 'migrate')).stdout, 'Nothing to do in main (dev).\n');
    }),
    SLOW,
  );

  test(
    `${engine.name}: output to a pipe or a dumb terminal is not coloured`,
    onEngine(engine, async (shop) => {
      shop.schema(users);
      for (const args of [
        ['schema', 'generate'],
        ['migrate', '-v'],
        ['migrate', 'status'],
        ['migrate', 'rollback'],
      ]) {
        const { stdout, stderr } = assertExit(await shop.svc('db', ...args));
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
    'postgresql: after Ctrl-C the current migration finishes and commits; the next run continues',
    onEngine(engine, async (shop, query) => {
      await query('CREATE TABLE gate (i int)');
      write(shop, FIRST, [raw('CREATE TABLE a (i int)'), WAITS]);
      write(shop, SECOND, [raw('CREATE TABLE b (i int)')]);
      const running = startCli(['db', 'migrate'], shop.root);
      await waiting(query);
      running.child.kill('SIGINT');
      await running.untilStderr('stopping after the current step');
      await query('INSERT INTO gate VALUES (1)');
      const text = errorText(await running.ended, 130, 'interrupted');
      assert.match(text, /1 of 2 migrations are finished[\s\S]*svc db migrate/);
      assert.deepEqual(await tables(query), ['a']);
      assert.match(assertExit(await shop.svc('db', 'migrate', '--lock-timeout', '1')).stdout, /^1 migration,/);
      assert.deepEqual(await tables(query), ['a', 'b']);
    }),
    SLOW,
  );

  test(
    'postgresql: after Ctrl-C in a non-transactional migration the current step is journaled; the next run continues after it',
    onEngine(engine, async (shop, query) => {
      await query('CREATE TABLE gate (i int)');
      const outsideTransaction = (statement: string) => raw(statement, { transaction: false });
      write(shop, FIRST, [
        outsideTransaction('CREATE TABLE a (i int)'),
        { ...WAITS, transaction: false },
        outsideTransaction('INSERT INTO a VALUES (3)'),
      ]);
      const running = startCli(['db', 'migrate'], shop.root);
      await waiting(query);
      running.child.kill('SIGTERM');
      await running.untilStderr('stopping after the current step');
      await query('INSERT INTO gate VALUES (1)');
      assert.match(
        errorText(await running.ended, 130, 'interrupted'),
        /2 of 3 steps of "20260101_000000_first" are committed and journaled/,
      );
      assert.deepEqual(await query('SELECT i FROM a'), []);
      assert.match(
        assertExit(await shop.svc('db', 'migrate', 'status'), 4).stdout,
        /\[!\] 20260101_000000_first {2}interrupted/,
      );
      assertExit(await shop.svc('db', 'migrate', '--lock-timeout', '1'));
      assert.deepEqual(await query('SELECT i FROM a'), [{ i: 3 }]);
      assert.match(assertExit(await shop.svc('db', 'migrate', 'status', '--check')).stdout, /^OK/);
    }),
    SLOW,
  );

  test(
    'postgresql: a rollback killed between its steps is finished by the same command, which rolls back nothing more',
    onEngine(engine, async (shop, query) => {
      await query('CREATE TABLE gate (i int)');
      const outsideTransaction = (statement: string, more = {}) => raw(statement, { transaction: false, ...more });
      write(shop, FIRST, [raw('CREATE TABLE a (i int)')], [raw('DROP TABLE a')]);
      write(
        shop,
        SECOND,
        [outsideTransaction('CREATE TABLE b (i int)')],
        [outsideTransaction(WAITS.statement, { check: 'SELECT 1 FROM gate' }), outsideTransaction('DROP TABLE b')],
      );
      assertExit(await shop.svc('db', 'migrate'));
      const running = startCli(['db', 'migrate', 'rollback', '--allow-destructive'], shop.root);
      await waiting(query);
      const whileRunning = assertExit(await shop.svc('db', 'migrate', 'status'));
      assert.match(
        whileRunning.stdout,
        /^PENDING 1[\s\S]*\[>\] 20260102_000000_second {2}rollback running: step 1 of 2/,
      );
      assert.doesNotMatch(whileRunning.stderr, /next/);
      running.child.kill('SIGKILL');
      await running.ended;
      const interrupted = assertExit(await shop.svc('db', 'migrate', 'status'), 4);
      assert.match(interrupted.stdout, /\[!\] 20260102_000000_second {2}rollback interrupted at step 1 of 2/);
      assert.match(interrupted.stderr, /next {2}svc db migrate resolve 20260102_000000_second --retry/);
      await query('INSERT INTO gate VALUES (1)');
      errorText(await shop.svc('db', 'migrate', 'rollback', '-n', '2'), 6, 'migration_half_done');
      const rollbackRun = assertExit(await shop.svc('db', 'migrate', 'rollback'));
      assert.match(rollbackRun.stderr, /in this order:\n {2}20260102_000000_second\n/);
      assert.match(rollbackRun.stdout, /^1 migration rolled back/);
      assert.deepEqual(await tables(query), ['a']);
    }),
    SLOW,
  );

  test(
    'postgresql: a second Ctrl-C exits at once; the migration is rolled back and the lock released',
    onEngine(engine, async (shop, query) => {
      await query('CREATE TABLE gate (i int)');
      write(shop, FIRST, [raw('CREATE TABLE a (i int)'), WAITS]);
      const running = startCli(['db', 'migrate'], shop.root);
      await waiting(query);
      running.child.kill('SIGINT');
      await running.untilStderr('stopping after the current step');
      running.child.kill('SIGINT');
      assert.equal((await running.ended).status, 130);
      // The server detects that its client is gone, although the statement still waits.
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
      assertExit(await shop.svc('db', 'migrate', '--lock-timeout', '1'));
      assert.deepEqual(await tables(query), ['a']);
    }),
    SLOW,
  );
}

for (const engine of engines.filter(({ name }) => name === 'pglite')) {
  test(
    'pglite: while another process uses the folder, a migrator waits and other commands are rejected',
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
          const text = errorText(await shop.svc('db', ...args), 7, 'database_in_use');
          assert.match(text, new RegExp(`process ${process.pid}`));
        }
        errorText(await shop.svc('db', 'migrate', '--lock-timeout', '0.2'), 7, 'database_in_use');
        const left = startCli(['db', 'migrate'], shop.root, [LIFTOFF_ONLY]);
        await left.untilStderr('Waiting for another process');
        left.child.kill('SIGINT');
        errorText(await left.ended, 130, 'interrupted');
        const waits = startCli(['db', 'migrate'], shop.root, [LIFTOFF_ONLY]);
        await waits.untilStderr('Waiting for another process');
        await connection.close();
        assert.match(assertExit(await waits.ended).stdout, /^1 migration,/);
        assert.ok(!existsSync(`${new URL(url).pathname}.lock`));
      });
    },
    SLOW,
  );
}
