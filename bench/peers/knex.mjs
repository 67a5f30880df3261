// knex: a transaction per migration, its default.
import knex from 'knex';
import { isPostgres, url } from './client.mjs';

const db = knex({
  client: isPostgres ? 'pg' : 'mysql2',
  connection: url,
  migrations: { directory: 'migrations', loadExtensions: ['.cjs'] },
});
if (process.argv[2] === 'status') {
  const [completed, pending] = await db.migrate.list();
  console.log(`${completed.length} completed, ${pending.length} pending`);
} else {
  const [, applied] = await db.migrate.latest();
  console.log(`${applied.length} applied`);
}
await db.destroy();
