// drizzle-orm's migrator: every pending migration in one transaction, its default.
import { connect, isPostgres } from './client.mjs';

const client = await connect();
const driver = isPostgres ? 'node-postgres' : 'mysql2';
const { drizzle } = await import(`drizzle-orm/${driver}`);
const { migrate } = await import(`drizzle-orm/${driver}/migrator`);
await migrate(drizzle(client), { migrationsFolder: 'migrations' });
await client.end();
