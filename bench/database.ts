import pg from 'pg';

const SERVER = process.env.SVC_TEST_POSTGRESQL_URL ?? 'postgres://postgres@127.0.0.1:5432/postgres';
const made = new Set<string>();

export function databaseUrl(name: string): string {
  const url = new URL(SERVER);
  url.pathname = `/${name}`;
  return url.href;
}

/** An empty database of that name, in place of the one that may be there. */
export async function freshDatabase(name: string): Promise<string> {
  await ask(SERVER, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  made.add(name);
  await ask(SERVER, `CREATE DATABASE ${name}`);
  return databaseUrl(name);
}

export async function dropDatabases(): Promise<void> {
  for (const name of made) {
    await ask(SERVER, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    made.delete(name);
  }
}

/** The first value of the first row. */
export async function value(url: string, query: string): Promise<string> {
  const [row = {}] = await ask(url, query);
  return String(Object.values(row)[0]);
}

export const serverFacts = async (): Promise<string> =>
  `PostgreSQL ${await value(SERVER, 'SHOW server_version')}, fsync ${await value(SERVER, 'SHOW fsync')}, ` +
  `synchronous_commit ${await value(SERVER, 'SHOW synchronous_commit')}`;

async function ask(url: string, query: string): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(query)).rows;
  } finally {
    await client.end();
  }
}
