import * as assert from 'node:assert/strict';
import { MigrationEngine } from '../core/migration/migration-engine.ts';
import type { MigrationOperation } from '../core/schema/operation.ts';
import {
  annApproves,
  approveAndRun,
  type Configuration,
  dropUsers,
  FLAGS,
  migration,
  NEXT,
  OTHER,
  raw,
  request,
  tables,
  testWays,
  token,
  type Way,
  writeMigration,
} from './kit/destroying-agent.ts';
import { json } from './kit/project.ts';

/*
 * Ways in which an agent with a shell, in the folder of a project whose production asks people, tries to destroy what a
 * table has.
 */

const tidy: MigrationOperation = {
  type: 'createObject',
  kind: 'function',
  name: 'tidy',
  definition: 'CREATE FUNCTION tidy() RETURNS integer LANGUAGE plpgsql AS $$BEGIN DELETE FROM users; RETURN 1; END$$',
};

const withOwnPeople = (config: Configuration, role: string) => ({
  ...config,
  approvals: { store: { database: 'main' }, roles: { dba: [role] } },
  environments: { prd: { approval: { role: 'dba' } } },
});

const withoutApproval: Readonly<Record<string, Way>> = {
  'a drop that the flags and the file allow': (shell) => migration(shell, dropUsers),
  'a schema without the table': async (shell) => {
    shell.write('svc/database/schema.json', [{ db: 'main', tables: {} }]);
    await shell.svc('db', 'schema', 'generate', '--name', 'without');
    await shell.svc('db', 'migrate', ...FLAGS);
  },
  'a raw drop that says it destroys nothing': (shell) => migration(shell, raw('DROP TABLE users')),
  'a raw block that puts the word together': (shell) =>
    migration(shell, raw(`DO $$BEGIN EXECUTE 'dr'||'op table users'; END$$`)),
  'a raw deletion of the rows': (shell) => migration(shell, raw('DELETE FROM users')),
  'a function that deletes, and its call': (shell) => migration(shell, tidy, raw('SELECT tidy()')),
  'a materialized view whose query deletes': (shell) =>
    migration(shell, tidy, {
      type: 'createObject',
      kind: 'materialized_view',
      name: 'tidied',
      definition: 'CREATE MATERIALIZED VIEW tidied AS SELECT tidy() AS one',
    }),
  'the table renamed, and dropped by its new name': (shell) =>
    migration(
      shell,
      { type: 'renameCollection', collection: 'users', to: 'people' },
      { type: 'dropCollection', collection: 'people' },
    ),
  'the field dropped, not the table': (shell) =>
    migration(shell, { type: 'dropField', collection: 'users', field: 'age' }),
  'a rollback of the last migration': (shell) => shell.svc('db', 'migrate', 'rollback', ...FLAGS),
  'a rollback of two': async (shell) => {
    shell.write('svc/database/schema.json', [{ db: 'main', tables: { ...tables, more: tables.empty } }]);
    await shell.svc('db', 'schema', 'generate', '--name', 'more');
    await shell.svc('db', 'migrate', ...FLAGS);
    await shell.svc('db', 'migrate', 'rollback', '-n', '2', ...FLAGS);
  },
  'db.schema in a script': (shell) =>
    shell.sdk(async (svc) => (await svc.database.connect({ database: 'main' })).schema.drop('users')),
  'the engine in a script': (shell) =>
    shell.sdk(async (svc) => {
      const db = await svc.database.connect({ database: 'main' });
      await new MigrationEngine(db.getAdapter()).up({ tag: NEXT, name: 'next', up: [dropUsers], down: [] });
    }),
  'another environment at the same address': async (shell) => {
    writeMigration(shell, dropUsers);
    await shell.svc('db', 'migrate', '--env', 'dev', '--adopt', ...FLAGS);
  },
  'SVC_ENV=dev': async (shell) => {
    writeMigration(shell, dropUsers);
    await shell.as({ SVC_ENV: 'dev' }, 'db', 'migrate', '--adopt', ...FLAGS);
  },
  'another configuration, which asks nobody': async (shell) => {
    shell.config(({ environments: _, approvals: __, ...rest }) => rest);
    await request(shell, ...OTHER);
  },
  'another configuration, in which prd is local': async (shell) => {
    shell.config((config) => ({ ...config, environments: { prd: { local: true } } }));
    await request(shell, ...OTHER, '--adopt');
  },
  'another configuration, of another product': async (shell) => {
    shell.config(({ environments: _, approvals: __, ...rest }) => ({ ...rest, product: 'mine' }));
    await request(shell, ...OTHER, '--adopt');
  },
};

const withApproval: Readonly<Record<string, Way>> = {
  'a drop by an agent that says so': async (shell) => {
    writeMigration(shell, dropUsers);
    await shell.as({ CLAUDECODE: '1' }, 'db', 'migrate', ...FLAGS);
  },
  'another configuration, in which the agent approves': async (shell) => {
    shell.config((config) => withOwnPeople(config, 'group:agents'));
    const own = await token(shell, 'bot@acme.example', 'agents', ...OTHER);
    await approveAndRun(shell, own, await request(shell, ...OTHER), ...OTHER);
  },
  'another configuration, with a store of its own': async (shell) => {
    shell.config((config) => ({
      ...withOwnPeople(config, 'group:dba'),
      databases: { ...config.databases, mine: { dialect: 'postgresql', url: 'pglite://memory' } },
      approvals: { store: { database: 'mine' }, roles: { dba: ['group:dba'] } },
    }));
    const own = await token(shell, 'bot@acme.example', 'dba', ...OTHER);
    assert.match(own, /^svcp_/);
    await approveAndRun(shell, own, await request(shell, '--db', 'main', ...OTHER), ...OTHER);
  },
  'another configuration, whose rules let the agent decide': async (shell) => {
    const roles = { dba: ['group:dba'], bots: ['group:agents'] };
    const rules = [{ match: {}, approve: [{ role: 'bots' }] }];
    shell.config((config) => ({ ...config, environments: {}, approvals: { ...config.approvals, roles, rules } }));
    await approveAndRun(shell, await token(shell, 'bot@acme.example', 'agents'), await request(shell), ...OTHER);
    await shell.svc('db', 'migrate', ...FLAGS);
  },
  'a drop that is kept, and purged at once': async (shell) => {
    await request(shell, '--keep', '1h');
    await shell.svc('db', 'migrate', 'purge', '--all', ...FLAGS);
  },
  'an approval by nobody': async (shell) => approveAndRun(shell, '', await request(shell)),
  'an approval with a token of its own': async (shell) => {
    const requestId = await request(shell);
    await approveAndRun(shell, await token(shell, 'bot@acme.example', 'agents'), requestId);
  },
  'an approval with a token that it makes for the role': async (shell) => {
    const requestId = await request(shell);
    const made = await token(shell, 'bot@acme.example', 'dba');
    assert.equal(made, '');
    await approveAndRun(shell, made, requestId);
  },
  'the tokens of people revoked, and one made for the role': async (shell) => {
    const requestId = await request(shell);
    for (const { tokenId } of json(await shell.svc('people', 'token', 'list', '--json')).tokens)
      await shell.svc('people', 'token', 'revoke', tokenId);
    await approveAndRun(shell, await token(shell, 'ann@acme.example', 'dba'), requestId);
  },
  'a request whose losses are edited': async (shell) => {
    const requestId = await request(shell);
    await shell.svc('approvals', 'approve', requestId, '--yes', '--set', 'losses=[]');
    await shell.svc('db', 'migrate', ...FLAGS);
  },
  'the file changed after a person approved another': async (shell) => {
    writeMigration(shell, { type: 'dropCollection', collection: 'empty' });
    await annApproves(shell);
    await migration(shell, dropUsers);
  },
  'a migration that is forgotten, and rolled back': async (shell) => {
    await shell.svc('db', 'migrate', 'resolve', shell.first, '--forget', '--yes');
    await shell.svc('db', 'migrate', 'resolve', shell.first, '--rolled-back', '--yes');
    await shell.svc('db', 'migrate', 'rollback', ...FLAGS);
  },
  'what the database remembers of its approval, dropped first': async (shell) => {
    await migration(shell, raw('DROP TABLE _svc_plan_approval'), raw('DROP TABLE _svc_meta'));
    await shell.sdk(async (svc) => (await svc.database.connect({ database: 'main' })).schema.drop('_svc_meta'));
    shell.config(({ environments: _, approvals: __, ...rest }) => rest);
    await request(shell, ...OTHER);
  },
};

testWays({ withoutApproval, withApproval });
