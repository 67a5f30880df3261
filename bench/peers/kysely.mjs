// kysely's Migrator: every pending migration in one transaction, its own default.
import { promises as fs } from 'node:fs';
import path from 'node:path';
import { FileMigrationProvider, Kysely, Migrator, PostgresDialect } from 'kysely';
import pg from 'pg';

const db = new Kysely({
  dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: process.env.DATABASE_URL }) }),
});
const migrator = new Migrator({
  db,
  provider: new FileMigrationProvider({ fs, path, migrationFolder: path.resolve('migrations') }),
});
if (process.argv[2] === 'status') {
  const all = await migrator.getMigrations();
  console.log(`${all.filter((one) => one.executedAt).length} of ${all.length} applied`);
} else {
  const { error, results = [] } = await migrator.migrateToLatest();
  if (error) throw error;
  console.log(`${results.length} applied`);
}
await db.destroy();
