import assert from 'node:assert/strict';
import { PGlite } from '@electric-sql/pglite';
import type { Connection, Operation, RecordDefinition, SchemaModel, Statement } from '@svc/sdk';
import {
  anyDefinition,
  apply,
  CLOCK,
  engineErrors,
  type RecordWrite,
  readRecordColumn,
  type SqlServer,
  type SqlServerStep,
  STANDARD_TYPES,
  sqlServerDialect,
  UNSUPPORTED_BY_SQL_SERVER,
} from '@svc/sdk/dialect';
import { isSvcError } from '../core/errors.ts';
import { test } from './kit/test.ts';
import { recordStoreSuite } from './suites/index.ts';
import { waitUntil } from './suites/wait-until.ts';

/** A dialect of `sqlServerDialect` with every word, over PostgreSQL, which accepts all of them. */

const database = new PGlite();
/** The statements of all sessions. */
const log: string[] = [];
/** The text of a statement that waits until a later one renews the lease. */
const SLOW = 'SELECT 1 AS slow';

async function open(): Promise<SqlServer> {
  return {
    server: 'Words',
    async exec(text) {
      log.push(text);
      if (text === SLOW) {
        const at = log.length;
        await waitUntil(
          () => log.slice(at).some((one) => one.startsWith('UPDATE "_svc_lock"')),
          'the lease is not renewed',
        );
      }
      const { rows, affectedRows = 0 } = await database.query<Readonly<Record<string, unknown>>>(text);
      return { rows, count: affectedRows };
    },
    async close() {},
  };
}

const RULES = `CASE confdeltype WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' ELSE 'NO ACTION' END`;
const words = sqlServerDialect({
  rules: { name: 'words', names: { max: 63, unit: 'bytes' }, unsupported: UNSUPPORTED_BY_SQL_SERVER },
  syntax: {
    types: {
      ...STANDARD_TYPES,
      text: 'TEXT',
      blob: 'BYTEA',
      json: 'JSON',
      uuid: 'UUID',
      enum: 'CHARACTER VARYING(63)',
    },
    now: { timestamp: 'CURRENT_TIMESTAMP' },
    currentTimestamp: 'clock_timestamp()',
    uuid: 'gen_random_uuid()',
    quoteLiteral: (value) => (typeof value === 'boolean' ? String(value) : undefined),
    alterColumn: ({ name, type, to, default: value }) => [
      `ALTER ${name} DROP DEFAULT`,
      `ALTER ${name} TYPE ${type} USING CAST(${name} AS ${type})`,
      ...(value === undefined ? [] : [`ALTER ${name} SET DEFAULT ${value}`]),
      `ALTER ${name} ${to.required ? 'SET' : 'DROP'} NOT NULL`,
    ],
    scratchTable: 'CREATE TEMPORARY TABLE',
    restrictIsNoAction: true,
    limit: (count) => `FETCH FIRST ${count} ROWS ONLY`,
    comparesRows: false,
    oneRow: '(VALUES (1)) AS dual',
    ifNotExists: false,
    textOrder: (text) => `convert_to(${text}, 'UTF8')`,
    addColumn: 'ADD',
    defaultFirst: true,
  },
  errors: engineErrors({
    engine: 'Words',
    messages: {
      field_exists: /column .* already exists/,
      collection_exists: /relation .* already exists/,
      collection_unknown: /relation .* does not exist/,
      data_violates: /^(duplicate key|null value|violates)|contains null values|could not create unique/,
    },
    duplicate: /^duplicate key/,
  }),
  // PGlite parses JSON.
  records: { read: (value, column) => (column.type === 'json' ? (value as null) : readRecordColumn(value, column)) },
  defaultPort: 1234,
  open,
  catalog: (only) => ({
    tables: `SELECT relname AS table_name FROM pg_class WHERE relkind = 'r' AND pg_table_is_visible(oid)
      AND relnamespace <> 'pg_catalog'::regnamespace AND relname ${only === undefined ? "NOT LIKE '\\_svc%'" : `= '${only}'`}`,
    columns: `SELECT c.relname AS "TABLE_NAME", a.attname AS column_name,
        upper(format_type(a.atttypid, a.atttypmod)) AS data_type, regexp_replace(pg_get_expr(d.adbin, d.adrelid), '::[a-z ]+$', '') AS column_default,
        NOT a.attnotnull AS is_nullable, a.attidentity <> '' AS is_identity
      FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
      LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
      WHERE c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`,
    constraints: `SELECT r.relname AS table_name, conname AS constraint_name, (SELECT attname FROM pg_attribute WHERE
        attrelid = conrelid AND attnum = conkey[n]) AS column_name, pg_get_expr(conbin, conrelid) AS check_clause,
        CASE contype WHEN 'p' THEN 'PRIMARY KEY' WHEN 'u' THEN 'UNIQUE' WHEN 'f' THEN 'FOREIGN KEY' ELSE 'CHECK' END
        AS constraint_type, t.relname AS target_table, ${RULES} AS delete_rule,
        (SELECT attname FROM pg_attribute WHERE attrelid = confrelid AND attnum = confkey[n]) AS target_column
      FROM pg_constraint JOIN pg_class r ON r.oid = conrelid LEFT JOIN pg_class t ON t.oid = confrelid,
        LATERAL generate_series(1, cardinality(conkey)) AS n WHERE contype IN ('p', 'u', 'f', 'c') ORDER BY n`,
    indexes: `SELECT t.relname AS table_name, i.relname AS index_name, attname AS column_name, indisunique AS is_unique
      FROM pg_index JOIN pg_class i ON i.oid = indexrelid JOIN pg_class t ON t.oid = indrelid
      JOIN pg_attribute a ON a.attrelid = indexrelid
      WHERE NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = indexrelid) ORDER BY attnum`,
  }),
});

const URL_OF_ALL = 'words://user@localhost/all';
const clear = () => database.exec('DROP SCHEMA public CASCADE; CREATE SCHEMA public');

/** Runs a test with a connection to an empty database. */
const testConnected = (name: string, work: (connection: Connection<SqlServerStep>) => Promise<void>) =>
  test(name, async () => {
    const connection = await words.connect(URL_OF_ALL, {});
    try {
      await work(connection);
    } finally {
      await connection.close();
      await clear();
    }
  });

recordStoreSuite(test, {
  name: 'every word of sqlServerDialect',
  createStore: async () => ({ connect: () => words.connect(URL_OF_ALL, {}), drop: async () => void (await clear()) }),
});

const schema = (operations: readonly Operation[], from: SchemaModel = new Map()): SchemaModel =>
  operations.reduce(apply, from);

async function run(
  connection: Connection<SqlServerStep>,
  operations: readonly Operation[],
  from: SchemaModel = new Map(),
  epoch = 0,
) {
  let model = from;
  for (const operation of operations) {
    const statements = words.compile(operation, model);
    const { failure } = await connection.run([{ transactional: false, statements, writes: [] }], epoch);
    if (failure) throw failure.error;
    model = apply(model, operation);
  }
}

const TEAMS: Operation = {
  type: 'createCollection',
  name: 'teams',
  fields: [
    { name: 'id', type: 'integer', primaryKey: true },
    { name: 'name', type: 'string', length: 40, unique: true, default: "it's", required: true },
  ],
};
const USERS: Operation = {
  type: 'createCollection',
  name: 'users',
  fields: [
    { name: 'id', type: 'integer', primaryKey: true, autoGenerate: true },
    { name: 'team', type: 'integer' },
    { name: 'role', type: 'enum', enumValues: ['admin', "o'guest"] },
    { name: 'age', type: 'text', default: { $expression: "'1' || '2'" } },
  ],
};
const MORE: readonly Operation[] = [
  {
    type: 'addConstraint',
    collection: 'users',
    constraint: {
      type: 'foreignKey',
      name: 'users_team',
      columns: ['team'],
      references: { table: 'teams', columns: ['id'], onDelete: 'CASCADE', onUpdate: 'RESTRICT' },
    },
  },
  {
    type: 'addConstraint',
    collection: 'users',
    constraint: { type: 'check', name: 'has_team', expression: '"team" > 0 OR "role" IS NULL' },
  },
  {
    type: 'createIndex',
    collection: 'users',
    index: 'by_role',
    columns: [{ name: 'role' }, { name: 'team' }],
    unique: true,
  },
  { type: 'addField', collection: 'users', field: { name: 'nick', type: 'string', length: 9, unique: true } },
  { type: 'renameField', collection: 'users', from: 'nick', to: 'alias' },
];

testConnected('a catalog of rows is read as the model that was created', async (connection) => {
  const operations = [TEAMS, USERS, ...MORE];
  await run(connection, operations);
  const expected = await connection.normalize(schema(operations));
  assert.deepEqual(await connection.introspect(), expected);
  assert.deepEqual(await connection.unsupportedObjects(), []);
  const retyped: Operation = {
    type: 'modifyField',
    collection: 'users',
    field: 'age',
    changes: { type: 'integer', default: 7, required: true },
  };
  await run(connection, [retyped], schema(operations));
  assert.deepEqual(await connection.introspect(), await connection.normalize(schema([...operations, retyped])));
  await connection.close();
});

const REFUSED: readonly (readonly [Operation, RegExp])[] = [
  [
    { type: 'createIndex', collection: 'users', index: 'by_age', columns: [{ name: 'age' }], unique: true },
    /"users" \(age\) that several rows have: 1$/,
  ],
  [{ type: 'modifyField', collection: 'users', field: 'age', changes: { unique: true } }, /that several rows have: 1$/],
  [
    { type: 'modifyField', collection: 'users', field: 'team', changes: { required: true } },
    /without a value of team: 1$/,
  ],
  [
    { type: 'modifyField', collection: 'users', field: 'age', changes: { type: 'integer' } },
    /another value as integer: 2$/,
  ],
  [
    { type: 'addField', collection: 'users', field: { name: 'mail', type: 'text', required: true } },
    /would have no value of mail: 3$/,
  ],
  [{ ...(MORE[0] as Operation & { type: 'addConstraint' }) }, /refer to no row of "teams": 1$/],
  [
    {
      type: 'addConstraint',
      collection: 'users',
      constraint: { type: 'check', name: 'few', expression: '"team" < 5' },
    },
    /violate few: 1$/,
  ],
];

testConnected(
  'rows that a change does not allow are found before the first statement, and by the statement itself',
  async (connection) => {
    await run(connection, [TEAMS, USERS]);
    await connection.query(`INSERT INTO "users" ("team", "age") VALUES (9, '007'), (1, '007'), (NULL, '8')`);
    await connection.query(`INSERT INTO "teams" ("id") VALUES (1)`);
    const model = schema([TEAMS, USERS]);
    const before = await connection.introspect();
    for (const [operation, why] of REFUSED) {
      const statements = words.compile(operation, model);
      const report = await connection.preflight?.(
        statements,
        statements.map(() => operation),
      );
      assert.deepEqual(
        report?.failures.map(({ error }) => why.test((error as { why: string }).why)),
        [true],
        String(why),
      );
      await assert.rejects(run(connection, [operation], model), { code: 'data_violates', why });
      assert.deepEqual(await connection.introspect(), before);
    }
  },
);

testConnected('what an earlier statement of the run changes is left to the run', async (connection) => {
  await run(connection, [TEAMS, USERS]);
  await connection.query(`INSERT INTO "users" ("age") VALUES ('7'), ('7')`);
  const unique: Operation = { type: 'modifyField', collection: 'users', field: 'age', changes: { unique: true } };
  const earlier: readonly Operation[] = [
    { type: 'raw', dialect: 'words', statement: 'DELETE FROM users' },
    { type: 'modifyField', collection: 'users', field: 'age', changes: { type: 'integer' } },
  ];
  for (const first of earlier) {
    const model = schema([TEAMS, USERS]);
    const firsts = words.compile(first, model);
    const after = first.type === 'raw' ? model : apply(model, first);
    const statements: readonly Statement<SqlServerStep>[] = [...firsts, ...words.compile(unique, after)];
    const operations = statements.map((_, at): Operation => (at < firsts.length ? first : unique));
    assert.deepEqual(await connection.preflight?.(statements, operations), { failures: [], copies: [] });
  }
});

testConnected(
  'the lease is renewed while a statement runs, and no statement runs once it is lost',
  async (connection) => {
    const slow: Operation = { type: 'raw', dialect: 'words', statement: SLOW };
    await connection.withLock(async (epoch) => {
      await run(connection, [slow], undefined, epoch);
      await connection.query('UPDATE "_svc_lock" SET "epoch" = "epoch" + 1');
      await assert.rejects(run(connection, [TEAMS], undefined, epoch), { code: 'lock_lost' });
    });
    assert.equal((await connection.introspect()).size, 0);
  },
);

testConnected('a record is written as it was read, and the engine fills in its time', async (connection) => {
  const definition: RecordDefinition<{ id: string; at: Date }> = {
    collection: '_svc_written',
    key: 'id',
    columns: { id: { type: 'string' }, at: { type: 'timestamp' } },
    indexes: [],
  };
  await connection.ensureTables([anyDefinition(definition)]);
  const write = (version?: number) => {
    const record = { id: 'one', at: CLOCK };
    const writes: RecordWrite[] = [{ definition: anyDefinition(definition), record, ...(version && { version }) }];
    return connection.run([{ transactional: false, statements: [], writes }], 0);
  };
  const { written } = await write();
  const found = await connection.records(definition).get('one');
  assert.deepEqual(found, { record: { id: 'one', ...written[0]?.[0] }, version: 1 });
  for (const version of [undefined, 2]) {
    const { failure } = await write(version);
    assert.ok(isSvcError(failure?.error) && failure.error.code === 'lock_lost');
  }
  assert.deepEqual(await connection.records(definition).get('one'), found);
  assert.equal((await write(1)).failure, undefined);
});

test('a URL names a server and a database', () => {
  assert.equal(words.identify('words://me:secret@HOST/shop'), 'words:host:1234/shop');
  for (const url of ['words:', 'words://host', 'mysql://host/shop', 'no url'])
    assert.throws(() => words.identify(url), { code: 'url_invalid' });
});

test('the database is closed', () => database.close());
