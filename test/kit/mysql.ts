import { randomUUID } from 'node:crypto';
import { createConnection } from 'mysql2/promise';
import type { TestDatabase } from '../suites/test-database.ts';

export interface FreshDatabase extends TestDatabase {
  /** On a connection of its own. BIGINT and dates are strings. */
  query(text: string): Promise<Record<string, unknown>[]>;
}

/** Creates a database on a server, so that test files can run in parallel. */
export async function freshDatabase(server: string): Promise<FreshDatabase> {
  const name = `svc_test_${randomUUID().replaceAll('-', '')}`;
  await on(server, `CREATE DATABASE ${name} CHARACTER SET utf8mb4`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    query: (text) => on(url.href, text),
    drop: async () => void (await on(server, `DROP DATABASE IF EXISTS ${name}`)),
  };
}

/** The MySQL driver also connects to MariaDB. */
async function on(url: string, text: string): Promise<Record<string, unknown>[]> {
  const connection = await createConnection({
    uri: url.replace(/^mariadb:/, 'mysql:'),
    connectTimeout: 3000,
    charset: 'utf8mb4_unicode_ci',
    multipleStatements: true,
    dateStrings: true,
    supportBigNumbers: true,
    bigNumberStrings: true,
  });
  try {
    const [rows] = await connection.query(text);
    return Array.isArray(rows) ? (rows as Record<string, unknown>[]) : [];
  } finally {
    await connection.end();
  }
}
