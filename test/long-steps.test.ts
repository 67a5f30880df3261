import * as assert from 'node:assert/strict';
import type { Progress } from '../core/dialect.ts';
import { migration } from '../core/migration/builder.ts';
import { migrate } from '../core/migration/migrate.ts';
import { committingEngines } from './kit/engines.ts';
import { definedInCode } from './kit/migrations.ts';
import { unavailable as noOwnServer, ownServer } from './kit/own-postgresql.ts';
import { freshDatabase, unavailable } from './kit/postgresql.ts';
import { assertExit, json, LONG, project } from './kit/project.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';

// Steps that take long, or more locks than the server has.

const missing = await unavailable();
const noServer = noOwnServer();

if (missing === undefined) {
  test(
    'a migration that takes long says that it is running',
    async () => {
      const { url, drop } = await freshDatabase();
      try {
        const shop = project({ main: url });
        const slow = migration('20260101_000000_slow').raw('postgresql', 'SELECT pg_sleep(11)').build();
        shop.write(`svc/database/migrations/main/${slow.tag}.json`, slow);
        const { stderr } = assertExit(await shop.svc('db', 'migrate'));
        assert.match(stderr, /^ {2}20260101_000000_slow {2}running for 1\d(\.\d+)? s$/m);
      } finally {
        await drop();
      }
    },
    LONG,
  );
} else test.skip('a migration that takes long says that it is running', missing);

if (noServer === undefined) {
  test(
    'a server without room for more locks is not a syntax error: the same command may succeed later',
    async () => {
      const server = await ownServer();
      try {
        await server.query('ALTER SYSTEM SET max_locks_per_transaction = 10');
        await server.query('ALTER SYSTEM SET max_connections = 10');
        await server.query('ALTER SYSTEM SET max_wal_senders = 0');
        await server.kill();
        await server.start();
        const shop = project({ main: server.url() });
        const many = migration('20260101_000000_many')
          .raw(
            'postgresql',
            "DO $$BEGIN FOR i IN 1..20000 LOOP EXECUTE 'CREATE TABLE t' || i || ' ()'; END LOOP; END$$",
          )
          .build();
        shop.write(`svc/database/migrations/main/${many.tag}.json`, many);
        const refused = json(assertExit(await shop.svc('db', 'migrate', '--json'), 10));
        assert.equal(refused.code, 'locks_exhausted');
        assert.match(refused.why, /53200/);
        assert.match(refused.nextActions.join(), /max_locks_per_transaction/);
        assert.match(refused.state, /None of it took effect/);
        assertExit(await shop.svc('db', 'migrate', 'status'));
      } finally {
        await server.remove();
      }
    },
    LONG,
  );
} else test.skip('a server without room for more locks is not a syntax error', noServer);

for (const engine of committingEngines) {
  if (engine.missing !== undefined) {
    test.skip(`${engine.name}: filling a column reports its progress`, engine.missing);
    continue;
  }
  test(
    `${engine.name}: filling a column reports its progress`,
    () =>
      engine.withUrl(async (url) => {
        const seen: Progress[] = [];
        const target = await connectTarget(engine.dialect, url, { onProgress: (progress) => seen.push(progress) });
        try {
          const big = migration('20260101_000000_big')
            .createCollection('big', [{ name: 'id', type: 'integer', primaryKey: true }])
            .build();
          await migrate(target, [big].map(definedInCode));
          const tens = (name: string) =>
            `(SELECT 0 AS i UNION ALL ${[1, 2, 3, 4, 5, 6, 7, 8, 9].map((i) => `SELECT ${i}`).join(' UNION ALL ')}) AS ${name}`;
          await target.connection.query(
            `INSERT INTO big SELECT a.i + 10 * b.i + 100 * c.i + 1000 * d.i FROM ${tens('a')}, ${tens('b')}, ${tens('c')}, ${tens('d')}; INSERT INTO big SELECT id + 10000 FROM big; ANALYZE TABLE big`,
          );
          const more = migration('20260102_000000_more')
            .addField('big', { name: 'code', type: 'uuid', autoGenerate: true, required: true })
            .build();
          await migrate(target, [big, more].map(definedInCode));
          assert.deepEqual(
            seen.map(({ collection, done }) => [collection, done]),
            [5_000, 10_000, 15_000, 20_000].map((done) => ['big', done]),
          );
          assert.ok(seen.every(({ total }) => total === 20_000));
          const [row] = await target.connection.query('SELECT COUNT(DISTINCT code) AS codes FROM big');
          assert.equal(Number(row?.codes), 20_000);
        } finally {
          await target.connection.close();
        }
      }),
    LONG,
  );
}
