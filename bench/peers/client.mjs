// Connects to DATABASE_URL with the driver that the tools use: pg, or mysql2 for both MySQL and MariaDB.
const databaseUrl = process.env.DATABASE_URL;
export const isPostgres = databaseUrl.startsWith('postgres');
export const isMariadb = databaseUrl.startsWith('mariadb:');
export const url = databaseUrl.replace(/^mariadb:/, 'mysql:');

export async function connect(options = {}) {
  if (isPostgres) {
    const { default: pg } = await import('pg');
    const client = new pg.Client(url);
    await client.connect();
    return client;
  }
  const { createConnection } = await import('mysql2/promise');
  return createConnection({ uri: url, ...options });
}
