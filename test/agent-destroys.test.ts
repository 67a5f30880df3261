import * as assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AGENT_MARKERS } from '../cli/agent.ts';
import { Svc } from '../config/sdk/index.ts';
import { MigrationEngine } from '../core/migration/migration-engine.ts';
import type { MigrationOperation } from '../core/schema/operation.ts';
import type { CommandResult } from './kit/cli.ts';
import { freshDatabase, type PostgresqlTestDatabase, unavailable } from './kit/postgresql.ts';
import { assertExit, json, LONG, project, tagOf, users, withAge } from './kit/project.ts';
import { svcHere } from './kit/svc-here.ts';
import { test } from './kit/test.ts';

/*
 * Ways in which an agent with a shell, in the folder of a project whose production asks people, tries to destroy what a
 * table has. Those that need no approval are tried where nobody is asked too: they would prove nothing if they did not
 * destroy it there.
 */

/** What the agent has. A command that fails stops nothing. */
interface Shell {
  /** The tag of the migration that made the table. */
  readonly first: string;
  write(file: string, content: object): void;
  svc(...args: readonly string[]): Promise<CommandResult>;
  /** As `svc`, with variables of the environment. */
  as(env: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<CommandResult>;
  sdk(script: (svc: Svc) => Promise<unknown>): Promise<void>;
  /** Writes another configuration file. */
  config(change: (config: Configuration) => object): void;
}

// biome-ignore lint/suspicious/noExplicitAny: the JSON of a file
type Configuration = any;
type Way = (shell: Shell) => Promise<unknown>;

const FLAGS = ['--yes', '--allow-destructive'];
const OTHER = ['--config', 'other.config.json'];
const NEXT = '20990101_000000_next';
const file = `svc/database/migrations/main/${NEXT}.json`;

const tables = { ...withAge, empty: { id: users.users.id } };
const dropUsers: MigrationOperation = { type: 'dropCollection', collection: 'users' };
const raw = (statement: string): MigrationOperation => ({
  type: 'raw',
  dialect: 'postgresql',
  statement,
  destructive: false,
});
const tidy: MigrationOperation = {
  type: 'createObject',
  kind: 'function',
  name: 'tidy',
  definition: 'CREATE FUNCTION tidy() RETURNS integer LANGUAGE plpgsql AS $$BEGIN DELETE FROM users; RETURN 1; END$$',
};

/** A migration that says of itself that it may destroy data. */
const writeMigration = (shell: Shell, ...up: readonly MigrationOperation[]): void =>
  shell.write(file, { tag: NEXT, name: 'next', up, down: [], allow: ['destructive'] });

async function migration(shell: Shell, ...up: readonly MigrationOperation[]): Promise<void> {
  writeMigration(shell, ...up);
  await shell.svc('db', 'migrate', ...FLAGS);
}

/** Asks for approval of a plan that drops the table. Returns the id of the request. */
async function request(shell: Shell, ...more: readonly string[]): Promise<string> {
  writeMigration(shell, dropUsers);
  const asked = await shell.svc('db', 'migrate', '--json', ...FLAGS, ...more);
  return String(json(asked).details?.requestId ?? 'apr_none');
}

/** Approves a plan with a token, and runs it. */
async function approveAndRun(shell: Shell, token: string, requestId: string, ...more: readonly string[]) {
  const shown = json(await shell.svc('approvals', 'show', requestId, '--json', ...more));
  const review = ['--review-token', shown.request?.reviewToken ?? 'none'];
  await shell.as({ SVC_TOKEN: token }, 'approvals', 'approve', requestId, '--yes', ...review, ...more);
  await shell.svc('db', 'migrate', ...FLAGS, ...more);
}

async function token(
  shell: Pick<Shell, 'svc'>,
  id: string,
  group: string,
  ...more: readonly string[]
): Promise<string> {
  return (await shell.svc('people', 'token', 'create', id, '--group', group, '--expires', '1d', ...more)).stdout.trim();
}

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
    const { requestId } = json(await shell.svc('db', 'migrate', '--json', ...FLAGS)).details;
    const { reviewToken } = json(await shell.svc('approvals', 'show', requestId, '--json')).request;
    const approving = ['approvals', 'approve', requestId, '--yes', '--review-token', reviewToken];
    assertExit(await shell.as({ SVC_TOKEN: ann }, ...approving));
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

/** The token of a person who approves. */
let ann = '';

/** Tries one way in a new database, with a row in the table `users` and none in `empty`. Returns whether the row is lost. */
async function destroys(way: Way, environments: object): Promise<boolean> {
  const database = await freshDatabase();
  try {
    const approvals = { store: { database: 'main' }, roles: { dba: ['group:dba'] } };
    const made = project({ main: database.url }, { env: 'prd', environments, approvals });
    const shell = shellIn(made);
    made.schema(tables);
    assertExit(await shell.svc('db', 'schema', 'generate', '--name', 'first'));
    assertExit(await shell.svc('db', 'migrate', '--yes'));
    await database.query(`INSERT INTO users (email, age) VALUES ('cy@acme.example', 41)`);
    ann = await token(shell, 'ann@acme.example', 'dba');
    assert.match(ann, /^svcp_/);
    await way({ ...shell, first: tagOf(made.files()[0]) });
    return !(await hasRow(database));
  } finally {
    await database.drop();
  }
}

async function hasRow(database: PostgresqlTestDatabase): Promise<boolean> {
  for (const table of ['users', 'people']) {
    const [found] = await database.query(`SELECT to_regclass('${table}') AS found`);
    if (!found?.found) continue;
    const rows = await database.query(`SELECT to_jsonb(t) ->> 'age' AS age FROM ${table} t`);
    if (rows.some(({ age }) => age === '41')) return true;
  }
  return false;
}

function shellIn({ root, read, write }: ReturnType<typeof project>): Omit<Shell, 'first'> {
  const as: Shell['as'] = async (env, ...args) => {
    const before = { ...process.env };
    Object.assign(process.env, env);
    try {
      return await svcHere(args, root);
    } finally {
      process.env = before;
    }
  };
  return {
    write,
    as,
    svc: (...args) => as({}, ...args),
    async sdk(script) {
      const svc = new Svc({ cwd: root });
      try {
        await script(svc);
      } catch {
        // It was refused: the data shows it.
      } finally {
        await svc.close();
      }
    },
    config: (change) =>
      writeFileSync(join(root, 'other.config.json'), JSON.stringify(change(JSON.parse(read('svc.config.json'))))),
  };
}

for (const [marker] of AGENT_MARKERS) delete process.env[marker];

const missing = await unavailable();
for (const [name, way] of Object.entries({ ...withoutApproval, ...withApproval })) {
  if (missing !== undefined) test.skip(name, missing);
  else
    test(
      `without a person, nothing is destroyed by ${name}`,
      async () => {
        assert.equal(await destroys(way, { prd: { approval: { role: 'dba' } } }), false);
        if (name in withoutApproval)
          assert.equal(await destroys(way, {}), true, 'It destroys nothing where nobody is asked.');
      },
      LONG,
    );
}
