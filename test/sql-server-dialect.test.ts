import assert from 'node:assert/strict';
import type { Connection, CreateCollection, Operation, RecordDefinition, SchemaModel, Statement } from '@svc/sdk';
import { anyDefinition, apply, CLOCK, type RecordWrite, type SqlServerStep, sqlServerDialect } from '@svc/sdk/dialect';
import { isSvcError } from '../core/errors.ts';
import { database, words as engine, SLOW } from './kit/sql-server-words.ts';
import { test } from './kit/test.ts';
import { recordStoreSuite } from './suites/index.ts';
import { describeTestError } from './suites/suite.ts';

const words = sqlServerDialect(engine);

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
  dialect = words,
) {
  let model = from;
  for (const operation of operations) {
    const statements = dialect.compile(operation, model);
    const { failure } = await connection.run([{ transactional: false, statements, writes: [] }], epoch);
    if (failure) throw failure.error;
    model = apply(model, operation);
  }
}

const TEAMS: CreateCollection = {
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

test('an engine with short names has the names of flags that it was given', async () => {
  const short = sqlServerDialect({ ...engine, rules: { ...engine.rules, names: { max: 31, unit: 'bytes' } } });
  const connection = await short.connect(URL_OF_ALL, {});
  const table = 'customer_accounts_of_all_shops';
  const flagged: Operation = {
    type: 'createCollection',
    name: table,
    fields: [
      { name: 'id', type: 'integer', primaryKey: true },
      { name: 'primary_email_address', type: 'text', unique: true },
      { name: 'preferred_kind_of_contact', type: 'enum', enumValues: ['mail', 'phone'] },
    ],
  };
  const changes: readonly Operation[] = (['preferred_kind_of_contact', 'primary_email_address'] as const).map(
    (field) => ({
      type: 'modifyField',
      collection: table,
      field,
      changes: field === 'primary_email_address' ? { unique: false } : { unique: true, enumValues: ['mail', 'fax'] },
    }),
  );
  let operations: readonly Operation[] = [];
  for (const operation of [flagged, ...changes]) {
    await run(connection, [operation], schema(operations), 0, short);
    operations = [...operations, operation];
    assert.deepEqual(await connection.introspect(), await connection.normalize(schema(operations)));
  }
  await connection.close();
  await clear();
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

testConnected('a closed connection takes no lock', async (connection) => {
  await connection.close();
  await assert.rejects(
    connection.withLock(async () => undefined),
    { code: 'connection_lost' },
  );
});

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

testConnected('rows are counted up to a limit, and those of an update', async (connection) => {
  await run(connection, [TEAMS]);
  await connection.query(`INSERT INTO "teams" ("id", "name") VALUES (1, 'a'), (2, 'b'), (3, 'c')`);
  const collection = schema([TEAMS]).get('teams');
  assert.ok(collection);
  assert.deepEqual(await Promise.all([2, 9].map((limit) => connection.count('teams', limit))), [2, 3]);
  assert.equal(await connection.countValues?.('teams', 'name', 9), 3);
  const set = [{ field: 'name', value: 'b' }];
  const where = [{ field: 'id', operator: 'gte' as const, value: 2 }];
  assert.deepEqual(
    await connection.update({
      table: 'teams',
      key: 'id',

      collection,
      where: [...where, { field: 'id', operator: 'lt', value: 3 }],
      set,
    }),
    {
      matched: 1,
      modified: 0,
    },
  );
});

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

testConnected('a rejected statement is named without the values of rows', async (connection) => {
  const statementOf = (work: Promise<unknown>) =>
    work.then(
      () => undefined,
      (error: unknown) => {
        if (!isSvcError(error)) return error;
        assert.ok(describeTestError(error).includes(error.where ?? 'no statement'));
        return [error.code, error.where];
      },
    );
  assert.deepEqual(await statementOf(connection.query(`SELECT "none" + 12, 'secret''s' FROM nowhere AT "3"`)), [
    'migration_failed',
    'SELECT "none" + ?, ? FROM nowhere AT "3"',
  ]);
  await run(connection, [TEAMS]);
  assert.deepEqual(await statementOf(connection.query(`INSERT INTO "teams" VALUES (12, NULL)`)), [
    'data_violates',
    'INSERT INTO "teams" VALUES (?, NULL)',
  ]);
  const statement = `CREATE VIEW wrong AS SELECT 'a${'b'.repeat(500)}`;
  const raw: Operation = { type: 'raw', dialect: 'words', statement };
  assert.deepEqual(await statementOf(run(connection, [raw])), ['migration_failed', `${statement.slice(0, 400)}…`]);
});

testConnected('an array is JSON in a string without arrayLiteral', async () => {
  const { types } = engine.syntax;
  const syntax = {
    ...engine.syntax,
    types: { ...types, array: 'JSONB' },
    typeText: ({ type }: { readonly type: string }) => (type === 'array' ? 'JSONB' : undefined),
  };
  const dialect = sqlServerDialect({ ...engine, syntax });
  const list = { name: 'list', type: 'array', items: 'integer', default: [1, -2] } as const;
  const operations: readonly Operation[] = [
    { type: 'createCollection', name: 'lists', fields: [...TEAMS.fields, list] },
  ];
  const connection = await dialect.connect(URL_OF_ALL, {});
  await run(connection, operations, new Map(), 0, dialect);
  const normalized = await connection.normalize(schema(operations));
  const found = await connection.introspect();
  assert.deepEqual(found.get('lists')?.fields.get('list'), { name: 'list', type: 'array', default: [1, -2] });
  assert.deepEqual(normalized.get('lists')?.fields.get('list'), found.get('lists')?.fields.get('list'));
  assert.deepEqual(dialect.normalize(found), found);
  await connection.close();
});

test('a URL names a server and a database', () => {
  assert.equal(words.identify('words://me:secret@HOST/shop'), 'words:host:1234/shop');
  for (const url of ['words:', 'words://host', 'mysql://host/shop', 'no url'])
    assert.throws(() => words.identify(url), { code: 'url_invalid' });
});

test('the database is closed', () => database.close());
