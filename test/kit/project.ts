import * as assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type CommandResult, svc } from './cli.ts';
import { folder } from './folder.ts';
import { LIFTOFF_ONLY } from './node-flags.ts';

export interface Project {
  readonly root: string;
  readonly svc: (...args: readonly string[]) => Promise<CommandResult>;
  /** Writes the schema file: tables of `main`, or whole entries. */
  schema(tables: object | readonly object[]): void;
  /** Names of the migration files of a database. */
  files(db?: string): readonly string[];
  read(file: string): string;
  write(file: string, content: string | object): void;
}

/** A folder with a configuration, a schema file and the real CLI. `options` are those of each database, next to its URL. */
export function project(
  databases: Readonly<Record<string, string>>,
  config: object = {},
  variables: Readonly<Record<string, string>> = {},
  options: object = {},
): Project {
  const entries = Object.entries(databases).map(([tag, url]) => [
    tag,
    { dialect: dialectOf(url), url: { dev: url, prd: url }, ...options },
  ]);
  const root = folder({
    'svc.config.json': {
      product: 'shop',
      env: 'dev',
      databases: Object.fromEntries(entries),
      environments: { prd: { protected: true } },
      ...config,
    },
  });
  const write = (file: string, content: string | object): void => {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), typeof content === 'string' ? content : JSON.stringify(content, null, 2));
  };
  return {
    root,
    svc: (...args) => svc(args, { cwd: root, env: variables, node: [LIFTOFF_ONLY] }),
    schema: (tables) => write('svc/database/schema.json', Array.isArray(tables) ? tables : [{ db: 'main', tables }]),
    files(db = 'main') {
      try {
        return readdirSync(join(root, 'svc/database/migrations', db)).sort();
      } catch {
        return [];
      }
    },
    read: (file) => readFileSync(join(root, file), 'utf8'),
    write,
  };
}

/** PostgreSQL has several URL schemes. The other dialects are named like their scheme. */
function dialectOf(url: string): string {
  const [scheme = ''] = url.split(':');
  return ['mysql', 'mariadb', 'mongodb', 'dynamodb', 'cassandra'].includes(scheme) ? scheme : 'postgresql';
}

/** Asserts the exit status of a command. */
export function assertExit(ran: CommandResult, status = 0): CommandResult {
  assert.equal(ran.status, status, `${ran.stdout}\n${ran.stderr}`);
  return ran;
}

// biome-ignore lint/suspicious/noExplicitAny: whatever the command printed
export const json = (ran: CommandResult): any => JSON.parse(ran.stdout);

/** The tag of a migration file. */
export const tagOf = (file: string | undefined): string =>
  (file ?? '')
    .split('/')
    .at(-1)
    ?.replace(/\.\w+$/, '') ?? '';

/** A command takes a second, more on a busy machine. */
export const LONG = { timeoutMs: 240_000 };

export const id = { type: 'Integer', primaryKey: true, autoGenerate: true };
export const users = { users: { id, email: { type: 'String', required: true, unique: true } } };
export const withAge = { users: { ...users.users, age: 'Integer' } };
