// The database of DATABASE_URL by the driver that the tools take: pg, and mysql2 for both of the others.
const given = process.env.DATABASE_URL;
export const isPostgres = given.startsWith('postgres');
export const isMariadb = given.startsWith('mariadb:');
export const url = given.replace(/^mariadb:/, 'mysql:');

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
