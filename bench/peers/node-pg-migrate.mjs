// node-pg-migrate: every pending migration in one transaction, the default of its command line.
import { runner } from 'node-pg-migrate';

const applied = await runner({
  databaseUrl: process.env.DATABASE_URL,
  dir: 'migrations',
  direction: 'up',
  singleTransaction: true,
  migrationsTable: 'pgmigrations',
  log: () => {},
});
console.log(`${applied.length} applied`);
