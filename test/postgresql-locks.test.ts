import * as assert from 'node:assert/strict';
import { generate } from '../config/project/generate.ts';
import { schemaEntry } from '../config/project/schema-file.ts';
import { migrate } from '../core/migration/migrate.ts';
import { previewMigrate } from '../core/migration/preview.ts';
import { status } from '../core/migration/status.ts';
import { invertAll } from '../core/schema/invert.ts';
import { modelOperations } from '../core/schema/model-operations.ts';
import { countLocks } from '../plugins/dialects/postgresql/compile/lock-count.ts';
import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { assertFullyMigrated, definedInCode } from './kit/migrations.ts';
import { type OwnServer, ownServer, unavailable } from './kit/own-postgresql.ts';
import { freshDatabase, unavailable as noServer } from './kit/postgresql.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

/** A migration that needs more locks in one transaction than a server holds, such as one of thousands of tables. */

const TABLES = 3000;

const tables = Object.fromEntries(
  Array.from({ length: TABLES }, (_, index) => [
    `t${String(index).padStart(4, '0')}`,
    {
      id: { type: 'integer', primaryKey: true, autoGenerate: true },
      name: { type: 'string', required: true },
    } as const,
  ]),
);

const generated = await generate({
  dialect: postgresql,
  files: [],
  entry: schemaEntry('main', { tables }),
  now: new Date('2026-01-01T00:00:00Z'),
  rename: [],
  drop: [],
});
const split = generated.map(({ migration }) => migration);
const up = split.flatMap((migration) => migration.up);
const whole = { tag: '20260101_000000_whole', name: 'whole', up, down: invertAll(up, new Map()) };

test('generated migrations need no more locks than a server with default settings holds', () => {
  const limit = postgresql.capabilities.transactionLocks?.perMigration ?? 0;
  const locks = split.map((migration) =>
    modelOperations(migration.up, 'postgresql').reduce((sum, one) => sum + countLocks(one, new Map()), 0),
  );
  assert.ok(locks.length > 1);
  assert.ok(
    locks.every((count) => count <= limit),
    `${locks}`,
  );
  assert.deepEqual(
    split.flatMap((migration) => migration.up.map((operation) => 'name' in operation && operation.name)),
    Object.keys(tables),
  );
  assert.deepEqual(
    [...new Set(split.map(({ tag }) => tag))].sort(),
    split.map(({ tag }) => tag),
  );
});

if (unavailable() !== undefined) test.skip('a migration that is too large', String(unavailable()));
else
  test(
    'a migration that is too large for the server is rejected before it begins, and applied in parts',
    async () => {
      const server: OwnServer = await ownServer();
      const target = await connectTarget(postgresql, server.url());
      try {
        const defined = [definedInCode(whole)];
        for (const attempt of [migrate, previewMigrate]) {
          const error = await expectError(attempt(target, defined), 'migration_too_large');
          assert.equal(error.message, '"20260101_000000_whole" needs about 15000 locks in one transaction.');
          assert.match(
            error.why ?? '',
            /no room for 15010 locks: max_locks_per_transaction is 64, max_connections 100/,
          );
          assert.equal(error.state, 'Nothing was changed.');
          assert.match(error.next.join('\n'), /svc db schema generate[\s\S]*max_locks_per_transaction to 151 or more/);
        }
        assert.equal((await status(target, defined)).state, 'PENDING');
        assert.deepEqual(await server.query("SELECT tablename FROM pg_tables WHERE tablename LIKE 't0%'"), []);
        assert.deepEqual(await server.query("SELECT * FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2"), []);
        await migrate(target, split.map(definedInCode));
        await assertFullyMigrated(target, split);
      } finally {
        await target.connection.close();
        await server.remove();
      }
    },
    { timeoutMs: 300_000 },
  );

if (noServer !== undefined && (await noServer()) !== undefined) {
  test.skip('the number of locks', 'no server');
} else
  test('locks are counted as the server counts them', async () => {
    const { url, drop } = await freshDatabase();
    const target = await connectTarget(postgresql, url);
    const { connection } = target;
    const id = { name: 'id', type: 'integer', primaryKey: true } as const;
    const cases = {
      plain: [id],
      generated: [{ ...id, autoGenerate: true }],
      keys: [id, { name: 'mail', type: 'string', unique: true }],
      enum: [id, { name: 'mood', type: 'enum', enumValues: ['good', 'bad'] }],
      text: [id, { name: 'note', type: 'text' }],
      json: [id, { name: 'data', type: 'json' }],
      bytes: [id, { name: 'data', type: 'blob' }],
      times: [
        id,
        { name: 'at', type: 'timestamp', default: 'now' },
        { name: 'price', type: 'decimal', precision: 9, scale: 2 },
      ],
    } as const;
    const held =
      "SELECT count(DISTINCT concat_ws(' ', locktype, relation, classid, objid)) AS n FROM pg_locks WHERE pid = pg_backend_pid()";
    try {
      for (const [name, fields] of Object.entries(cases)) {
        const create = { type: 'createCollection', name, fields } as const;
        const [statement] = postgresql.compile(create, new Map());
        assert.ok(statement);
        await connection.query('BEGIN');
        // The first table also locks the schema and a transaction id.
        await connection.query('CREATE TABLE first (n int)');
        const before = Number((await connection.query(held))[0]?.n);
        await connection.query(statement.text);
        const after = Number((await connection.query(held))[0]?.n);
        await connection.query('ROLLBACK');
        assert.equal(countLocks(create, new Map()), after - before, name);
      }
    } finally {
      await connection.close();
      await drop();
    }
  });
