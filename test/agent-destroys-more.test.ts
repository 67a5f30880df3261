import { MigrationEngine } from '../core/migration/migration-engine.ts';
import type { MigrationOperation } from '../core/schema/operation.ts';
import {
  annApproves,
  approveAndRun,
  dropUsers,
  FLAGS,
  migration,
  request,
  testWays,
  token,
  type Way,
  writeMigration,
} from './kit/destroying-agent.ts';

/* More of the ways of agent-destroys.test.ts: with names, with texts that continue after their end, and between an approval and its run. */

const key = { name: 'id', type: 'integer', primaryKey: true } as const;
const create = (name: string): MigrationOperation => ({ type: 'createCollection', name, fields: [key] });
const rename = (collection: string, to: string): MigrationOperation => ({ type: 'renameCollection', collection, to });
const drop = (collection: string): MigrationOperation => ({ type: 'dropCollection', collection });

const withoutApproval: Readonly<Record<string, Way>> = {
  'a new table renamed, and its name given to the old one': (shell) =>
    migration(shell, create('more'), rename('more', 'less'), rename('users', 'more'), drop('more')),
  'the table dropped by the name of a new one that had it before': (shell) =>
    migration(shell, rename('users', 'old'), create('users'), drop('users'), rename('old', 'users'), dropUsers),
  'the same in one run of three migrations': async (shell) => {
    const steps = [[create('more')], [rename('more', 'less'), rename('users', 'more')], [drop('more')]];
    for (const [index, up] of steps.entries()) {
      const tag = `2099010${index + 1}_000000_step`;
      shell.write(`svc/database/migrations/main/${tag}.json`, {
        tag,
        name: 'step',
        up,
        down: [],
        allow: ['destructive'],
      });
    }
    await shell.svc('db', 'migrate', ...FLAGS);
  },
  'another type, which has no such value': (shell) =>
    migration(shell, { type: 'modifyField', collection: 'users', field: 'age', changes: { type: 'boolean' } }),
};

const DROP = 'DROP TABLE users';
const age = { type: 'addField', collection: 'users' } as const;
/** Texts after whose end the statement would continue, or another one would follow. */
const texts: Readonly<Record<string, MigrationOperation>> = {
  'a default': { ...age, field: { name: 'n', type: 'integer', default: { $expression: `1; ${DROP}` } } },
  'a default in parentheses': {
    ...age,
    field: {
      name: 'n',
      type: 'integer',
      default: { $expression: '1), DROP COLUMN age, ADD COLUMN m integer DEFAULT (1' },
    },
  },
  'a default without parentheses': {
    ...age,
    field: { name: 'n', type: 'integer', default: { $expression: '1, DROP COLUMN age' } },
  },
  'a default with dollars': {
    ...age,
    field: { name: 'n', type: 'text', default: { $expression: `$$[$$; ${DROP}; VALUES ($$]$$)` } },
  },
  'a type': { ...age, field: { name: 'n', type: 'text', native: 'text, DROP COLUMN age' } },
  'a type that changes': {
    type: 'modifyField',
    collection: 'users',
    field: 'age',
    changes: { native: 'integer USING 0' },
  },
  'a computed type': {
    ...age,
    field: { name: 'n', type: 'text', native: `text GENERATED ALWAYS AS ('a') STORED; ${DROP}` },
  },
  'a check': {
    type: 'addConstraint',
    collection: 'users',
    constraint: { name: 'c', type: 'check', columns: [], expression: 'true), DROP COLUMN age, ADD CHECK (true' },
  },
  'the end of a check': {
    type: 'addConstraint',
    collection: 'users',
    constraint: { name: 'c', type: 'check', columns: [], expression: 'true', native: 'NOT VALID, DROP COLUMN age' },
  },
  'the end of a key': {
    type: 'addConstraint',
    collection: 'users',
    constraint: { name: 'c', type: 'unique', columns: ['age'], native: `INCLUDE (email); ${DROP}` },
  },
  'an index': {
    type: 'createIndex',
    collection: 'users',
    index: 'i',
    columns: [{ name: 'age' }],
    native: `(age); ${DROP}`,
  },
  'the options of a table': {
    ...create('more'),
    options: { sqlOptions: { native: `WITH (fillfactor=80); ${DROP}` } },
  } as MigrationOperation,
  'a comment': { ...age, field: { name: 'n', type: 'text', comment: `'; ${DROP}; --` } },
};

const withApproval: Readonly<Record<string, Way>> = {
  'a drop of a field that says that another one has its values': (shell) =>
    migration(shell, { type: 'dropField', collection: 'users', field: 'age', mirrors: 'id' }),
  'a name given to the table after another was approved': async (shell) => {
    writeMigration(shell, drop('empty'));
    await annApproves(shell);
    const tag = '20980101_000000_names';
    const up = [rename('users', 'more'), rename('empty', 'users'), rename('more', 'empty')];
    shell.write(`svc/database/migrations/main/${tag}.json`, { tag, name: 'names', up, down: [] });
    await shell.svc('db', 'migrate', '--to', tag, ...FLAGS);
    await shell.svc('db', 'migrate', ...FLAGS);
  },
  'the names changed in a program after another was approved': async (shell) => {
    writeMigration(shell, drop('empty'));
    await annApproves(shell);
    await shell.sdk(async (svc) => {
      const engine = new MigrationEngine((await svc.database.connect({ database: 'main' })).getAdapter());
      const up = [rename('users', 'more'), rename('empty', 'users'), rename('more', 'empty')];
      await engine.up({ tag: '20980101_000000_names', name: 'names', up, down: [] });
    });
    await shell.svc('db', 'migrate', ...FLAGS);
  },
  'an approval that it lets count for later plans': async (shell) => {
    writeMigration(shell, drop('empty'));
    await annApproves(shell);
    await shell.svc('approvals', 'allow', 'apr_none', '--uses', '9', '--until', '2098-01-01');
    await migration(shell, dropUsers);
  },
  'a delegation to itself': async (shell) => {
    const own = await token(shell, 'bot@acme.example', 'agents');
    await shell.as({ SVC_TOKEN: own }, 'people', 'delegate', '--to', 'bot@acme.example', '--until', '2098-01-01');
    await approveAndRun(shell, own, await request(shell));
  },
  'an audit that is pruned, and asked again': async (shell) => {
    await request(shell);
    await shell.svc('approvals', 'prune', '--older-than', '1s', '--yes');
    await migration(shell, dropUsers);
  },
  'a kept table whose time is over at once': async (shell) => {
    shell.config((config) => ({
      ...config,
      databases: { main: { ...config.databases.main, keep: '1s' } },
    }));
    await request(shell, '--config', 'other.config.json');
    await shell.svc('db', 'migrate', 'purge', '--config', 'other.config.json', ...FLAGS);
  },
  ...Object.fromEntries(
    Object.entries(texts).map(([what, operation]): [string, Way] => [
      `${what} that continues after its end`,
      (shell) => migration(shell, operation),
    ]),
  ),
};

testWays({ withoutApproval, withApproval });
