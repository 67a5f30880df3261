// Runs SQL with the bare driver: node bare.mjs <engine> <url> <file with a JSON list of texts>.
import { readFileSync } from 'node:fs';

const [, , engine, url, file] = process.argv;
const texts = JSON.parse(readFileSync(file, 'utf8'));
const connect = {
  async postgresql() {
    const { default: pg } = await import('pg');
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    return client;
  },
  async mysql() {
    const { createConnection } = await import('mysql2/promise');
    return createConnection({ uri: url, multipleStatements: true });
  },
  async mariadb() {
    const { createConnection } = await import('mariadb');
    const { hostname, port, username, password, pathname } = new URL(url);
    return createConnection({
      host: hostname,
      port: Number(port || 3306),
      user: decodeURIComponent(username),
      password: decodeURIComponent(password),
      database: pathname.slice(1),
      multipleStatements: true,
    });
  },
};
const connection = await connect[engine]();
for (const text of texts) await connection.query(text);
await connection.end();
