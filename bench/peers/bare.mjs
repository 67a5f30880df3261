// No tool: the statements and history writes that svc sends, with the drivers of svc and argv[3] migrations per round
// trip. `count` is the minimal check of what is applied.
import { readFile } from 'node:fs/promises';
import { connect, isMariadb } from './client.mjs';

const client = isMariadb
  ? await (await import('mariadb')).createConnection(`${process.env.DATABASE_URL}?multipleStatements=true`)
  : await connect({ multipleStatements: true });
if (process.argv[2] === 'count') {
  await client.query('SELECT count(*) FROM _svc_migrations');
} else {
  const batch = Number(process.argv[3]);
  const { setup, migrations } = JSON.parse(await readFile('migrations.json', 'utf8'));
  await client.query(setup);
  for (let from = 0; from < migrations.length; from += batch) {
    await client.query(migrations.slice(from, from + batch).join('\n'));
  }
  await client.query('COMMIT');
}
await client.end();
