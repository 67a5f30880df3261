import * as assert from 'node:assert/strict';
import { type AdviceProject, advised, applied, inShop, type Query, testOnServer, withServer } from './kit/advice.ts';
import type { CommandResult } from './kit/cli.ts';
import { assertExit, json, tagOf, users } from './kit/project.ts';
import { test } from './kit/test.ts';
import { waitUntil } from './suites/wait-until.ts';

const RETRY = 'svc db migrate resolve <…> --retry        <…>';
const APPLIED = 'svc db migrate resolve <…> --applied      <…>';
const ROLLED_BACK = 'svc db migrate resolve <…> --rolled-back  <…>';

const TAG = '29990101_000000_more';
const FILE = `svc/database/migrations/main/${TAG}.json`;
const raw = (statement: string, more: object = {}) => ({ type: 'raw', dialect: 'postgresql', statement, ...more });
const RAN = raw('CREATE INDEX CONCURRENTLY first ON users (email)', { transaction: false, check: 'SELECT false' });
const WRONG = raw('CREATE INDEX CONCURRENTLY second ON users (mail)', { transaction: false, check: 'SELECT false' });
const RIGHT = raw('CREATE INDEX CONCURRENTLY second ON users (email)', { transaction: false, check: 'SELECT false' });

/** Runs as long as the table "shut" has a row. */
const WAITS = 'DO $$ BEGIN WHILE EXISTS (SELECT FROM shut) LOOP PERFORM pg_sleep(0.02); END LOOP; END $$';
const SLOW = raw(WAITS, { transaction: false, check: 'SELECT false' });
const UNDO = raw('DROP INDEX CONCURRENTLY first', { transaction: false, check: 'SELECT false' });
const FIRST_ONLY = raw('SELECT 1', { transaction: false, check: 'SELECT false' });

function write(shop: AdviceProject, up: readonly object[], down: readonly object[] = []): void {
  shop.write(FILE, { tag: TAG, up, down });
}

/** A migration that failed in its second step. */
async function stopped(shop: AdviceProject): Promise<CommandResult> {
  await applied(shop, users);
  write(shop, [RAN, WRONG]);
  const failed = await shop.fails('migration_half_done', 'db', 'migrate');
  advised(await shop.svc('db', 'migrate', 'status'), RETRY);
  return failed;
}

test('a migration that stopped half-way is corrected in its file, and retried', () =>
  inShop(async (shop) => {
    const failed = await stopped(shop);
    write(shop, [RAN, RIGHT]);
    await shop.follow(advised(failed, RETRY));
    assertExit(await shop.svc('db', 'migrate'));
  }));

test('the rest of a migration that stopped half-way is done by hand', () =>
  inShop(async (shop) => {
    await shop.follow(advised(await stopped(shop), APPLIED));
    assertExit(await shop.svc('db', 'migrate'));
  }));

testOnServer('the steps of a migration that stopped half-way are undone by hand', () =>
  withServer(async (shop, query) => {
    const failed = await stopped(shop);
    await query('DROP INDEX first');
    await shop.follow(advised(failed, ROLLED_BACK));
    write(shop, [RAN, RIGHT]);
    assertExit(await shop.svc('db', 'migrate'));
  }),
);

testOnServer('an edited step that ran is changed back, or undone by hand', () =>
  withServer(async (shop, query) => {
    await stopped(shop);
    write(shop, [{ ...RAN, statement: 'SELECT 1' }, RIGHT]);
    const failed = await shop.fails('migration_edited', 'db', 'migrate', 'resolve', TAG, '--retry');
    advised(failed, 'Restore the file from version control, and decide again.');
    const undone = advised(
      failed,
      'Or undo its steps by hand: svc db migrate resolve <…> --rolled-back    the edited file can then be applied',
    );
    const retried = advised(failed, 'Or change only steps that did not run, then: svc db migrate resolve <…> --retry');
    await query('DROP INDEX first');
    await shop.follow(undone);
    write(shop, [RAN, WRONG]);
    await shop.fails('migration_half_done', 'db', 'migrate');
    write(shop, [RAN, RIGHT]);
    await shop.follow(retried);
  }),
);

testOnServer('a decision that the catalog contradicts follows once it is true', () =>
  withServer(async (shop, query) => {
    await applied(shop, users);
    write(shop, [RAN, WRONG, { type: 'addField', collection: 'users', field: { name: 'age', type: 'integer' } }]);
    await shop.fails('migration_half_done', 'db', 'migrate');
    const failed = await shop.fails('drift', 'db', 'migrate', 'resolve', TAG, '--applied');
    advised(failed, RETRY);
    advised(failed, 'Correct the named differences by hand, then decide again.');
    await query('ALTER TABLE users ADD age integer');
    assertExit(await shop.svc('db', 'migrate', 'resolve', TAG, '--applied'));
    assertExit(await shop.svc('db', 'migrate', 'status', '--check'));
  }),
);

test('a correction that destroys data becomes a migration of its own', () =>
  inShop(async (shop) => {
    await stopped(shop);
    write(shop, [RAN, { type: 'dropCollection', collection: 'users' }]);
    const failed = await shop.fails('destructive', 'db', 'migrate', 'resolve', TAG, '--retry');
    await shop.follow(advised(failed, 'Put that into a migration of its own: svc db migrate create <name>'), {
      '<name>': 'drop_users',
    });
    write(shop, [RAN, RIGHT]);
    assertExit(await shop.svc('db', 'migrate', 'resolve', TAG, '--retry'));
  }));

testOnServer('a rollback that stopped half-way is retried, and the rest of the rollback follows', () =>
  withServer(async (shop, query) => {
    await applied(shop, users);
    write(shop, [RAN], [UNDO, WRONG]);
    assertExit(await shop.svc('db', 'migrate'));
    const RAW = '29990102_000000_last';
    const last = { tag: RAW, up: [raw('SELECT 1')], down: [raw('SELECT 1')] };
    shop.write(`svc/database/migrations/main/${RAW}.json`, last);
    assertExit(await shop.svc('db', 'migrate'));
    const to = tagOf(shop.files()[0]);
    const failed = await shop.fails('migration_half_done', 'db', 'migrate', 'rollback', '--to', to);
    await query('ALTER TABLE users ADD mail text');
    const rest = advised(failed, 'Then: <…>    for the rest of the rollback');
    await shop.follow(advised(failed, RETRY));
    await shop.follow(rest);
  }),
);

/** Interrupts a command while its slow step runs, as Ctrl-C does. */
async function interrupted(shop: AdviceProject, query: Query, ...args: readonly string[]): Promise<CommandResult> {
  await query('CREATE TABLE IF NOT EXISTS shut (); INSERT INTO shut DEFAULT VALUES');
  const running = shop.fails('interrupted', ...args);
  const slow = "query LIKE 'DO %shut%' AND state = 'active' AND datname = current_database()";
  await waitUntil(
    async () => (await query(`SELECT FROM pg_stat_activity WHERE ${slow}`)).length > 0,
    'the slow step never started',
  );
  process.emit('SIGINT');
  await query('DELETE FROM shut');
  return running;
}

testOnServer('an interrupted run continues', () =>
  withServer(async (shop, query) => {
    await applied(shop, users);
    write(shop, [SLOW, RAN]);
    const failed = await interrupted(shop, query, 'db', 'migrate');
    await shop.follow(advised(failed, 'svc db migrate    continues with the next step'));
  }),
);

testOnServer('a rollback waits for the decision about an interrupted migration', () =>
  withServer(async (shop, query) => {
    await applied(shop, users);
    write(shop, [SLOW, RAN], [UNDO]);
    await interrupted(shop, query, 'db', 'migrate');
    const failed = await shop.fails('migration_half_done', 'db', 'migrate', 'rollback');
    const undone = advised(failed, 'svc db migrate resolve <…> --rolled-back    the steps were undone by hand');
    await shop.follow(advised(failed, 'svc db migrate    waits for it, or runs the rest'));
    await shop.follow('svc db migrate rollback');
    await interrupted(shop, query, 'db', 'migrate');
    await shop.follow(undone);
    await shop.follow('svc db migrate rollback');
  }),
);

testOnServer('an interrupted rollback is finished alone, or with everything after a migration', () =>
  withServer(async (shop, query) => {
    await applied(shop, users);
    write(shop, [FIRST_ONLY], [SLOW, FIRST_ONLY]);
    assertExit(await shop.svc('db', 'migrate'));
    const stopped = await interrupted(shop, query, 'db', 'migrate', 'rollback');
    advised(stopped, 'svc db migrate resolve <…> --retry    continues with the next step of the rollback');
    advised(await shop.svc('db', 'migrate', 'status'), 'svc db migrate resolve <…> --retry    completes its rollback');
    const failed = await shop.fails('migration_half_done', 'db', 'migrate', 'rollback', '-n', '2');
    const to = advised(
      failed,
      'svc db migrate rollback --to <tag>    finishes it, and rolls back everything after that tag',
    );
    await shop.follow(advised(failed, 'svc db migrate rollback -n 1    finishes it, and rolls back nothing else'));
    assert.equal(json(await shop.svc('db', 'migrate', 'status')).databases[0].completed, 1);
    await shop.follow(to, { '<tag>': tagOf(shop.files()[0]) });
  }),
);

testOnServer('the rollback of an interrupted rollback is completed by resolve', () =>
  withServer(async (shop, query) => {
    await applied(shop, users);
    write(shop, [FIRST_ONLY], [SLOW, FIRST_ONLY]);
    assertExit(await shop.svc('db', 'migrate'));
    const stopped = await interrupted(shop, query, 'db', 'migrate', 'rollback');
    await shop.follow(
      advised(stopped, 'svc db migrate resolve <…> --retry    continues with the next step of the rollback'),
    );
    assert.equal(json(await shop.svc('db', 'migrate', 'status')).databases[0].completed, 1);
  }),
);
