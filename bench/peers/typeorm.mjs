// typeorm: every pending migration in one transaction, its default.
import { DataSource } from 'typeorm';

import { isMariadb, isPostgres, url } from './client.mjs';

const source = new DataSource({
  type: isPostgres ? 'postgres' : isMariadb ? 'mariadb' : 'mysql',
  url,
  migrations: ['migrations/*.cjs'],
  logging: false,
});
await source.initialize();
if (process.argv[2] === 'status') console.log(`pending: ${await source.showMigrations()}`);
else console.log(`${(await source.runMigrations()).length} applied`);
await source.destroy();
