// No tool at all: the statements and history writes that svc sends, each migration atomic in a simple-protocol
// string of its own; argv[3] is how many such strings go in one round trip.
import { readFile } from 'node:fs/promises';
import pg from 'pg';

const client = new pg.Client(process.env.DATABASE_URL);
await client.connect();
const batch = Number(process.argv[3]);
const { setup, migrations } = JSON.parse(await readFile('migrations.json', 'utf8'));
await client.query(setup);
for (let at = 0; at < migrations.length; at += batch) {
  await client.query(migrations.slice(at, at + batch).join('\n'));
}
await client.end();
