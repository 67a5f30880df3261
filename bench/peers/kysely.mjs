// kysely's Migrator: every pending migration in one transaction where DDL is transactional, its default.
import { promises as fs } from 'node:fs';
import path from 'node:path';
import { FileMigrationProvider, Kysely, Migrator, MysqlDialect, PostgresDialect } from 'kysely';
import { isPostgres, url } from './client.mjs';

async function dialect() {
  if (!isPostgres) return new MysqlDialect({ pool: (await import('mysql2')).createPool(url) });
  const { default: pg } = await import('pg');
  return new PostgresDialect({ pool: new pg.Pool({ connectionString: url }) });
}
const db = new Kysely({ dialect: await dialect() });
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
