// drizzle-orm's migrator: every pending migration in one transaction, its own default.
import { drizzle } from 'drizzle-orm/node-postgres';
import { migrate } from 'drizzle-orm/node-postgres/migrator';
import pg from 'pg';

const client = new pg.Client(process.env.DATABASE_URL);
await client.connect();
await migrate(drizzle(client), { migrationsFolder: 'migrations' });
await client.end();
