// No tool at all: the statements and history writes that svc sends, with the drivers of svc, so many migrations in one
// round trip as argv[3] says. `ask` is the least that can tell what is applied.
import { readFile } from 'node:fs/promises';
import { connect, isMariadb } from './client.mjs';

const client = isMariadb
  ? await (await import('mariadb')).createConnection(`${process.env.DATABASE_URL}?multipleStatements=true`)
  : await connect({ multipleStatements: true });
if (process.argv[2] === 'ask') {
  await client.query('SELECT count(*) FROM _svc_migrations');
} else {
  const batch = Number(process.argv[3]);
  const { setup, migrations } = JSON.parse(await readFile('migrations.json', 'utf8'));
  await client.query(setup);
  for (let at = 0; at < migrations.length; at += batch) {
    await client.query(migrations.slice(at, at + batch).join('\n'));
  }
  await client.query('COMMIT');
}
await client.end();
