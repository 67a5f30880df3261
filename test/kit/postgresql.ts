import { randomUUID } from 'node:crypto';
import pg from 'pg';
import type { Fresh } from './engines.ts';

const SERVER = process.env.SVC_TEST_POSTGRESQL_URL ?? 'postgresql://postgres@127.0.0.1:5432/postgres';

/** Why no server can be used here, or nothing where one answers. */
export async function unavailable(): Promise<string | undefined> {
  try {
    await onServer(async () => {});
    return undefined;
  } catch (error) {
    if (process.env.SVC_TEST_POSTGRESQL_URL !== undefined) throw error;
    return `no PostgreSQL server answers on 127.0.0.1:5432 (${error instanceof Error ? error.message : error})`;
  }
}

export interface FreshDatabase extends Fresh {
  /** Beside whatever is under test. */
  query(text: string): Promise<Record<string, unknown>[]>;
}

/** A database of its own on the server, so that files can run side by side. */
export async function freshDatabase(): Promise<FreshDatabase> {
  const name = `svc_test_${randomUUID().replaceAll('-', '')}`;
  await onServer((client) => client.query(`CREATE DATABASE ${name}`));
  const url = new URL(SERVER);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    query: (text) => on(url.href, async (client) => (await client.query(text)).rows),
    drop: async () => void (await onServer((client) => client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`))),
  };
}

const onServer = <T>(work: (client: pg.Client) => Promise<T>) => on(SERVER, work);

async function on<T>(connectionString: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: 3000 });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
