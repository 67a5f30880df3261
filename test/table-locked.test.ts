import * as assert from 'node:assert/strict';
import { migration } from '../core/migration/builder.ts';
import { migrate } from '../core/migration/migrate.ts';
import type { RunOptions } from '../core/migration/preview.ts';
import { status } from '../core/migration/status.ts';
import { sqlEngines } from './kit/engines.ts';
import { definedInCode } from './kit/migrations.ts';
import { assertExit, json, LONG, project } from './kit/project.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

// A table that another session locks for longer than the lock time-out of a migrator.

for (const engine of sqlEngines.filter(({ name }) => name !== 'pglite')) {
  if (engine.missing !== undefined) {
    test.skip(`${engine.name}: a table that another session locks`, engine.missing);
    continue;
  }

  test(`${engine.name}: a step that times out on a lock is run by the next migrate, and the steps before it only once`, () =>
    engine.withUrl(async (url, connect) => {
      const other = await connect();
      await other.connection.query('CREATE TABLE a (id int)');
      await other.connection.query('CREATE TABLE b (id int)');
      const insert = (id: number) =>
        [engine.dialect.name, `INSERT INTO a VALUES (${id})`, { transaction: false }] as const;
      const defined = [
        migration('20260101_000000_both')
          .raw(...insert(1))
          .addField('b', { name: 'n', type: 'integer' })
          .raw(...insert(2))
          .build(),
      ].map(definedInCode);
      const impatient = await connectTarget(engine.dialect, url, { lockRetries: 0, lockTimeoutMs: 10 });
      try {
        await other.connection.query('BEGIN');
        await other.connection.query('SELECT * FROM b');
        const error = await expectError(migrate(impatient, defined), 'table_locked');
        assert.match(error.why ?? '', /"b" is locked by session \d+ \(.*idle in transaction/);
        assert.match(error.why ?? '', /since \d{4}-\d\d-\d\dT/);
        const [holder] = error.details.blockedBy as Record<string, string>[];
        const [own] = await other.connection.query(
          engine.dialect.name === 'postgresql' ? 'SELECT pg_backend_pid() AS id' : 'SELECT CONNECTION_ID() AS id',
        );
        assert.equal(holder?.id, String(own?.id));
        assert.equal(error.details.table, 'b');
        assert.ok(error.next.some((line) => line.includes(String(own?.id))));
        assert.match(error.state ?? '', /1 of 3 steps are committed; the next run continues/);
        assert.equal((await status(impatient, defined)).entries[0]?.state, 'interrupted');
        await other.connection.query('COMMIT');
        await migrate(impatient, defined);
        assert.equal((await status(impatient, defined)).state, 'OK');
        const rows = await other.connection.query('SELECT id FROM a ORDER BY id');
        assert.deepEqual(
          rows.map(({ id }) => Number(id)),
          [1, 2],
        );
      } finally {
        await impatient.connection.close();
      }
    }));

  test(
    `${engine.name}: a locked table has an exit status of its own, and says who is waited for`,
    () =>
      engine.withUrl(async (url, connect) => {
        const other = await connect();
        await other.connection.query('CREATE TABLE b (id int)');
        const shop = project(
          {},
          {
            databases: {
              main: { dialect: engine.dialect.name, url, options: { lockRetries: 1, lockTimeoutMs: 10 } },
            },
          },
        );
        const one = migration('20260101_000000_more').addField('b', { name: 'n', type: 'integer' }).build();
        shop.write(`svc/database/migrations/main/${one.tag}.json`, one);
        await other.connection.query('BEGIN');
        await other.connection.query('SELECT * FROM b');
        const { stderr } = assertExit(await shop.svc('db', 'migrate'), 10);
        assert.match(stderr, /^ {2}waiting for a lock on b: session \d+ \(.*idle in transaction/m);
        assert.match(stderr, /table_locked/);
        const refused = json(assertExit(await shop.svc('db', 'migrate', '--json'), 10));
        assert.equal(refused.code, 'table_locked');
        assert.equal(refused.details.blockedBy.length, 1);
        await other.connection.query('COMMIT');
        assertExit(await shop.svc('db', 'migrate'));
      }),
    LONG,
  );

  test(`${engine.name}: an interrupted run stops waiting for a table`, () =>
    engine.withUrl(async (url, connect) => {
      const other = await connect();
      await other.connection.query('CREATE TABLE b (id int)');
      const defined = [
        migration('20260101_000000_more').addField('b', { name: 'n', type: 'integer' }).build(),
        migration('20260102_000000_other')
          .createCollection('c', [{ name: 'id', type: 'integer' }])
          .build(),
      ].map(definedInCode);
      const waiting = await connectTarget(engine.dialect, url, { lockRetries: 1_000_000, lockTimeoutMs: 10 });
      const stop = new AbortController();
      const onEvent: RunOptions['onEvent'] = ({ type }) => type === 'started' && stop.abort();
      try {
        await other.connection.query('BEGIN');
        await other.connection.query('SELECT * FROM b');
        const error = await expectError(migrate(waiting, defined, { signal: stop.signal, onEvent }), 'interrupted');
        assert.match(error.why ?? '', /holds a lock/);
        assert.equal(error.state, 'None of it took effect; 0 of 2 migrations are applied.');
        assert.deepEqual(error.next, ['svc db migrate']);
        await other.connection.query('COMMIT');
        assert.deepEqual([...(await other.connection.introspect()).keys()], ['b']);
        await migrate(waiting, defined);
        assert.equal((await status(waiting, defined)).state, 'OK');
      } finally {
        await waiting.connection.close();
      }
    }));
}
