import * as assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AGENT_MARKERS } from '../../cli/agent.ts';
import { Svc } from '../../config/sdk/index.ts';
import type { MigrationOperation } from '../../core/schema/operation.ts';
import type { CommandResult } from './cli.ts';
import { freshDatabase, type PostgresqlTestDatabase, unavailable } from './postgresql.ts';
import { assertExit, json, LONG, project, tagOf, users, withAge } from './project.ts';
import { svcHere } from './svc-here.ts';
import { test } from './test.ts';

/*
 * An agent with a shell, in the folder of a project whose production asks people, that tries to destroy what a table has.
 */

/** What the agent has. A command that fails stops nothing. */
export interface Shell {
  /** The tag of the migration that made the table. */
  readonly first: string;
  /** The token of a person who approves, with which the agent does nothing: a way says what that person does. */
  readonly ann: string;
  write(file: string, content: object): void;
  svc(...args: readonly string[]): Promise<CommandResult>;
  /** As `svc`, with variables of the environment. */
  as(env: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<CommandResult>;
  sdk(script: (svc: Svc) => Promise<unknown>): Promise<void>;
  /** Writes another configuration file. */
  config(change: (config: Configuration) => object): void;
}

// biome-ignore lint/suspicious/noExplicitAny: the JSON of a file
export type Configuration = any;
export type Way = (shell: Shell) => Promise<unknown>;

export const FLAGS = ['--yes', '--allow-destructive'];
export const OTHER = ['--config', 'other.config.json'];
export const NEXT = '20990101_000000_next';
const file = `svc/database/migrations/main/${NEXT}.json`;

export const tables = { ...withAge, empty: { id: users.users.id } };
export const dropUsers: MigrationOperation = { type: 'dropCollection', collection: 'users' };
export const raw = (statement: string): MigrationOperation => ({
  type: 'raw',
  dialect: 'postgresql',
  statement,
  destructive: false,
});
/** A migration that says of itself that it may destroy data. */
export const writeMigration = (shell: Shell, ...up: readonly MigrationOperation[]): void =>
  shell.write(file, { tag: NEXT, name: 'next', up, down: [], allow: ['destructive'] });

export async function migration(shell: Shell, ...up: readonly MigrationOperation[]): Promise<void> {
  writeMigration(shell, ...up);
  await shell.svc('db', 'migrate', ...FLAGS);
}

/** Asks for approval of a plan that drops the table. Returns the id of the request. */
export async function request(shell: Shell, ...more: readonly string[]): Promise<string> {
  writeMigration(shell, dropUsers);
  const asked = await shell.svc('db', 'migrate', '--json', ...FLAGS, ...more);
  return String(json(asked).details?.requestId ?? 'apr_none');
}

/** Approves a plan with a token, and runs it. */
export async function approveAndRun(shell: Shell, token: string, requestId: string, ...more: readonly string[]) {
  const shown = json(await shell.svc('approvals', 'show', requestId, '--json', ...more));
  const review = ['--review-token', shown.request?.reviewToken ?? 'none'];
  await shell.as({ SVC_TOKEN: token }, 'approvals', 'approve', requestId, '--yes', ...review, ...more);
  await shell.svc('db', 'migrate', ...FLAGS, ...more);
}

export async function token(
  shell: Pick<Shell, 'svc'>,
  id: string,
  group: string,
  ...more: readonly string[]
): Promise<string> {
  return (await shell.svc('people', 'token', 'create', id, '--group', group, '--expires', '1d', ...more)).stdout.trim();
}

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
    const ann = await token(shell, 'ann@acme.example', 'dba');
    assert.match(ann, /^svcp_/);
    await way({ ...shell, first: tagOf(made.files()[0]), ann });
    return !(await hasRow(database));
  } finally {
    await database.drop();
  }
}

async function hasRow(database: PostgresqlTestDatabase): Promise<boolean> {
  for (const table of ['users', 'people', 'empty', 'more']) {
    const [found] = await database.query(`SELECT to_regclass('${table}') AS found`);
    if (!found?.found) continue;
    const rows = await database.query(`SELECT to_jsonb(t) ->> 'age' AS age FROM ${table} t`);
    if (rows.some(({ age }) => age === '41')) return true;
  }
  return false;
}

function shellIn({ root, read, write }: ReturnType<typeof project>): Omit<Shell, 'first' | 'ann'> {
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

/** A person approves the plan that is pending. */
export async function annApproves(shell: Shell): Promise<void> {
  const { requestId } = json(await shell.svc('db', 'migrate', '--json', ...FLAGS)).details;
  const { reviewToken } = json(await shell.svc('approvals', 'show', requestId, '--json')).request;
  const approving = ['approvals', 'approve', requestId, '--yes', '--review-token', reviewToken];
  assertExit(await shell.as({ SVC_TOKEN: shell.ann }, ...approving));
}

const missing = await unavailable();

/**
 * Declares a test of each way. Those that need no approval are tried where nobody is asked too: they would prove nothing if
 * they did not destroy it there.
 */
export function testWays({
  withoutApproval,
  withApproval,
}: Readonly<Record<'withoutApproval' | 'withApproval', Readonly<Record<string, Way>>>>): void {
  for (const [marker] of AGENT_MARKERS) delete process.env[marker];
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
}
