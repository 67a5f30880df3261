import * as assert from 'node:assert/strict';
import pg from 'pg';
import { migrate } from '../core/migration/migrate.ts';
import { resolveMigration } from '../core/migration/resolve.ts';
import type { MigrationOperation } from '../core/schema/operation.ts';
import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { runFill } from '../plugins/dialects/postgresql/run/fill.ts';
import type { ExecSql } from '../plugins/dialects/sql/session.ts';
import { INDEX, migration, withOwner, withRows } from './kit/online-rows.ts';
import { unavailable } from './kit/postgresql.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';

/** What the rows of a table, its triggers and its policies do to a change online. */

const missing = await unavailable();
const ROWS = 50;

const computed = (expression: string, required = false): MigrationOperation => ({
  type: 'addField',
  collection: 'rows',
  field: { name: 'copy', type: 'integer', default: { $expression: expression }, ...(required && { required }) },
});
const COUNT = 'SELECT count(copy)::int AS filled, count(*)::int AS rows FROM rows';

if (missing) test.skip('PostgreSQL: fills online', missing);
else {
  test('PostgreSQL: every row is filled, also where others move rows during it', async () => {
    await withRows(5_000, async ({ database, sent }) => {
      // Each row that is filled moves another one, maybe to a page that was passed.
      await database.query(`CREATE FUNCTION move() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          IF pg_trigger_depth() = 1 THEN UPDATE rows SET n = n + 1 WHERE id = 5001 - NEW.id; END IF;
          RETURN NULL; END $$;
        CREATE TRIGGER move AFTER UPDATE ON rows FOR EACH ROW WHEN (NEW.id % 7 = 0) EXECUTE FUNCTION move()`);
      await sent(migration([computed('1 + 2', true)], true));
      assert.deepEqual(await database.query(COUNT), [{ filled: 5_000, rows: 5_000 }]);
    });
  });

  test('PostgreSQL: a default that is null leaves the rows without a value', async () => {
    await withRows(ROWS, async ({ database, sent }) => {
      await sent(migration([computed('NULLIF(1, 1)')], true));
      assert.deepEqual(await database.query(COUNT), [{ filled: 0, rows: ROWS }]);
    });
  });

  test('PostgreSQL: rows that a trigger keeps from being filled are an error, and a retry continues', async () => {
    await withRows(ROWS, async ({ database, target, sent }) => {
      await database.query(`CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
        CREATE TRIGGER keep BEFORE UPDATE ON rows FOR EACH ROW EXECUTE FUNCTION keep()`);
      const change = migration([computed('1 + 2')], true);
      await assert.rejects(sent(change), {
        code: 'migration_half_done',
        why: /could not be given a value in "copy"/,
      });
      await database.query('DROP TRIGGER keep ON rows');
      await resolveMigration(target, change.tag, 'retry');
      assert.deepEqual(await database.query(COUNT), [{ filled: ROWS, rows: ROWS }]);
    });
  });

  test('PostgreSQL: rows that a policy hides from the owner are not left out in silence', async () => {
    await withRows(ROWS, async ({ database, after }) =>
      withOwner(database, async (target) => {
        await database.query(`ALTER TABLE rows ENABLE ROW LEVEL SECURITY; ALTER TABLE rows FORCE ROW LEVEL SECURITY;
          CREATE POLICY few ON rows USING (id > 10)`);
        await assert.rejects(migrate(target, after(migration([computed('1 + 2')], true))), {
          code: 'permission_denied',
          why: /row-level security policy/,
          state: 'Nothing was changed.',
        });
      }),
    );
  });

  test('PostgreSQL: a refused change has had no effect, also on a table that was changed by hand', async () => {
    await withRows(ROWS, async ({ database, sent }) => {
      await database.query('CREATE INDEX by_hand ON rows (n); UPDATE rows SET n = NULL WHERE id = 3');
      const required = { type: 'modifyField', collection: 'rows', field: 'n', changes: { required: true } } as const;
      await assert.rejects(sent(migration([required], true)), {
        code: 'data_violates',
        state: 'Nothing was changed.',
      });
      await sent(migration([INDEX], true));
    });
  });

  test('PostgreSQL: no batch of a fill is larger than it may be, also where the table grows and in its children', async () => {
    await withRows(5_000, async ({ database }) => {
      await database.query(`ALTER TABLE rows ADD COLUMN copy integer; CREATE TABLE children () INHERITS (rows);
        INSERT INTO children (id, n) SELECT n, n FROM generate_series(1, 40000) n`);
      const client = new pg.Client(database.url);
      await client.connect();
      const updates: string[] = [];
      const exec: ExecSql = async (text) => {
        if (text.startsWith('UPDATE')) updates.push(text);
        const results = [await client.query(text)].flat();
        return results.map(({ rows, rowCount }) => ({ rows, count: rowCount ?? 0 }));
      };
      const settings = { lockTimeoutMs: 500, lockRetries: 0, statementTimeoutMs: 0, onProgress: undefined };
      const fill = { kind: 'fill', table: 'rows', column: 'copy', value: '3', isNullable: false } as const;
      try {
        await runFill({ exec, schema: 'public.', settings, shouldStop: () => false }, fill);
      } finally {
        await client.end();
      }
      assert.deepEqual(await database.query(COUNT), [{ filled: 45_000, rows: 45_000 }]);
      const pages = updates.map((text) =>
        /ctid >= '\((\d+),0\)' AND ctid < '\((\d+),0\)'$/.exec(text)?.slice(1).map(Number),
      );
      for (const [from = Number.NaN, to = Number.NaN] of pages.map((found) => found ?? []))
        assert.ok(to - from <= 16_384, updates.join('\n'));
      const ofChildren = updates.filter((text) => text.startsWith('UPDATE ONLY public.children '));
      assert.ok(ofChildren.length > 1, updates.join('\n'));
    });
  });

  test('PostgreSQL: a batch that statementTimeoutMs cancels is tried again with fewer rows', async () => {
    await withRows(1, async ({ database, after }) => {
      await database.query(`ALTER TABLE rows SET (fillfactor = 10);
        INSERT INTO rows (n) SELECT generate_series(2, 400);
        CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.002); RETURN NEW; END $$;
        CREATE TRIGGER slow BEFORE UPDATE ON rows FOR EACH ROW EXECUTE FUNCTION slow()`);
      const limited = await connectTarget(postgresql, database.url, { statementTimeoutMs: 400 });
      try {
        await migrate(limited, after(migration([computed('1 + 2')], true)));
      } finally {
        await limited.connection.close();
      }
      assert.deepEqual(await database.query(COUNT), [{ filled: 400, rows: 400 }]);
    });
  });
}
