// knex: a transaction per migration, its own default.
import knex from 'knex';

const db = knex({
  client: 'pg',
  connection: process.env.DATABASE_URL,
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
