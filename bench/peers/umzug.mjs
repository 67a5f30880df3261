// umzug has no storage for these engines, so the simplest one: a table of names. Migration and row are two commits.
import { readFile } from 'node:fs/promises';
import { Umzug } from 'umzug';
import { connect, isPostgres } from './client.mjs';

const client = await connect();
const rowsOf = async (text) => {
  const answer = await client.query(text);
  return isPostgres ? answer.rows : answer[0];
};
await client.query('CREATE TABLE IF NOT EXISTS umzug_migrations (name varchar(255) PRIMARY KEY)');
const umzug = new Umzug({
  migrations: {
    glob: 'migrations/*.sql',
    resolve: ({ name, path }) => ({ name, up: async () => client.query(await readFile(path, 'utf8')) }),
  },
  storage: {
    executed: async () => (await rowsOf('SELECT name FROM umzug_migrations ORDER BY name')).map((row) => row.name),
    logMigration: async ({ name }) =>
      void (await client.query(`INSERT INTO umzug_migrations VALUES (${isPostgres ? '$1' : '?'})`, [name])),
    unlogMigration: async ({ name }) =>
      void (await client.query(`DELETE FROM umzug_migrations WHERE name = ${isPostgres ? '$1' : '?'}`, [name])),
  },
  logger: undefined,
});
if (process.argv[2] === 'status')
  console.log(`${(await umzug.executed()).length} applied, ${(await umzug.pending()).length} pending`);
else console.log(`${(await umzug.up()).length} applied`);
await client.end();
