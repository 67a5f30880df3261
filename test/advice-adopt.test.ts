import * as assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Svc } from '../config/sdk/index.ts';
import { type AdviceProject, adviceProject, advised, applied, inShop, testOnServer, withServer } from './kit/advice.ts';
import { assertExit, json, tagOf, users, withAge } from './kit/project.ts';
import { test } from './kit/test.ts';

const MIGRATIONS = 'svc/database/migrations/main';
const LATER = '29990101_000000_later';

const raw = (statement: string, more: object = {}) => ({ type: 'raw', dialect: 'postgresql', statement, ...more });

/** Writes a migration by hand, which cannot be rolled back. */
function migration(shop: AdviceProject, tag: string, up: readonly object[]): void {
  shop.write(`${MIGRATIONS}/${tag}.json`, { tag, up, down: [] });
}

/** Creates a table through the API, which records it in the history. */
async function createThroughApi(shop: AdviceProject, table: string): Promise<void> {
  const before = process.cwd();
  process.chdir(shop.root);
  const client = new Svc();
  try {
    const db = await client.database.connect({ database: 'main' });
    await db.schema.create(table, { id: { type: 'integer', primaryKey: true } });
  } finally {
    await client.close();
    process.chdir(before);
  }
}

testOnServer('the existing table of a pending file is adopted, by pull or by baseline', () =>
  withServer(async (shop, query) => {
    await query('CREATE TABLE users (id serial PRIMARY KEY, email varchar(255) NOT NULL UNIQUE)');
    shop.schema(users);
    assertExit(await shop.svc('db', 'schema', 'generate'));
    const failed = await shop.fails('collection_exists', 'db', 'migrate');
    const adopt = advised(
      failed,
      'Adopt the existing table: delete the pending migration file that creates it, if any, then: svc db schema pull, and: svc db migrate baseline',
    );
    rmSync(join(shop.root, MIGRATIONS, String(shop.files()[0])));
    const results = await shop.follow(adopt);
    assert.equal(results.length, 2);
    assertExit(await shop.svc('db', 'migrate'));
    await query('DROP TABLE _svc_migrations, _svc_audit, _svc_meta');
    const again = await shop.fails('collection_exists', 'db', 'migrate');
    await shop.follow(advised(again, 'If this migration was written by pull: svc db migrate baseline'));
    assertExit(await shop.svc('db', 'migrate'));
  }),
);

testOnServer('baseline records the migrations that the database has, before one that it does not have', () =>
  withServer(async (shop, query) => {
    shop.schema(users);
    assertExit(await shop.svc('db', 'schema', 'generate'));
    assertExit(await shop.svc('db', 'migrate'));
    await query('DROP TABLE _svc_migrations, _svc_audit, _svc_meta');
    shop.schema(withAge);
    assertExit(await shop.svc('db', 'schema', 'generate'));
    const exists = await shop.fails('collection_exists', 'db', 'migrate');
    advised(exists, 'If this migration was written by pull: svc db migrate baseline');
    const failed = await shop.fails('drift', 'db', 'migrate', 'baseline');
    await shop.follow(advised(failed, 'svc db migrate baseline --to <…>    records those that the database has'));
    assertExit(await shop.svc('db', 'migrate'));
    assertExit(await shop.svc('db', 'schema', 'check'));
  }),
);

testOnServer('an applied migration that sorts after every generated tag gets another tag', () =>
  withServer(async (shop) => {
    shop.schema(users);
    assertExit(await shop.svc('db', 'schema', 'generate'));
    const file = join(shop.root, MIGRATIONS, String(shop.files()[0]));
    const written = JSON.parse(readFileSync(file, 'utf8'));
    const write = (tag: string) =>
      writeFileSync(join(shop.root, MIGRATIONS, `${tag}.json`), JSON.stringify({ ...written, tag }));
    rmSync(file);
    write('zzz');
    assertExit(await shop.svc('db', 'migrate'));
    shop.schema(withAge);
    const failed = await shop.fails('tag_invalid', 'db', 'schema', 'generate');
    advised(failed, 'Rename that file to <YYYYMMDD>_<HHMMSS>_<name>, and change the tag in it.');
    rmSync(join(shop.root, MIGRATIONS, 'zzz.json'));
    write('20260101_000000_users');
    await shop.follow(
      advised(
        failed,
        'Where it is applied, then also: svc db migrate resolve <…> --forget, and: svc db migrate baseline',
      ),
    );
    assertExit(await shop.svc('db', 'schema', 'generate'));
    assertExit(await shop.svc('db', 'migrate'));
    assertExit(await shop.svc('db', 'schema', 'check'));
  }),
);

testOnServer('baseline of another schema: pull, or change the database', () =>
  withServer(async (shop, query) => {
    await query('CREATE TABLE users (id serial PRIMARY KEY, email varchar(100) NOT NULL UNIQUE)');
    shop.schema(users);
    assertExit(await shop.svc('db', 'schema', 'generate'));
    const failed = await shop.fails('drift', 'db', 'migrate', 'baseline');
    const pull = advised(
      failed,
      '<…>svc db schema pull    writes the schema file and a migration that match the database',
    );
    const change = advised(failed, 'Or change the database to match the migrations, then: svc db migrate baseline');
    const file = join(shop.root, MIGRATIONS, String(shop.files()[0]));
    assert.match(pull, /^Delete svc\/database\/migrations\/main\/\w+\.json, then: /);
    rmSync(file);
    await shop.follow(pull);
    assertExit(await shop.svc('db', 'migrate', 'baseline'));
    await query('DROP TABLE _svc_migrations, _svc_audit, _svc_meta');
    await query('ALTER TABLE users ALTER email TYPE varchar(50)');
    await shop.fails('drift', 'db', 'migrate', 'baseline');
    await query('ALTER TABLE users ALTER email TYPE varchar(100)');
    await shop.follow(change);
  }),
);

testOnServer('pull with a pending file: migrate, or baseline', () =>
  withServer(async (shop, query) => {
    shop.schema(users);
    assertExit(await shop.svc('db', 'schema', 'generate'));
    const failed = await shop.fails('pending', 'db', 'schema', 'pull');
    await shop.follow(advised(failed, 'svc db migrate status'));
    const exist = advised(
      failed,
      'If the tables exist already: svc db migrate baseline, or delete the pending files, then svc db schema pull',
    );
    await shop.follow(advised(failed, 'svc db migrate'));
    assertExit(await shop.svc('db', 'schema', 'pull'));
    await query('DROP TABLE _svc_migrations, _svc_audit, _svc_meta');
    await shop.fails('pending', 'db', 'schema', 'pull');
    await shop.follow(exist);
  }),
);

test('pull after API migrations: export, then pull', () =>
  inShop(async (shop) => {
    await createThroughApi(shop, 'notes');
    const failed = await shop.fails('origin_conflict', 'db', 'schema', 'pull');
    await shop.follow(advised(failed, 'svc db migrate export'));
    await shop.follow(advised(failed, 'svc db schema pull'));
    assertExit(await shop.svc('db', 'migrate'));
  }));

test('a file that creates the table of the API is replaced by export', () =>
  inShop(async (shop) => {
    await createThroughApi(shop, 'notes');
    const create = {
      type: 'createCollection',
      name: 'notes',
      fields: [{ name: 'id', type: 'Integer', primaryKey: true }],
    };
    shop.write(`${MIGRATIONS}/${LATER}.json`, { tag: LATER, up: [create], down: [] });
    const failed = await shop.fails('origin_conflict', 'db', 'migrate');
    const advice = "svc db migrate export    writes the API's migrations as files; then remove the duplicates from <…>";
    await shop.follow(advised(failed, advice));
    rmSync(join(shop.root, MIGRATIONS, `${LATER}.json`));
    assertExit(await shop.svc('db', 'migrate'));
  }));

testOnServer('a table that no file makes: export, pull, or "makes"', () =>
  withServer(async (shop, query) => {
    await createThroughApi(shop, 'notes');
    const change = (collection: string) => ({ type: 'addField', collection, field: { name: 'n', type: 'Integer' } });
    shop.write(`${MIGRATIONS}/${LATER}.json`, { tag: LATER, up: [change('notes')], down: [] });
    shop.schema(users);
    const failed = await shop.fails('collection_unknown', 'db', 'schema', 'generate');
    await shop.follow(advised(failed, 'For a table created through the API: svc db migrate export'));
    shop.schema({ ...users, notes: { id: { type: 'Integer', primaryKey: true }, n: 'Integer' } });
    assertExit(await shop.svc('db', 'schema', 'generate'));
    assertExit(await shop.svc('db', 'migrate'));
    await query('CREATE TABLE legacy (id int PRIMARY KEY)');
    const tag = '29990102_000000_legacy';
    shop.write(`${MIGRATIONS}/${tag}.json`, { tag, up: [change('legacy')], down: [] });
    assertExit(await shop.svc('db', 'migrate'));
    const unknown = await shop.fails('collection_unknown', 'db', 'schema', 'generate');
    await shop.follow(advised(unknown, 'For a table that svc did not create: svc db schema pull'));
    assertExit(await shop.svc('db', 'schema', 'generate'));
    assertExit(await shop.svc('db', 'migrate', 'baseline'));
    assertExit(await shop.svc('db', 'schema', 'check', '--strict'));
  }),
);

test('export of migrations applied out of order: a newer tag, forget, baseline', () =>
  inShop(async (shop) => {
    await createThroughApi(shop, 'notes');
    const tag = '20200101_000000_early';
    const migration = {
      tag,
      up: [{ type: 'addField', collection: 'notes', field: { name: 'n', type: 'Integer' } }],
      down: [],
    };
    shop.write(`${MIGRATIONS}/${tag}.json`, migration);
    assertExit(await shop.svc('db', 'migrate'));
    const exported = assertExit(await shop.svc('db', 'migrate', 'export'));
    advised(exported, 'Give the migration that was applied later a newer tag: rename the file, and change "tag" in it');
    rmSync(join(shop.root, MIGRATIONS, `${tag}.json`));
    shop.write(`${MIGRATIONS}/${LATER}.json`, { ...migration, tag: LATER });
    await shop.follow(
      advised(exported, 'Then remove the old tag from the history: svc db migrate resolve <tag> --forget'),
      { '<tag>': tag },
    );
    await shop.follow(advised(exported, 'svc db migrate baseline    records it under the new tag'));
    assertExit(await shop.svc('db', 'migrate'));
    assertExit(await shop.svc('db', 'schema', 'check'));
  }));

testOnServer('a history that lacks a migration is recorded again', () =>
  withServer(async (shop, query) => {
    await applied(shop, users, withAge);
    migration(shop, LATER, [{ type: 'renameField', collection: 'users', from: 'age', to: 'years' }]);
    assertExit(await shop.svc('db', 'migrate'));
    await query(`DELETE FROM _svc_migrations WHERE tag = '${tagOf(shop.files()[1])}'`);
    const failed = await shop.fails('field_unknown', 'db', 'schema', 'check');
    const forget = 'svc db migrate resolve <…> --forget    then repeat for each migration that the next error names';
    await shop.follow(advised(failed, forget));
    await shop.follow(advised(failed, 'svc db migrate baseline    records them again, with the missing one'));
    assertExit(await shop.svc('db', 'schema', 'check'));
  }),
);

test('what another migration depends on is resolved after it', () =>
  inShop(async (shop) => {
    await applied(shop, users, withAge);
    migration(shop, LATER, [{ type: 'renameField', collection: 'users', from: 'age', to: 'years' }]);
    assertExit(await shop.svc('db', 'migrate'));
    const tag = tagOf(shop.files()[1]);
    const failed = await shop.fails('not_reversible_now', 'db', 'migrate', 'resolve', tag, '--forget');
    await shop.follow(advised(failed, 'Resolve that one first: svc db migrate resolve <…> --<…>'));
    assertExit(await shop.svc('db', 'migrate', 'resolve', tag, '--forget'));
  }));

test('a migration marked as undone by hand that was not: rollback', () =>
  inShop(async (shop) => {
    await applied(shop, users);
    const tag = tagOf(shop.files()[0]);
    const failed = await shop.fails('drift', 'db', 'migrate', 'resolve', tag, '--rolled-back');
    advised(failed, 'Correct the named differences by hand, then decide again.');
    await shop.follow(advised(failed, 'svc db migrate rollback    rolls back the last applied migration'));
    assert.equal(json(await shop.svc('db', 'migrate', 'status')).databases[0].pending, 1);
  }));

test('a rollback that does not fit the schema', () =>
  inShop(async (shop) => {
    await applied(shop, users);
    shop.write(`${MIGRATIONS}/${LATER}.json`, {
      tag: LATER,
      up: [raw('SELECT 1')],
      down: [{ type: 'dropField', collection: 'users', field: 'nothing' }],
    });
    assertExit(await shop.svc('db', 'migrate'));
    const failed = await shop.fails('not_reversible_now', 'db', 'migrate', 'rollback');
    const advice = 'Write a new migration that corrects the schema: svc db migrate create <name>';
    await shop.follow(advised(failed, advice), { '<name>': 'correct' });
    await shop.follow(advised(failed, 'Undo it by hand, then: svc db migrate resolve <…> --rolled-back'));
    await shop.follow('svc db migrate rollback');
  }));

testOnServer('a database of another product is taken over', () =>
  withServer(async (shop, _query, url) => {
    await applied(shop, users);
    const other = adviceProject({ main: url }, { product: 'other' });
    other.write(`${MIGRATIONS}/${shop.files()[0]}`, shop.read(`${MIGRATIONS}/${shop.files()[0]}`));
    const failed = await other.fails('database_foreign', 'db', 'migrate');
    advised(failed, 'Correct the URL in svc.config.');
    const doctor = await other.fails('check_failed', 'doctor', '--env', 'dev');
    const adopt = advised(doctor, 'svc db migrate --adopt --db <…>    if this product now owns the database');
    assert.match(adopt, /--env dev --adopt --db main|--adopt --db main/);
    await other.follow(advised(failed, 'Or take over the database: svc db migrate --adopt'));
    await shop.fails('database_foreign', 'db', 'migrate', 'status');
    await other.follow(adopt);
    assertExit(await other.svc('db', 'migrate', 'status'));
  }),
);
