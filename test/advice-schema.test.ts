import * as assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { advised, applied, commandsOf, inShop, testOnServer, withServer } from './kit/advice.ts';
import { assertExit, id, json, users } from './kit/project.ts';
import { test } from './kit/test.ts';

const MIGRATIONS = 'svc/database/migrations/main';
const GENERATE = ['db', 'schema', 'generate'] as const;
const DRY = [...GENERATE, '--dry-run'] as const;
const raw = (statement: string, more: object = {}) => ({ type: 'raw', dialect: 'postgresql', statement, ...more });

test('without a schema file: write one, or pull', () =>
  inShop(async (shop) => {
    const failed = await shop.fails('schema_missing', ...DRY);
    const written = advised(
      failed,
      'For a new table, write it: [{ "db": "<tag>", "tables": { "notes": { "id": { "type": "uuid", "primaryKey": true } } } }]',
    ).replace('<tag>', 'main');
    shop.write('svc/database/schema.json', written.slice(written.indexOf('[')));
    assert.equal(json(await shop.svc(...DRY)).migrations.length, 1);
    await shop.follow(advised(failed, 'For a database that has tables: svc db schema pull'));
    assertExit(await shop.svc(...DRY));
  }));

test('a schema file in another form', () =>
  inShop(async (shop) => {
    const file = 'svc/database/schema.json';
    shop.write(file, '{}');
    const failed = await shop.fails('schema_invalid', ...DRY);
    const [, entry = ''] =
      /^An entry is (.*)\.$/.exec(
        advised(failed, 'An entry is { "db": "<tag>", "tables": { "<table>": { "<field>": { "type": "…" } } } }.'),
      ) ?? [];
    const filled = JSON.parse(entry.replace('<tag>', 'main').replace('…', 'Integer'));
    shop.write(file, [filled]);
    assertExit(await shop.svc(...DRY));
    shop.write(file, '[]');
    const none = await shop.fails('schema_invalid', ...DRY, '--db', 'main');
    const [, added = ''] = /^Add (.*) to it/.exec(advised(none, 'Add { "db": "<…>", "tables": { … } } to it.')) ?? [];
    shop.write(file, `[${added.replace('…', '')}]`);
    assertExit(await shop.svc(...DRY, '--db', 'main'));
    shop.write(file, '[{');
    advised(await shop.fails('schema_invalid', ...DRY), 'Fix the file at this location.');
    shop.write(file, [{ db: 'other', tables: {} }]);
    advised(await shop.fails('database_unknown', ...DRY), 'Add databases.<…> to the configuration.');
    shop.write(file, [
      { db: 'main', tables: {} },
      { db: 'main', tables: {} },
    ]);
    advised(await shop.fails('schema_invalid', ...DRY), 'Put the tables of a database into one entry.');
  }));

test('a name that may have been renamed or dropped is decided by a flag', () =>
  inShop(async (shop) => {
    await applied(shop, { users: { id, email: 'String' } });
    shop.schema({ users: { id, e_mail: 'String' } });
    const failed = await shop.fails('rename_undecided', ...DRY);
    for (const flags of advised(failed, '<…> or <…>').split(' or '))
      assertExit(await shop.svc(...DRY, ...flags.replace(/ \(.*/, '').split(' ')));
    const misspelled = await shop.fails('field_unknown', ...DRY, '--drop', 'users.emial');
    await shop.follow(advised(misspelled, 'svc db schema pull'));
    shop.schema({ users: { id, e_mail: 'String' } });
    const [, flags = ''] = /mean (.*)\?/.exec(advised(misspelled, 'Did you mean --drop <…>?')) ?? [];
    assertExit(await shop.svc(...DRY, ...flags.split(' ')));
    const wrong = await shop.fails('usage', ...DRY, '--rename', 'users.email');
    const field = advised(wrong, '--rename <table>.<old field>:<new field>');
    const filled = field.replace('<table>', 'users').replace('<old field>', 'email').replace('<new field>', 'e_mail');
    assertExit(await shop.svc(...DRY, ...filled.split(' ')));
    shop.schema({ people: { id, email: 'String' } });
    const table = advised(wrong, '--rename <old table>:<new table>');
    assertExit(
      await shop.svc(...DRY, ...table.replace('<old table>', 'users').replace('<new table>', 'people').split(' ')),
    );
    shop.schema({ users: { id, email: 'String' } });
    const kept = await shop.fails('usage', ...DRY, '--drop', 'users');
    advised(kept, 'Remove it from the schema file, or remove the flag.');
  }));

testOnServer('a difference is adopted, undone, or ignored', () =>
  withServer(async (shop, query) => {
    await applied(shop, users);
    await query('ALTER TABLE users ADD nick varchar(20)');
    const [check = []] = commandsOf(advised(assertExit(await shop.svc('doctor')), 'svc db schema check --db <…>'));
    await shop.fails('drift', ...check);
    const failed = await shop.fails('drift', 'db', 'schema', 'check');
    await shop.follow(
      advised(failed, 'Revert the change manually, or adopt it: svc db schema pull, then svc db migrate baseline'),
    );
    await shop.follow('svc db schema check');
    await query("CREATE SCHEMA lib; CREATE FUNCTION lib.own(text) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT $1'");
    await query('CREATE INDEX part ON users (lib.own(nick))');
    assertExit(await shop.svc('db', 'schema', 'check', '--strict'));
    await query('CREATE TABLE odd (code varchar(20) PRIMARY KEY DEFAULT gen_random_uuid())');
    const strict = await shop.fails('drift', 'db', 'schema', 'check', '--strict');
    await shop.follow(advised(strict, 'svc db schema check --strict <…>    ignores what svc cannot create'));
    const tag = '29990101_000000_index';
    const createIndex = { type: 'createIndex', collection: 'users', index: 'by_nick', columns: [{ name: 'nick' }] };
    shop.write(`${MIGRATIONS}/${tag}.json`, { tag, up: [createIndex], down: [] });
    assertExit(await shop.svc('db', 'migrate'));
    await query('DROP INDEX by_nick');
    await query('CREATE INDEX by_nick ON users (lib.own(nick))');
    const changed = await shop.fails('drift', 'db', 'schema', 'check');
    assert.match(advised(changed, 'Revert <…> manually: svc cannot create the present form'), /users\.by_nick/);
    await query('DROP INDEX by_nick');
    await query('CREATE INDEX by_nick ON users (nick)');
    assertExit(await shop.svc('db', 'schema', 'check'));
  }),
);

testOnServer('a raw statement that made a table says so', () =>
  withServer(async (shop) => {
    await applied(shop, users);
    const tag = '29990101_000000_raw';
    shop.write(`${MIGRATIONS}/${tag}.json`, {
      tag,
      up: [raw('CREATE TABLE logs (id int PRIMARY KEY)')],
      down: [raw('DROP TABLE logs')],
    });
    assertExit(await shop.svc('db', 'migrate'));
    const makes = [
      { type: 'createCollection', name: 'logs', fields: [{ name: 'id', type: 'Integer', primaryKey: true }] },
    ];
    const advice = 'svc db migrate create <name>    for a raw statement whose "makes" says what an earlier one made';
    const failed = await shop.fails('drift', 'db', 'schema', 'check', '--strict');
    assert.equal(advised(assertExit(await shop.svc('db', 'schema', 'pull')), advice), advised(failed, advice));
    const later = '29990103_000000_field';
    const addField = { type: 'addField', collection: 'logs', field: { name: 'n', type: 'Integer' } };
    shop.write(`${MIGRATIONS}/${later}.json`, { tag: later, up: [addField], down: [] });
    const unknown = await shop.fails('collection_unknown', ...DRY);
    advised(
      unknown,
      'For a table that a raw statement of "<…>" makes: say so with "makes", there or in a new migration before this one.',
    );
    const [created] = await shop.follow(advised(failed, advice), { '<name>': 'logs' });
    const made = '29990102_000000_logs';
    rmSync(join(shop.root, json(created as never).file));
    shop.write(`${MIGRATIONS}/${made}.json`, { tag: made, up: [raw('SELECT 1', { makes })], down: [raw('SELECT 1')] });
    shop.schema({ ...users, logs: { id: { type: 'Integer', primaryKey: true }, n: 'Integer' } });
    assert.deepEqual(json(await shop.svc(...DRY)).migrations, []);
    assertExit(await shop.svc('db', 'migrate'));
    assertExit(await shop.svc('db', 'schema', 'check', '--strict'));
  }),
);
