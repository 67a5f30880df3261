import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { quoteIdentifier } from '../../plugins/dialects/postgresql/compile/names.ts';
import { postgresql } from '../../plugins/dialects/postgresql/dialect.ts';
import { find } from '../servers/find.ts';
import type { DialectUnderTest } from '../suites/dialect-under-test.ts';
import { sqlSyntax } from '../suites/sql-syntax.ts';
import type { TestDatabase } from '../suites/test-database.ts';

const found = await find('postgresql');

/** Why no server is available, or undefined if one is. */
export const unavailable = async (): Promise<string | undefined> => ('missing' in found ? found.missing : undefined);

export interface PostgresqlTestDatabase extends TestDatabase {
  /** Runs a query with a separate client. */
  query(text: string): Promise<Record<string, unknown>[]>;
  /** `ALTER DATABASE`; also ends its sessions, which would keep the old settings. */
  alter(how: string): Promise<void>;
}

/** A new database on the server, so that test files can run in parallel. */
export async function freshDatabase(): Promise<PostgresqlTestDatabase> {
  const name = `svc_test_${randomUUID().replaceAll('-', '')}`;
  await onServer((client) => client.query(`CREATE DATABASE ${name}`));
  const url = new URL(server());
  url.pathname = `/${name}`;
  return {
    url: url.href,
    query: (text) => on(url.href, async (client) => (await client.query(text)).rows),
    alter: (how) =>
      onServer(async (client) => {
        await client.query(`ALTER DATABASE ${name} ${how}`);
        await client.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [name]);
      }),
    // PostgreSQL 12 has no DROP DATABASE … WITH (FORCE).
    drop: () =>
      onServer(async (client) => {
        await client.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [name]);
        await client.query(`DROP DATABASE IF EXISTS ${name}`);
      }),
  };
}

/** A new session costs more than most statements. */
const administrators = new pg.Pool({
  connectionString: 'url' in found ? found.url : undefined,
  allowExitOnIdle: true,
});
administrators.on('error', () => {});

async function onServer<T>(work: (client: pg.ClientBase) => Promise<T>): Promise<T> {
  if ('missing' in found) throw new Error(found.missing);
  const client = await administrators.connect();
  try {
    return await work(client);
  } finally {
    client.release();
  }
}

function server(): string {
  if ('missing' in found) throw new Error(found.missing);
  return found.url;
}

async function on<T>(connectionString: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: 3000 });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** PostgreSQL for the dialect suite. */
export const postgresqlUnderTest: DialectUnderTest = {
  ...sqlSyntax(quoteIdentifier, (hex) => `'\\x${hex}'`),
  name: 'PostgreSQL',
  dialect: postgresql,
  module: new URL('../../plugins/dialects/postgresql/dialect.ts', import.meta.url),
  createDatabase: freshDatabase,
  urlAt: (port) => `postgresql://postgres@127.0.0.1:${port}/shop`,
  async addUnsupportedObject(connection, table) {
    await connection.query("CREATE SCHEMA odd; CREATE TYPE odd.mood AS ENUM ('sad')");
    await connection.query(`ALTER TABLE ${quoteIdentifier(table)} ADD COLUMN label odd.mood`);
  },
};
