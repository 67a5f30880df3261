import { randomUUID } from 'node:crypto';
import { createConnection } from 'mysql2/promise';
import type { TestDatabase } from '../suites/test-database.ts';

export interface FreshDatabase extends TestDatabase {
  /** Beside whatever is under test; BIGINT and dates as text. */
  query(text: string): Promise<Record<string, unknown>[]>;
}

/** A database of its own on the server at that URL, so that files can run side by side. */
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

/** The driver of MySQL speaks to MariaDB too. */
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
