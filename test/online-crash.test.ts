import * as assert from 'node:assert/strict';
import { migrate } from '../core/migration/migrate.ts';
import type { Operation } from '../core/schema/operation.ts';
import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { callsToInterrupt, everyCall } from './kit/every-call.ts';
import { mapConcurrently } from './kit/map-concurrently.ts';
import { assertFullyMigrated, definedInCode } from './kit/migrations.ts';
import { prepareMigrators } from './kit/migrators.ts';
import { freshDatabase, type PostgresqlTestDatabase, unavailable } from './kit/postgresql.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';

/*
 * A process that changes tables online is killed before each query that it sends, while another one writes to the tables. The next run finishes:
 * nothing invalid is left, and no row is lost or refused.
 */

const missing = await unavailable();
const EVERY = 6;
const ROWS = 300;
/** The connection finds its tables there, and the search_path of others. */
const IN_SCHEMA = { schema: 'app $$ "1"', createSchema: true } as const;

const ID = { name: 'id', type: 'bigint', primaryKey: true, autoGenerate: true } as const;
const SETUP = {
  tag: '20260101_000000_setup',
  name: 'setup',
  up: [
    { type: 'createCollection', name: 'people', fields: [ID] },
    {
      type: 'createCollection',
      name: 'orders',
      fields: [
        ID,
        { name: 'buyer', type: 'bigint' },
        { name: 'code', type: 'string', length: 40 },
        { name: 'status', type: 'enum', enumValues: ['open', 'paid'] },
        { name: 'total', type: 'integer' },
      ],
    },
    { type: 'createCollection', name: 'visits', fields: [{ name: 'at', type: 'bigint', required: true }] },
    { type: 'createIndex', collection: 'orders', index: 'orders_old', columns: [{ name: 'total' }] },
  ],
  down: [],
  irreversible: 'It is not needed.',
} as const;

const orders = { collection: 'orders' } as const;
const CHANGES: readonly Operation[] = [
  { type: 'createIndex', ...orders, index: 'orders_by_buyer', columns: [{ name: 'buyer' }] },
  {
    type: 'addConstraint',
    ...orders,
    constraint: {
      name: 'orders_buyer',
      type: 'foreignKey',
      columns: ['buyer'],
      references: { table: 'people', columns: ['id'] },
    },
  },
  {
    type: 'addConstraint',
    ...orders,
    constraint: { name: 'orders_total', type: 'check', columns: ['total'], expression: 'total > 0' },
  },
  { type: 'addConstraint', ...orders, constraint: { name: 'orders_code', type: 'unique', columns: ['code'] } },
  {
    type: 'modifyField',
    ...orders,
    field: 'status',
    changes: { enumValues: ['open', 'paid', 'gone'], required: true },
  },
  { type: 'modifyField', ...orders, field: 'total', changes: { required: true } },
  {
    type: 'addField',
    ...orders,
    field: { name: 'token', type: 'uuid', autoGenerate: true, required: true, unique: true },
  },
  {
    type: 'addField',
    ...orders,
    field: { name: 'label', type: 'string', length: 40, required: true },
    mirrors: 'code',
  },
  { type: 'addField', ...orders, field: { name: 'sum', type: 'integer' }, mirrors: 'total' },
  { type: 'dropField', ...orders, field: 'sum', mirrors: 'total' },
  { type: 'dropIndex', ...orders, index: 'orders_old' },
  {
    type: 'addConstraint',
    collection: 'visits',
    constraint: { name: 'visits_key', type: 'primaryKey', columns: ['at'] },
  },
];
const MIGRATIONS = CHANGES.map((operation, index) => ({
  tag: `202602${index + 10}_000000_${operation.type}`,
  name: operation.type,
  online: true,
  up: [operation],
  down: [],
  irreversible: 'It is not needed.',
}));

const LEFTOVERS = `SELECT conname AS name FROM pg_constraint WHERE NOT convalidated OR conname LIKE '%required_check'
  UNION ALL SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisvalid`;

async function withFilledTables(work: (database: PostgresqlTestDatabase) => Promise<void>): Promise<void> {
  const database = await freshDatabase();
  try {
    const target = await connectTarget(postgresql, database.url, IN_SCHEMA);
    await migrate(target, [definedInCode(SETUP)]);
    await target.connection.close();
    await database.alter('SET search_path TO "app $$ ""1"""');
    await database.query(`INSERT INTO people SELECT FROM generate_series(1, ${ROWS});
      INSERT INTO orders (buyer, code, status, total) SELECT n, 'c' || n, 'open', n FROM generate_series(1, ${ROWS}) n;
      INSERT INTO visits SELECT generate_series(1, ${ROWS})`);
    await work(database);
  } finally {
    await database.drop();
  }
}

/** Inserts and changes rows until it is stopped. Returns the number of rows inserted. */
function keepWriting(database: PostgresqlTestDatabase): { stop(): Promise<number> } {
  let isStopped = false;
  const writing = (async () => {
    let inserted = 0;
    while (!isStopped) {
      inserted += 1;
      await database.query(
        `INSERT INTO orders (buyer, code, status, total) VALUES (1, 'w${inserted}', 'paid', 5);
        UPDATE orders SET total = total + 1 WHERE id = 1 + ${inserted} % ${ROWS};
        INSERT INTO visits VALUES (${ROWS + inserted})`,
      );
    }
    return inserted;
  })();
  writing.catch(() => undefined);
  return {
    stop: () => {
      isStopped = true;
      return writing;
    },
  };
}

async function finish(database: PostgresqlTestDatabase): Promise<void> {
  const target = await connectTarget(postgresql, database.url, IN_SCHEMA);
  try {
    const all = [SETUP, ...MIGRATIONS];
    await migrate(target, all.map(definedInCode));
    await assertFullyMigrated(target, all);
  } finally {
    await target.connection.close();
  }
}

if (missing) test.skip('PostgreSQL: kills during changes online', missing);
else {
  const prepared = prepareMigrators('postgresql', [SETUP, ...MIGRATIONS]);
  test(
    'PostgreSQL: after a kill before any query of a change online, the next run completes, and writes are neither lost nor refused',
    async () => {
      const start = await prepared;
      let isFinished = false;
      let kills = 0;
      await mapConcurrently(
        callsToInterrupt(EVERY, () => isFinished),
        (at) =>
          withFilledTables(async (database) => {
            const writer = keepWriting(database);
            const { signal, code, err } = await start(database.url, at, { connect: IN_SCHEMA, countQueries: true })
              .ended;
            if (signal === 'SIGKILL') kills += 1;
            else {
              assert.equal(code, 0, err);
              isFinished = true;
            }
            await finish(database).catch((error) => {
              throw new Error(`killed before query ${at}: ${error}`, { cause: error });
            });
            const inserted = await writer.stop();
            assert.deepEqual(await database.query(LEFTOVERS), [], `killed before query ${at}`);
            const [count] = await database.query(
              'SELECT (SELECT count(*) FROM orders WHERE token IS NOT NULL)::int AS orders, (SELECT count(*) FROM visits)::int AS visits',
            );
            const differing = await database.query('SELECT id FROM orders WHERE label IS DISTINCT FROM code');
            assert.deepEqual(differing, [], `killed before query ${at}`);
            assert.deepEqual(count, { orders: ROWS + inserted, visits: ROWS + inserted }, `killed before query ${at}`);
          }),
      );
      assert.ok(kills >= Math.floor(40 / everyCall(EVERY)), `only ${kills} kills`);
    },
    { timeoutMs: 600_000 },
  );
}
