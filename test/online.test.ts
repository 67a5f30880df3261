import * as assert from 'node:assert/strict';
import pg from 'pg';
import { MigrationBuilder } from '../core/migration/builder.ts';
import { migrate } from '../core/migration/migrate.ts';
import { previewMigrate } from '../core/migration/preview.ts';
import { lockText } from '../core/migration/preview-statements.ts';
import type { MigrationOperation } from '../core/schema/operation.ts';
import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { ID, INDEX, migration, N, withRows } from './kit/online-rows.ts';
import { unavailable } from './kit/postgresql.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { waitUntil } from './suites/wait-until.ts';

const missing = await unavailable();
const LARGE_ROWS = 10_000;

const LOCK = 77;
/** Waits for a lock of the test, for the rows that are there before it begins. */
const HOLD = `CREATE FUNCTION held(n integer) RETURNS integer IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
  WHILE n < 1000 AND NOT pg_try_advisory_xact_lock_shared(${LOCK}) LOOP PERFORM pg_sleep(0.01); END LOOP;
  RETURN n; END $$`;

const isConcurrent = (texts: readonly string[]): boolean => texts.some((text) => text.includes('CONCURRENTLY'));

if (missing) test.skip('PostgreSQL: changes online', missing);
else {
  test('PostgreSQL: a table with more than 10,000 rows is changed online, and no other', async () => {
    for (const rows of [LARGE_ROWS, LARGE_ROWS + 1])
      await withRows(rows, async ({ sent }) => {
        assert.equal(isConcurrent(await sent(migration([INDEX]))), rows > LARGE_ROWS, `${rows} rows`);
      });
  });

  test('PostgreSQL: a migration says whether its tables are changed online', async () => {
    await withRows(LARGE_ROWS + 1, async ({ sent }) => {
      assert.ok(!isConcurrent(await sent(migration([INDEX], false))));
    });
    await withRows(1, async ({ sent }) => {
      const built = new MigrationBuilder('20260102_000000_built')
        .online()
        .createIndex('rows', 'rows_n', [{ name: 'n' }])
        .build();
      assert.equal(built.online, true);
      assert.ok(isConcurrent(await sent(built)));
    });
  });

  test('PostgreSQL: a table that the run has created is not changed online, and one that it has renamed is', async () => {
    await withRows(LARGE_ROWS + 1, async ({ sent }) => {
      const created = [
        { type: 'createCollection', name: 'more', fields: [ID, N] },
        { ...INDEX, collection: 'more', index: 'more_n' },
      ] as const;
      assert.ok(!isConcurrent(await sent(migration(created, true))));
      const renamed = migration([{ type: 'renameCollection', collection: 'rows', to: 'lines' }]);
      assert.ok(isConcurrent(await sent(renamed, migration([{ ...INDEX, collection: 'lines' }]))));
    });
  });

  const field = { collection: 'rows', field: 'n' } as const;
  const CHANGES: readonly (readonly [name: string, operation: MigrationOperation, sent: readonly string[]])[] = [
    [
      'a foreign key',
      {
        type: 'addConstraint',
        collection: 'rows',
        constraint: {
          name: 'rows_parent',
          type: 'foreignKey',
          columns: ['n'],
          references: { table: 'rows', columns: ['id'] },
        },
      },
      [
        'SELECT FROM ONLY "rows" AS t WHERE t."n" IS NOT NULL AND NOT EXISTS (SELECT FROM "rows" AS r WHERE r."id" = t."n") LIMIT 1 -- finds no row',
        'ALTER TABLE "rows" ADD CONSTRAINT "rows_parent" FOREIGN KEY ("n") REFERENCES "rows" ("id") NOT VALID',
        'ALTER TABLE "rows" VALIDATE CONSTRAINT "rows_parent"',
      ],
    ],
    [
      'a unique constraint with options',
      {
        type: 'addConstraint',
        collection: 'rows',
        constraint: {
          name: 'rows_one',
          type: 'unique',
          columns: ['n'],
          native: 'INCLUDE (id) WITH (fillfactor=80) DEFERRABLE INITIALLY DEFERRED',
        },
      },
      [
        'CREATE UNIQUE INDEX CONCURRENTLY "rows_one" ON "rows" ("n") INCLUDE (id) WITH (fillfactor=80)',
        'ALTER TABLE "rows" ADD CONSTRAINT "rows_one" UNIQUE USING INDEX "rows_one" DEFERRABLE INITIALLY DEFERRED',
      ],
    ],
    [
      'a required field',
      { type: 'modifyField', ...field, changes: { required: true } },
      [
        'SELECT FROM "rows" WHERE "n" IS NULL LIMIT 1 -- finds no row',
        'ALTER TABLE "rows" DROP CONSTRAINT IF EXISTS "rows_n_svc_required_check", ADD CONSTRAINT "rows_n_svc_required_check" CHECK ("n" IS NOT NULL) NOT VALID',
        'ALTER TABLE "rows" VALIDATE CONSTRAINT "rows_n_svc_required_check"',
        'ALTER TABLE "rows" ALTER COLUMN "n" SET NOT NULL',
        'ALTER TABLE "rows" DROP CONSTRAINT "rows_n_svc_required_check"',
      ],
    ],
    [
      'a field that the server computes for each row',
      {
        type: 'addField',
        collection: 'rows',
        field: { name: 'token', type: 'uuid', autoGenerate: true, unique: true },
      },
      [
        'ALTER TABLE "rows" ADD COLUMN "token" uuid',
        'ALTER TABLE "rows" ALTER COLUMN "token" SET DEFAULT gen_random_uuid()',
        'UPDATE "rows" SET "token" = gen_random_uuid() WHERE "token" IS NULL -- in batches',
        'CREATE UNIQUE INDEX CONCURRENTLY "rows_token_key" ON "rows" ("token")',
        'ALTER TABLE "rows" ADD CONSTRAINT "rows_token_key" UNIQUE USING INDEX "rows_token_key"',
      ],
    ],
    [
      'a field with the same value for all',
      { type: 'addField', collection: 'rows', field: { name: 'same', type: 'string', required: true, default: 'x' } },
      ['ALTER TABLE "rows" ADD COLUMN "same" varchar(255) NOT NULL DEFAULT \'x\''],
    ],
    [
      'a longer text',
      { type: 'modifyField', collection: 'rows', field: 'same', changes: { length: 300, unique: false } },
      [
        'ALTER TABLE "rows" ALTER COLUMN "same" DROP DEFAULT, ALTER COLUMN "same" TYPE varchar(300), ALTER COLUMN "same" SET DEFAULT \'x\'',
      ],
    ],
    [
      'a dropped index',
      { type: 'dropIndex', collection: 'rows', index: 'rows_n' },
      ['DROP INDEX CONCURRENTLY "rows_n"'],
    ],
  ];
  test('PostgreSQL: no statement reads all rows under a lock that blocks others', async () => {
    await withRows(50, async ({ sent }) => {
      await sent(migration([INDEX]));
      for (const [name, operation, expected] of CHANGES)
        assert.deepEqual(await sent(migration([operation], true)), expected, name);
    });
  });

  test('PostgreSQL: rows that violate a change online are found before anything has changed', async () => {
    await withRows(50, async ({ database, target, sent }) => {
      await database.query(
        'UPDATE rows SET n = NULL WHERE id = 3; UPDATE rows SET n = 2 WHERE id = 4; UPDATE rows SET n = 99 WHERE id = 5',
      );
      const before = await target.connection.introspect();
      const violated = [CHANGES[0], CHANGES[1], CHANGES[2]].map((change) => change![1]);
      for (const operation of violated) {
        const wrong = migration([operation], true);
        await assert.rejects(sent(wrong), {
          code: 'data_violates',
          state: /^Nothing was changed|^None of it took effect/,
        });
        assert.deepEqual(await target.connection.introspect(), before);
        const history = await database.query(`SELECT FROM _svc_migrations WHERE tag = '${wrong.tag}'`);
        assert.deepEqual(history, []);
      }
    });
  });

  test('PostgreSQL: rows that a later change of the run does not allow are found before the first one', async () => {
    await withRows(50, async ({ database, target, sent, after }) => {
      const earlier = migration([{ type: 'addField', collection: 'rows', field: { name: 'a', type: 'integer' } }]);
      const wrong = migration([INDEX, CHANGES[2]?.[1] ?? assert.fail()], true);
      const fixed = migration(
        [
          { type: 'raw', dialect: 'postgresql', statement: 'UPDATE rows SET n = 1 WHERE n IS NULL', makes: [] },
          ...wrong.up,
        ],
        true,
      );
      await database.query('UPDATE rows SET n = NULL WHERE id = 3');
      const before = await target.connection.introspect();
      const [, shown] = await previewMigrate(target, after(earlier, wrong));
      assert.deepEqual(
        shown?.statements.map(({ failure }) => (failure as { code?: string } | undefined)?.code),
        [undefined, 'data_violates', undefined, undefined, undefined, undefined],
      );
      await assert.rejects(sent(earlier, wrong), { code: 'data_violates', state: 'Nothing was changed.' });
      assert.deepEqual(await target.connection.introspect(), before);
      await sent(earlier, fixed);
    });
  });

  const WIDER = { type: 'modifyField', ...field, changes: { type: 'bigint' } } as const;
  const NUMBERED = {
    type: 'addField',
    collection: 'rows',
    field: { name: 'number', type: 'integer', autoGenerate: true },
  } as const;
  test('PostgreSQL: a change that writes all rows of a large table under a lock needs leave', async () => {
    await withRows(LARGE_ROWS + 1, async ({ target, sent, after }) => {
      for (const operation of [WIDER, NUMBERED]) {
        await assert.rejects(sent(migration([operation])), {
          code: 'copy_required',
          message: 'The table "rows" would have to be copied, with its about 10,001 rows.',
          state: 'Nothing was changed.',
        });
      }
      const shown = await previewMigrate(target, after(migration([WIDER])));
      assert.deepEqual(
        shown.flatMap(({ statements }) => statements.map(({ copy }) => copy)),
        [{ statement: 0, collection: 'rows', rows: LARGE_ROWS + 1, isEstimate: true, isPermitted: false }],
      );
      await sent({ ...migration([WIDER]), allow: ['copy'] });
      await sent(migration([NUMBERED], false));
    });
    await withRows(LARGE_ROWS, async ({ sent }) => {
      await sent(migration([WIDER, NUMBERED]));
    });
  });

  test('PostgreSQL: a dry run says what each statement does to others that use a large table', async () => {
    await withRows(LARGE_ROWS + 1, async ({ database, target, after }) => {
      await database.query('ANALYZE');
      const locksOf = async (operation: MigrationOperation, online: boolean) => {
        const [planned] = await previewMigrate(target, after(migration([operation], online)));
        return planned?.statements.map(({ lock }) => lock && `${lock.blocks}, ${lock.work}`);
      };
      const key = CHANGES[0]?.[1] ?? assert.fail();
      assert.deepEqual(await locksOf(INDEX, false), ['writes, read']);
      assert.deepEqual(await locksOf(INDEX, true), ['nothing, read']);
      assert.deepEqual(await locksOf(key, false), ['writes, read']);
      assert.deepEqual(await locksOf(key, true), ['nothing, read', 'writes, none', 'nothing, read']);
      assert.deepEqual(await locksOf(WIDER, false), ['reads and writes, write']);
      assert.deepEqual(await locksOf(NUMBERED, false), ['reads and writes, write']);
      const renamed = { type: 'renameField', collection: 'rows', from: 'n', to: 'm' } as const;
      assert.deepEqual(await locksOf(renamed, true), ['reads and writes, none']);
      const [shown] = await previewMigrate(target, after(migration([INDEX], false)));
      const [statement] = shown?.statements ?? [];
      assert.equal(
        statement?.lock && lockText(statement.lock),
        '"rows" (about 10,001 rows): blocks writes while its rows are read, about 1 s',
      );
    });
    await withRows(50, async ({ target, after }) => {
      const [planned] = await previewMigrate(target, after(migration([INDEX])));
      assert.deepEqual(
        planned?.statements.map(({ lock }) => lock),
        [undefined],
      );
    });
  });

  test('PostgreSQL: a statement that takes longer than statementTimeoutMs is canceled', async () => {
    await withRows(1, async ({ database, sent, after }) => {
      const slow = migration([{ type: 'raw', dialect: 'postgresql', statement: 'SELECT pg_sleep(60)', makes: [] }]);
      const limited = await connectTarget(postgresql, database.url, { statementTimeoutMs: 50 });
      const error = { code: 'statement_canceled', state: /^None of it took effect/ };
      await assert.rejects(migrate(limited, after(slow)), error);
      await limited.connection.close();
      await sent(migration([INDEX]));
    });
  });

  const HELD: readonly (readonly [name: string, operation: MigrationOperation])[] = [
    ['an index', { ...INDEX, columns: [], native: '(held(n))' }],
    [
      'a check',
      {
        type: 'addConstraint',
        collection: 'rows',
        constraint: { name: 'rows_held', type: 'check', columns: ['n'], expression: 'held(n) > 0' },
      },
    ],
    [
      'a computed field',
      {
        type: 'addField',
        collection: 'rows',
        field: { name: 'copy', type: 'integer', default: { $expression: 'held(1)' }, required: true },
      },
    ],
  ];
  for (const [name, operation] of HELD) {
    test(`PostgreSQL: while ${name} is added, others read and write the table`, async () => {
      await withRows(50, async ({ database, sent }) => {
        await database.query(HOLD);
        const holder = new pg.Client(database.url);
        await holder.connect();
        await holder.query(`SELECT pg_advisory_lock(${LOCK})`);
        const changing = sent(migration([operation], true));
        changing.catch(() => undefined);
        await waitUntil(async () => {
          const waiting = await database.query(
            "SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()",
          );
          return waiting.length > 0;
        }, 'no statement calls held()');
        await database.query("SET lock_timeout = '5s'; UPDATE rows SET n = n + 1000 WHERE id = 50 RETURNING n");
        await holder.end();
        await changing;
        assert.deepEqual(await database.query('SELECT n FROM rows WHERE id = 50'), [{ n: 1050 }]);
      });
    });
  }
}
