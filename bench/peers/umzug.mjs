// umzug brings no storage for PostgreSQL: the simplest one, a table of names. Migration and row are two commits.
import { readFile } from 'node:fs/promises';
import pg from 'pg';
import { Umzug } from 'umzug';

const client = new pg.Client(process.env.DATABASE_URL);
await client.connect();
await client.query('CREATE TABLE IF NOT EXISTS umzug_migrations (name text PRIMARY KEY)');
const umzug = new Umzug({
  migrations: {
    glob: 'migrations/*.sql',
    resolve: ({ name, path }) => ({ name, up: async () => client.query(await readFile(path, 'utf8')) }),
  },
  storage: {
    executed: async () =>
      (await client.query('SELECT name FROM umzug_migrations ORDER BY name')).rows.map((row) => row.name),
    logMigration: async ({ name }) => void (await client.query('INSERT INTO umzug_migrations VALUES ($1)', [name])),
    unlogMigration: async ({ name }) =>
      void (await client.query('DELETE FROM umzug_migrations WHERE name = $1', [name])),
  },
  logger: undefined,
});
if (process.argv[2] === 'status')
  console.log(`${(await umzug.executed()).length} applied, ${(await umzug.pending()).length} pending`);
else console.log(`${(await umzug.up()).length} applied`);
await client.end();
