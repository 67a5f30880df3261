import * as assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type AdviceProject, adviceProject, advised, applied, commandsOf, inShop } from './kit/advice.ts';
import { freshFolder } from './kit/pglite.ts';
import { assertExit, id, json, tagOf, users, withAge } from './kit/project.ts';
import { test } from './kit/test.ts';

const MIGRATIONS = 'svc/database/migrations/main';

/** Writes a migration by hand. */
function migration(shop: AdviceProject, tag: string, up: readonly object[], down: readonly object[], more = {}): void {
  shop.write(`${MIGRATIONS}/${tag}.json`, { tag, up, down, ...more });
}

const raw = (statement: string, more: object = {}) => ({ type: 'raw', dialect: 'postgresql', statement, ...more });

test('a missing file is written from the history', () =>
  inShop(async (shop) => {
    await applied(shop, users, withAge);
    const [file] = shop.files();
    rmSync(join(shop.root, MIGRATIONS, String(file)));
    const failed = await shop.fails('migration_missing', 'db', 'migrate');
    const status = await shop.svc('db', 'migrate', 'status');
    advised(status, 'Restore its file, or: svc db migrate export <…>');
    await shop.follow(advised(failed, 'Or write it from the history: svc db migrate export <…>'));
    assertExit(await shop.svc('db', 'migrate'));
  }));

test('an edited file is restored, and the change goes into a new one', () =>
  inShop(async (shop) => {
    await applied(shop, users);
    const file = `${MIGRATIONS}/${shop.files()[0]}`;
    const before = shop.read(file);
    shop.write(file, before.replace('"email"', '"mail"'));
    const [status = []] = commandsOf(
      advised(await shop.fails('check_failed', 'doctor'), 'svc db migrate status --db <…>'),
    );
    await shop.fails('migration_edited', ...status);
    const failed = await shop.fails('migration_edited', 'db', 'migrate');
    advised(await shop.svc('db', 'migrate', 'status'), 'Restore <…>, and make the change in a new migration.');
    const advice =
      'Restore the file from version control, and put the change into a new migration: svc db migrate create <name>';
    shop.write(file, before);
    const [created] = await shop.follow(advised(failed, advice), { '<name>': 'rename_email' });
    const edit = advised(created, 'Edit <…>, then: svc db migrate');
    const empty = await shop.fails('migration_invalid', 'db', 'migrate');
    advised(empty, 'Write its up and down, or remove the file.');
    migration(
      shop,
      tagOf(json(created as never).file),
      [{ type: 'renameField', collection: 'users', from: 'email', to: 'mail' }],
      [],
    );
    await shop.follow(edit);
  }));

test('a destructive migration is previewed and permitted by a flag, or in its file', () =>
  inShop(async (shop) => {
    await applied(shop, users);
    shop.schema({ users: { id } });
    assertExit(await shop.svc('db', 'schema', 'generate'));
    const failed = await shop.fails('destructive', 'db', 'migrate');
    await shop.follow(advised(failed, 'Preview first: svc db migrate --dry-run'));
    const file = `${MIGRATIONS}/${shop.files()[1]}`;
    const text = shop.read(file);
    assert.match(
      advised(failed, 'Or permit it in the migration: "allow": ["destructive"]'),
      /"allow": \["destructive"\]/,
    );
    shop.write(file, { ...JSON.parse(text), allow: ['destructive'] });
    assertExit(await shop.svc('db', 'migrate', '--dry-run'));
    shop.write(file, text);
    await shop.follow(advised(failed, 'Then: svc db migrate --allow-destructive'));
  }));

test('a rollback that destroys data is previewed and permitted', () =>
  inShop(async (shop) => {
    await applied(shop, users);
    migration(shop, '29990101_000000_rows', [raw("INSERT INTO users (email) VALUES ('a')")], [raw('SELECT 1')]);
    assertExit(await shop.svc('db', 'migrate'));
    const failed = await shop.fails('destructive', 'db', 'migrate', 'rollback', '-n', '2');
    await shop.follow(advised(failed, 'Preview first: svc db migrate rollback --dry-run'));
    const [ran] = await shop.follow(advised(failed, 'Then: svc db migrate rollback --allow-destructive'));
    assert.equal(json(ran as never).migrations.length, 2);
  }));

test('-n names more migrations than are applied', () =>
  inShop(async (shop) => {
    await applied(shop, users);
    const failed = await shop.fails('migration_not_applied', 'db', 'migrate', 'rollback', '-n', '5');
    await shop.follow(advised(failed, 'svc db migrate status    lists what is applied'));
    const unknown = await shop.fails('migration_unknown', 'db', 'migrate', 'rollback', '--to', 'nothing');
    await shop.follow(advised(unknown, 'svc db migrate status'));
    const both = await shop.fails('usage', 'db', 'migrate', 'rollback', '-n', '1', '--to', 'x');
    advised(both, 'Use one of them.');
  }));

test('a migration of baseline is forgotten, an irreversible one is followed by another', () =>
  inShop(async (shop) => {
    await applied(shop, users);
    migration(shop, '29990101_000000_raw', [raw('SELECT 1')], []);
    assertExit(await shop.svc('db', 'migrate'));
    const failed = await shop.fails('irreversible', 'db', 'migrate', 'rollback');
    const advice = 'Write a new migration that corrects the schema: svc db migrate create <name>';
    await shop.follow(advised(failed, advice), { '<name>': 'correct' });
  }));

test('a migration recorded by baseline is forgotten', () =>
  inShop(async (shop) => {
    await applied(shop, users);
    const tag = tagOf(shop.files()[0]);
    assertExit(await shop.svc('db', 'migrate', 'resolve', tag, '--forget'));
    assertExit(await shop.svc('db', 'migrate', 'baseline'));
    const failed = await shop.fails('irreversible', 'db', 'migrate', 'rollback');
    const advice = 'svc db migrate resolve <…> --forget    removes it from the history and keeps the tables';
    await shop.follow(advised(failed, advice));
    assert.equal(json(await shop.svc('db', 'migrate', 'status')).databases[0].pending, 1);
  }));

test('a file applied late is undone with the newer ones, aligned, renamed, or all are applied in order', () =>
  inShop(async (shop) => {
    await applied(shop, users);
    const first = tagOf(shop.files()[0]);
    const field = (to: string) => ({
      type: 'modifyField',
      collection: 'users',
      field: 'email',
      changes: { length: Number(to) },
    });
    migration(shop, '29990102_000000_long', [field('200')], [field('255')]);
    assertExit(await shop.svc('db', 'migrate'));
    migration(shop, '29990101_000000_short', [field('100')], [field('255')]);
    const failed = await shop.fails('order_conflict', 'db', 'migrate', '--allow-destructive');
    const align = 'svc db migrate create <name>    for a migration that removes <…>, whichever order was applied';
    const [created] = await shop.follow(advised(failed, align), { '<name>': 'align' });
    const aligning = tagOf(json(created as never).file);
    migration(shop, aligning, [field('300')], [field('200')]);
    assertExit(await shop.svc('db', 'migrate', '--allow-destructive', '--dry-run'));
    rmSync(join(shop.root, MIGRATIONS, `${aligning}.json`));
    const rename =
      'Or, if not applied to another database, give <…> a newer tag: rename the file, and change "tag" in it';
    advised(failed, rename);
    const results = await shop.follow(
      advised(failed, 'Or apply all in order: svc db migrate rollback <…>, then svc db migrate'),
    );
    assert.equal(results.length, 2);
    assert.ok(first);
  }));

test('another process has the embedded database open: each command advises a way to wait that it has', async () => {
  const { url, drop } = await freshFolder();
  const shop = adviceProject({ main: url });
  await applied(shop, users);
  const owner = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
  try {
    writeFileSync(`${new URL(url).pathname}.lock`, JSON.stringify({ pid: owner.pid, started: null }));
    const migrate = await shop.fails('database_in_use', 'db', 'migrate', '--lock-timeout', '0.2');
    const dryRun = await shop.fails('database_in_use', 'db', 'migrate', '--dry-run', '--lock-timeout', '0.2');
    const status = await shop.fails('database_in_use', 'db', 'migrate', 'status');
    assert.doesNotMatch(json(migrate).nextActions.join(), /busyTimeoutMs/, 'the flag replaces the option');
    assert.doesNotMatch(json(status).nextActions.join(), /--lock-timeout/, 'it has no such flag');
    const options = advised(
      status,
      'To wait for it: options: { busyTimeoutMs: 60_000 } next to the URL of the database.',
    );
    assert.match(options, /busyTimeoutMs: 60_000/);
    const main = { dialect: 'postgresql', url, options: { busyTimeoutMs: 60_000 } };
    shop.write('svc.config.json', { product: 'shop', env: 'dev', databases: { main } });
    const waiting = shop.svc('db', 'migrate', 'status');
    owner.kill();
    assertExit(await waiting);
    for (const failed of [migrate, dryRun]) {
      const flag = advised(failed, 'To wait longer: --lock-timeout 300').split(': ')[1] ?? '';
      assertExit(await shop.svc('db', 'migrate', ...flag.split(' ')));
    }
  } finally {
    owner.kill();
    await drop();
  }
});
