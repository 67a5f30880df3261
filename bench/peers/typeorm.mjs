// typeorm: every pending migration in one transaction, its own default.
import { DataSource } from 'typeorm';

const source = new DataSource({
  type: 'postgres',
  url: process.env.DATABASE_URL,
  migrations: ['migrations/*.cjs'],
  logging: false,
});
await source.initialize();
if (process.argv[2] === 'status') console.log(`pending: ${await source.showMigrations()}`);
else console.log(`${(await source.runMigrations()).length} applied`);
await source.destroy();
