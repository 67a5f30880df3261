import * as assert from 'node:assert/strict';
import { types } from 'cassandra-driver';
import { Database } from '../core/database/database.ts';
import type { UpdateRequest } from '../core/database/update.ts';
import type { ConnectOptions, Progress } from '../core/dialect.ts';
import { historyModel } from '../core/migration/history.ts';
import { MigrationEngine } from '../core/migration/migration-engine.ts';
import type { Target } from '../core/migration/target.ts';
import { apply } from '../core/schema/apply.ts';
import { describeDifferences } from '../core/schema/diff.ts';
import type { Field, FieldType } from '../core/schema/model.ts';
import type { Operation } from '../core/schema/operation.ts';
import type { CassandraOptions } from '../core/schema/options.ts';
import { convertValue } from '../plugins/dialects/cassandra/data/convert-value.ts';
import { cassandra } from '../plugins/dialects/cassandra/dialect.ts';
import { type FreshKeyspace, freshKeyspace, unavailable } from './kit/cassandra.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';
import { runOperations } from './suites/run-operations.ts';

const SLOW = { timeoutMs: 120_000 };

const events = (cassandraOptions: CassandraOptions): Operation => ({
  type: 'createCollection',
  name: 'events',
  fields: ['tenant', 'day', 'at', 'seq', 'what'].map((name) => ({ name, type: 'text' })),
  options: { cassandraOptions },
});
const compiled = (operation: Operation) => cassandra.compile(operation, new Map());
const rejectionOf = (operation: Operation) => expectError((async () => compiled(operation))(), 'schema_invalid');

test('a key follows the options and primaryKey, complete and in order, or is rejected', async () => {
  const [statement] = compiled(
    events({
      partitionKey: ['tenant', 'day'],
      clusteringColumns: ['at', 'seq'],
      clusteringOrder: [{ column: 'seq', order: 'DESC' }],
    }),
  );
  assert.match(statement?.text ?? '', /PRIMARY KEY \(\("tenant", "day"\), "at", "seq"\)/);
  assert.match(statement?.text ?? '', /CLUSTERING ORDER BY \("at" ASC, "seq" DESC\)/);
  const wrong: [CassandraOptions, RegExp][] = [
    [{}, /no partition key, which every Cassandra table needs/],
    [{ partitionKey: ['nope'] }, /"nope"/],
    [{ partitionKey: ['tenant', 'tenant'] }, /twice/],
    [{ partitionKey: ['tenant'], clusteringOrder: [{ column: 'at', order: 'DESC' }] }, /not a clustering column/],
    [{ partitionKey: ['tenant'], defaultTTL: -1 }, /seconds/],
    [{ partitionKey: ['tenant'], defaultTTL: 700_000_000 }, /seconds/],
    [{ partitionKey: ['tenant'], compaction: { class: "x', 'a': 'b" } }, /strategy/],
  ];
  for (const [options, why] of wrong) assert.match((await rejectionOf(events(options))).why ?? '', why);
  const outside: Operation = {
    type: 'createCollection',
    name: 't',
    fields: [
      { name: 'a', type: 'integer', primaryKey: true },
      { name: 'b', type: 'integer', primaryKey: true },
    ],
    options: { cassandraOptions: { partitionKey: ['a'] } },
  };
  assert.match((await rejectionOf(outside)).why ?? '', /field "b" has primaryKey but is not in the key/);
});

test('raw text must be a single statement other than USE', async () => {
  const raw = (statement: string) => (async () => compiled({ type: 'raw', dialect: 'cassandra', statement }))();
  for (const text of ['a; b', 'USE other', "SELECT 'open", 'SELECT /* open', '-- x\nuse "b"']) {
    await expectError(raw(text), 'migration_invalid');
  }
  for (const text of ["SELECT ';' FROM t;", 'BEGIN BATCH INSERT a; INSERT b; APPLY BATCH;', '$$ ; $$', 'a -- b; c']) {
    assert.equal((await raw(text)).length, 1, text);
  }
  assert.deepEqual(await raw(' -- nothing\n;'), []);
});

test('values are converted without loss, or with a reason why not', () => {
  const context = { types, now: new Date() };
  const convert = (value: unknown, from: FieldType, to: FieldType | Omit<Field, 'name'>) => {
    const result = convertValue(value, { type: from }, typeof to === 'string' ? { type: to } : to, context);
    return 'value' in result ? String(result.value) : undefined;
  };
  const cases: [unknown, FieldType, FieldType | Omit<Field, 'name'>, string | undefined][] = [
    ['30', 'text', 'integer', '30'],
    ['-5', 'text', 'integer', '-5'],
    ['-5.00', 'text', 'integer', undefined],
    ['-0', 'text', 'integer', undefined],
    ['1', 'text', 'boolean', undefined],
    ['05', 'text', 'integer', undefined],
    ['5.7', 'text', 'integer', undefined],
    ['', 'text', 'integer', undefined],
    [5.5, 'double', 'integer', undefined],
    [40_000, 'integer', 'smallint', undefined],
    [9007199254740993n, 'bigint', 'text', '9007199254740993'],
    [9007199254740993n, 'bigint', 'double', undefined],
    ['9223372036854775808', 'text', 'bigint', undefined],
    ['0.1', 'text', 'double', '0.1'],
    ['0.10', 'text', 'float', '0.1'],
    ['0.123456789', 'text', 'float', undefined],
    [1e300, 'double', 'float', undefined],
    [types.BigDecimal.fromString('12.50'), 'decimal', 'text', '12.50'],
    [new types.BigDecimal(-1, -30), 'decimal', 'text', `-1${'0'.repeat(30)}`],
    [new types.BigDecimal(1, -30), 'decimal', 'double', '1e+30'],
    [new types.BigDecimal(1, -30), 'decimal', { type: 'decimal', precision: 5, scale: 2 }, undefined],
    [new types.BigDecimal(12, 4), 'decimal', 'text', '0.0012'],
    ['12.345', 'text', { type: 'decimal', precision: 5, scale: 2 }, undefined],
    ['true', 'text', 'boolean', 'true'],
    [0, 'integer', 'boolean', 'false'],
    [true, 'boolean', 'integer', '1'],
    [false, 'boolean', 'bigint', '0'],
    ['yes', 'text', 'boolean', undefined],
    [true, 'boolean', 'text', 'true'],
    ['2026-02-30x', 'text', 'date', undefined],
    ['2026-01-31', 'text', 'date', '2026-01-31'],
    ['2024-02-31', 'text', 'date', undefined],
    ['2024-99-99', 'text', 'date', undefined],
    ['2024-02-31', 'text', 'timestamp', undefined],
    ['2024-02-31 10:00:00Z', 'text', 'timestamp', undefined],
    ['2024-06-31T10:00', 'text', 'datetime', undefined],
    ['99:99', 'text', 'time', undefined],
    [new Date(0), 'timestamp', 'text', '1970-01-01T00:00:00.000Z'],
    [new Date(8.64e15), 'timestamp', 'text', undefined],
    [new Date(Number.NaN), 'timestamp', 'text', undefined],
    [new Date(Number.NaN), 'datetime', 'date', undefined],
    [types.LocalDate.fromString('-0044-03-15'), 'date', 'text', undefined],
    ['23:59:59.123456789', 'text', 'time', '23:59:59.123456789'],
    ['A0000000-0000-4000-8000-00000000000A', 'text', 'uuid', 'a0000000-0000-4000-8000-00000000000a'],
    ['b', 'text', { type: 'enum', enumValues: ['a'] }, undefined],
    ['abcd', 'text', { type: 'string', length: 3 }, undefined],
    ['{"a":1}', 'text', 'json', '{"a":1}'],
    ['{"n": 12345678901234567890, "a": 1.0}', 'text', 'json', '{"n": 12345678901234567890, "a": 1.0}'],
    ['{"n": 12345678901234567890, "a": 1.0}', 'json', 'text', '{"n": 12345678901234567890, "a": 1.0}'],
    ['"a"', 'json', 'text', '"a"'],
    ['"a"', 'json', { type: 'string', length: 2 }, undefined],
    ['9007199254740993', 'json', 'bigint', '9007199254740993'],
    ['1e3', 'json', 'integer', '1000'],
    [9007199254740993n, 'bigint', 'json', '9007199254740993'],
    ['no json', 'text', 'json', undefined],
    [Buffer.from('x'), 'blob', 'text', undefined],
    ['x', 'text', 'blob', undefined],
    [null, 'text', 'integer', 'null'],
    [null, 'text', { type: 'integer', required: true }, undefined],
    [['1', '2'], 'array', { type: 'array', items: 'integer' }, '1,2'],
    [['1', 'x'], 'array', { type: 'array', items: 'integer' }, undefined],
  ];
  for (const [value, from, to, expected] of cases) {
    assert.equal(convert(value, from, to), expected, `${String(value)}: ${from} to ${JSON.stringify(to)}`);
  }
});

if (unavailable) test.skip('the schema on Cassandra', unavailable);
else {
  const on = (
    name: string,
    body: (position: {
      keyspace: FreshKeyspace;
      adapter: Target;
      db: Database;
      again: (options: ConnectOptions) => Promise<Target>;
    }) => Promise<void>,
  ) =>
    test(
      name,
      async () => {
        const keyspace = await freshKeyspace();
        const open: Target[] = [];
        const again = async (options: ConnectOptions = {}) => {
          const adapter = await connectTarget(cassandra, keyspace.url, options);
          open.push(adapter);
          return adapter;
        };
        try {
          const adapter = await again();
          await body({ keyspace, adapter, db: new Database(adapter), again });
          const found = await adapter.connection.introspect();
          assert.deepEqual(describeDifferences(await historyModel(adapter), found), []);
        } finally {
          for (const { connection } of open) await connection.close();
          await keyspace.drop();
        }
      },
      SLOW,
    );
  const key = { type: 'integer', primaryKey: true } as const;
  const sorted = (rows: readonly Record<string, unknown>[]) =>
    rows.map((row) => ({ ...row })).sort((a, b) => Number(a.id) - Number(b.id));

  on('options are created, read back and match the catalog', async ({ db, keyspace, adapter }) => {
    const cassandraOptions: CassandraOptions = {
      partitionKey: ['tenant', 'Day'],
      clusteringColumns: ['at'],
      clusteringOrder: [{ column: 'at', order: 'DESC' }],
      defaultTTL: 3600,
      compaction: { class: 'SizeTieredCompactionStrategy', min_threshold: 6 },
    };
    await db.schema.create(
      'events',
      { tenant: 'text', Day: 'date', at: 'timestamp', what: 'json' },
      { cassandraOptions },
    );
    const found = await adapter.connection.introspect();
    assert.deepEqual(found.get('events')?.options, { cassandraOptions });
    await keyspace.query('ALTER TABLE events WITH default_time_to_live = 60');
    const changed = await adapter.connection.introspect();
    assert.equal(changed.get('events')?.options.cassandraOptions?.defaultTTL, 60);
    await keyspace.query('ALTER TABLE events WITH default_time_to_live = 3600');
  });

  on('a copy keeps write times and times to live, and does not bring deleted rows back', async ({ db, keyspace }) => {
    await db.schema.create('users', { id: key, first: 'text', tags: { type: 'array', items: 'integer' } });
    await keyspace.query("INSERT INTO users (id, first, tags) VALUES (1, 'a', [1, 2]) USING TIMESTAMP 1000");
    await keyspace.query("INSERT INTO users (id, first) VALUES (2, 'b') USING TTL 5000");
    await keyspace.query('INSERT INTO users (id) VALUES (3)');
    await db.schema.renameField('users', 'first', 'given name', { strategy: 'copy' });
    await db.schema.renameField('users', 'tags', 'labels', { strategy: 'copy' });
    const rows = await keyspace.query(
      'SELECT id, "given name" AS name, labels, writetime("given name") AS written, ttl("given name") AS left FROM users',
    );
    const [one, two, three] = sorted(rows);
    assert.deepEqual([one?.name, one?.labels, String(one?.written), one?.left], ['a', [1, 2], '1000', null]);
    assert.equal(two?.name, 'b');
    assert.ok(Number(two?.left) > 4000 && Number(two?.left) <= 5000);
    assert.equal(three?.name, null);
    const engine = new MigrationEngine(db.getAdapter());
    const last = (await engine.getHistory()).at(-2);
    assert.ok(last);
    await engine.down(last.migration);
    // Values older than the drop of the column stay hidden.
    assert.deepEqual(
      sorted(await keyspace.query('SELECT id, first FROM users')).map(({ first }) => first),
      ['a', 'b', null],
    );
  });

  on('a filled or copied value lives as long as its row', async ({ db, keyspace }) => {
    const tags = { type: 'array', items: 'integer' } as const;
    await db.schema.create('users', { id: key, a: 'text', b: 'text', tags });
    await keyspace.query("INSERT INTO users (id, a) VALUES (1, 'x') USING TTL 100");
    await keyspace.query("INSERT INTO users (id, b) VALUES (1, 'x') USING TTL 5000");
    await keyspace.query("INSERT INTO users (id, a) VALUES (2, 'x') USING TTL 100");
    await keyspace.query("INSERT INTO users (id, b) VALUES (2, 'x')");
    await keyspace.query('INSERT INTO users (id, tags) VALUES (3, [1, 2]) USING TTL 5000');
    await db.schema.addField('users', 'kind', { type: 'text', default: 'k' });
    await db.schema.renameField('users', 'tags', 'labels', { strategy: 'copy' });
    const read = 'SELECT id, kind, labels, ttl(kind) AS kind_left, ttl(labels) AS labels_left FROM users';
    const [one, two, three] = sorted(await keyspace.query(read));
    const isNear = (left: unknown) => Number(left) > 4000 && Number(left) <= 5000;
    assert.ok(isNear(one?.kind_left), String(one?.kind_left));
    assert.deepEqual([two?.kind, two?.kind_left], ['k', null]);
    assert.ok(isNear(three?.kind_left), String(three?.kind_left));
    assert.equal(String(three?.labels), '1,2');
    const left = three?.labels_left as readonly number[];
    assert.ok(left.length === 2 && left.every(isNear), String(left));
  });

  on(
    'late writes to a copied column are not lost when it is dropped',
    async ({ adapter: { connection }, keyspace }) => {
      const create: Operation = {
        type: 'createCollection',
        name: 'users',
        fields: [
          { name: 'id', ...key },
          { name: 'first', type: 'text' },
          { name: 'tags', type: 'array', items: 'integer' },
        ],
      };
      let model = await runOperations(cassandra, connection, [create]);
      for (const id of [1, 2, 4]) {
        await keyspace.query("INSERT INTO users (id, first, tags) VALUES (?, 'a', [1])", [id]);
      }
      const rename = async (from: string, to: string, concurrentWrites: readonly string[]) => {
        const operation: Operation = { type: 'renameField', collection: 'users', from, to, strategy: 'copy' };
        const statements = cassandra.compile(operation, model);
        for (const [at, statement] of statements.entries()) {
          if (at === statements.length - 1) for (const cql of concurrentWrites) await keyspace.query(cql);
          const outcome = await connection.run([{ transactional: false, statements: [statement], writes: [] }], 0);
          assert.equal(outcome.failure, undefined);
        }
        model = apply(model, operation);
      };
      await rename('first', 'given', [
        "UPDATE users SET first = 'late' WHERE id = 1",
        "UPDATE users SET first = 'late' WHERE id = 2",
        "UPDATE users SET given = 'later' WHERE id = 2",
        "INSERT INTO users (id, first) VALUES (3, 'new') USING TTL 5000",
      ]);
      await rename('tags', 'labels', ['UPDATE users SET tags = tags + [2] WHERE id = 1']);
      const rows = sorted(await keyspace.query('SELECT id, given, ttl(given) AS left, labels FROM users'));
      assert.deepEqual(
        rows.map(({ given, labels }) => [given, labels === null ? null : [...(labels as number[])]]),
        [
          ['late', [1, 2]],
          ['later', [1]],
          ['new', null],
          ['a', [1]],
        ],
      );
      assert.ok(Number(rows[2]?.left) > 4000 && rows[0]?.left === null);
      await keyspace.query('DROP TABLE users');
    },
  );

  on(
    'a copy to another type converts all values, or fails with the number that it cannot convert',
    async ({ db, keyspace }) => {
      await db.schema.create('users', { id: key, age: 'text', at: 'timestamp' });
      await keyspace.query("INSERT INTO users (id, age, at) VALUES (1, '30', 1767225599999) USING TIMESTAMP 1000");
      await keyspace.query("INSERT INTO users (id, age) VALUES (2, 'old')");
      await keyspace.query('INSERT INTO users (id) VALUES (3)');
      const toNumber = { strategy: 'copy', changes: { type: 'integer' } } as const;
      const error = await expectError(db.schema.renameField('users', 'age', 'years', toNumber), 'data_violates');
      assert.match(error.why ?? '', /^1 row has .*id 2/);
      await assert.rejects(keyspace.query('SELECT years FROM users'));
      await keyspace.query("UPDATE users SET age = '7' WHERE id = 2");
      await db.schema.renameField('users', 'age', 'years', toNumber);
      await db.schema.renameField('users', 'at', 'noted', { strategy: 'copy', changes: { type: 'text' } });
      const read = 'SELECT id, years, writetime(years) AS written, noted FROM users';
      const [one, two, three] = sorted(await keyspace.query(read));
      assert.deepEqual([one?.years, String(one?.written), one?.noted], [30, '1000', '2025-12-31T23:59:59.999Z']);
      assert.deepEqual([two?.years, three?.years, three?.noted], [7, null, null]);
      const engine = new MigrationEngine(db.getAdapter());
      for (const { migration } of (await engine.getHistory()).slice(-2).reverse()) await engine.down(migration);
      const rolledBack = sorted(await keyspace.query('SELECT id, age, at FROM users'));
      assert.deepEqual(
        rolledBack.map(({ age }) => age),
        ['30', '7', null],
      );
      assert.deepEqual(rolledBack[0]?.at, new Date(1767225599999));
    },
  );

  on('a default is filled into existing rows, and a required field needs one', async ({ db, keyspace }) => {
    await db.schema.create('users', { id: key, n: 'integer' });
    await keyspace.query('INSERT INTO users (id, n) VALUES (1, 1)');
    await keyspace.query('INSERT INTO users (id) VALUES (2)');
    await db.schema.addField('users', 'kind', { type: 'enum', enumValues: ['a', 'b'], default: 'b', required: true });
    await db.schema.addField('users', 'mark', { type: 'uuid', autoGenerate: true });
    const rows = sorted(await keyspace.query('SELECT id, kind, mark FROM users'));
    assert.deepEqual(
      rows.map(({ kind }) => kind),
      ['b', 'b'],
    );
    assert.notEqual(String(rows[0]?.mark), String(rows[1]?.mark));
    const error = await expectError(
      db.schema.addField('users', 'must', { type: 'text', required: true }),
      'data_violates',
    );
    assert.match(error.next[0] ?? '', /default/);
    const engine = new MigrationEngine(db.getAdapter());
    assert.equal((await engine.getHistory()).length, 3);
  });

  on('narrowing a field fails with the number of invalid rows', async ({ db, keyspace }) => {
    await db.schema.create('users', {
      id: key,
      mood: { type: 'enum', enumValues: ['a', 'b'] },
      name: 'string',
      total: 'decimal',
    });
    for (let id = 0; id < 5; id += 1) {
      await keyspace.query(`INSERT INTO users (id, mood, name, total) VALUES (${id}, 'b', 'ääää', 12.50)`);
    }
    const error = await expectError(db.schema.modifyField('users', 'mood', { enumValues: ['a'] }), 'data_violates');
    assert.match(error.why ?? '', /^5 rows/);
    await expectError(db.schema.modifyField('users', 'name', { length: 3 }), 'data_violates');
    await db.schema.modifyField('users', 'name', { length: 4, required: true });
    await expectError(db.schema.modifyField('users', 'total', { precision: 3, scale: 2 }), 'data_violates');
    await db.schema.modifyField('users', 'total', { precision: 4, scale: 2 });
    await expectError(db.update({ table: 'users', data: { name: null }, all: true }), 'data_violates');
    await expectError(db.schema.modifyField('users', 'id', { type: 'text' }), 'not_supported');
  });

  on('a dropped name can only be added again with the same type', async ({ db }) => {
    await db.schema.create('users', { id: key, n: 'integer' });
    await db.schema.dropField('users', 'n');
    const error = await expectError(db.schema.addField('users', 'n', 'text'), 'not_supported');
    assert.match(error.why ?? '', /type int was dropped/);
    await db.schema.addField('users', 'n', 'integer');
  });

  on(
    'a field that cannot be dropped is unchanged, and its migration has no effect',
    async ({ db, keyspace, adapter }) => {
      const email = { type: 'string', length: 40, required: true } as const;
      await db.schema.create('users', { id: key, email, kind: { type: 'enum', enumValues: ['a', 'b'], default: 'a' } });
      // A column of a view cannot be dropped.
      await keyspace.query(
        'CREATE MATERIALIZED VIEW by_email AS SELECT id, email FROM users WHERE email IS NOT NULL AND id IS NOT NULL PRIMARY KEY (email, id)',
      );
      const before = await adapter.connection.introspect();
      for (const field of ['email', 'kind']) {
        const error = await expectError(db.schema.dropField('users', field), 'migration_failed');
        assert.match(error.state ?? '', /None of it took effect/);
        assert.deepEqual(await adapter.connection.introspect(), before);
      }
      await keyspace.query('DROP MATERIALIZED VIEW by_email');
      for (const field of ['email', 'kind']) await db.schema.dropField('users', field);
      assert.deepEqual([...((await adapter.connection.introspect()).get('users')?.fields.keys() ?? [])], ['id']);
    },
  );

  on(
    'the registry entry of a dropped table does not apply to a later one',
    async ({ keyspace, adapter: { connection } }) => {
      const create: Operation = {
        type: 'createCollection',
        name: 'users',
        fields: [
          { name: 'id', ...key },
          { name: 'email', type: 'string', length: 40, required: true },
        ],
      };
      const model = await runOperations(cassandra, connection, [create]);
      await keyspace.query(
        'CREATE MATERIALIZED VIEW by_email AS SELECT id, email FROM users WHERE email IS NOT NULL AND id IS NOT NULL PRIMARY KEY (email, id)',
      );
      const drop: Operation = { type: 'dropCollection', collection: 'users' };
      await expectError(runOperations(cassandra, connection, [drop], model), 'migration_failed');
      assert.deepEqual(describeDifferences(model, await connection.introspect()), []);
      // The state after a process was killed right after its DROP TABLE.
      await keyspace.query('DROP MATERIALIZED VIEW by_email');
      await keyspace.query('DROP TABLE users');
      await keyspace.query('CREATE TABLE users (id int PRIMARY KEY, email text)');
      const found = (await connection.introspect()).get('users');
      assert.deepEqual(found?.fields.get('email'), { name: 'email', type: 'text' });
      await keyspace.query('DROP TABLE users');
      await runOperations(cassandra, connection, [create, drop]);
      assert.deepEqual(
        await keyspace.query(`SELECT key FROM "_svc_migrations" WHERE kind = '_svc_registry' ALLOW FILTERING`),
        [],
      );
    },
  );

  on('both kinds of index are usable as soon as they are created', async ({ db, keyspace }) => {
    await db.schema.create('users', { id: key, 'odd name': 'text', n: 'integer', bytes: 'blob' });
    for (let id = 0; id < 200; id += 1) await keyspace.query('INSERT INTO users (id, n) VALUES (?, ?)', [id, id % 10]);
    await db.schema.createIndex('users', ['n'], { name: 'plain_n' });
    assert.equal((await keyspace.query('SELECT id FROM users WHERE n = 3')).length, 20);
    await db.schema.dropIndex('users', 'plain_n');
    await db.schema.createIndex('users', ['n'], { name: 'sai_n', cassandraOptions: { using: 'sai' } });
    assert.equal((await keyspace.query('SELECT id FROM users WHERE n > 3 AND n < 6')).length, 40);
    const sai = { cassandraOptions: { using: 'sai' } } as const;
    await expectError(db.schema.createIndex('users', ['bytes'], { ...sai, name: 'a' }), 'not_supported');
    await expectError(db.schema.createIndex('users', ['odd name'], { ...sai, name: 'b' }), 'not_supported');
    await expectError(db.schema.createIndex('users', ['id'], { name: 'c' }), 'not_supported');
    await expectError(db.schema.createIndex('users', ['odd name']), 'name_invalid');
    await db.schema.create('others', { id: key, n: 'integer' });
    await expectError(db.schema.createIndex('others', ['n'], { name: 'sai_n' }), 'index_exists');
  });

  on(
    'tables that svc did not create are read, and their unsupported objects are listed',
    async ({ keyspace, adapter, db }) => {
      await keyspace.query(
        `CREATE TABLE made (a int, "B" text, c timeuuid, d map<text, int>, e frozen<list<int>>, f list<text>, s text static, v varint, PRIMARY KEY (a, "B")) WITH CLUSTERING ORDER BY ("B" DESC)`,
      );
      await keyspace.query('CREATE INDEX made_f ON made (f)');
      const found = (await adapter.connection.introspect()).get('made');
      assert.deepEqual(found?.fields.get('B'), { name: 'B', type: 'text', primaryKey: true, required: true });
      assert.deepEqual(found?.fields.get('f'), { name: 'f', type: 'array', items: 'text' });
      assert.deepEqual(found?.indexes.get('made_f')?.columns, [{ name: 'f' }]);
      assert.deepEqual(found?.options.cassandraOptions, {
        partitionKey: ['a'],
        clusteringColumns: ['B'],
        clusteringOrder: [{ column: 'B', order: 'DESC' }],
      });
      assert.deepEqual(found?.fields.get('d'), { name: 'd', type: 'json', native: 'map<text, int>' });
      assert.deepEqual(found?.fields.get('s'), { name: 's', type: 'text', native: 'text static' });
      await keyspace.query('ALTER TABLE made WITH gc_grace_seconds = 60');
      assert.deepEqual(await adapter.connection.unsupportedObjects(), []);
      await keyspace.query('ALTER TABLE made WITH gc_grace_seconds = 864000');
      await keyspace.query(`INSERT INTO made (a, s) VALUES (1, 'of a partition without a row')`);
      for (const [column, why] of [
        ['s', /static/],
        ['d', /map<text, int>/],
        ['c', /timeuuid/],
        ['v', /varint/],
      ] as const) {
        for (const changes of [{}, { changes: { type: 'text' } }] as const) {
          const copy = db.schema.renameField('made', column, `${column}2`, { strategy: 'copy', ...changes });
          const error = await expectError(copy, 'not_supported');
          assert.match(error.why ?? '', why);
        }
      }
      assert.deepEqual((await adapter.connection.introspect()).get('made'), found);
      await keyspace.query(`INSERT INTO made (a, "B", v) VALUES (1, 'b', 5)`);
      for (const data of [{ s: 'x' }, { d: 'x' }, { e: 'x' }, { v: 1 }]) {
        await expectError(db.update({ table: 'made', data, all: true }), 'not_supported');
      }
      await expectError(db.update({ table: 'made', data: { f: ['x'] }, where: { d: 'x' } }), 'not_supported');
      assert.equal((await db.update({ table: 'made', data: { f: ['x'] }, where: { d: null, v: 5 } })).modified, 1);
      await db.update({ table: 'made', data: { c: '00000000-0000-1000-8000-000000000000' }, all: true });
      await db.schema.addField('made', 'more', { type: 'string', length: 10 });
      await keyspace.query('DROP TABLE made');
      await db.schema.create('other', { id: key });
      const engine = new MigrationEngine(adapter);
      for (const { migration } of [...(await engine.getHistory())].reverse().slice(0, 1)) await engine.down(migration);
      // The table was adopted and then dropped by hand.
      await keyspace.query(
        'CREATE TABLE made (a int, "B" text, c timeuuid, d map<text, int>, e frozen<list<int>>, f list<text>, s text static, v varint, more text, PRIMARY KEY (a, "B")) WITH CLUSTERING ORDER BY ("B" DESC)',
      );
      await keyspace.query('CREATE INDEX made_f ON made (f)');
    },
  );

  on('values of every type are compared, set and stored exactly', async ({ db, keyspace }) => {
    await db.schema.create('every', {
      id: key,
      n: 'bigint',
      d: { type: 'decimal', precision: 20, scale: 4 },
      f: 'float',
      b: 'boolean',
      day: 'date',
      at: 'time',
      wall: 'datetime',
      moment: 'timestamp',
      u: 'uuid',
      j: 'json',
      l: { type: 'array', items: 'bigint' },
      x: { type: 'binary', length: 4 },
      t: { type: 'string', length: 5 },
    });
    await keyspace.query('INSERT INTO every (id) VALUES (1)');
    const data = {
      n: '9223372036854775807',
      d: '1e2',
      f: 0.1,
      b: false,
      day: '2026-01-31',
      at: '23:59',
      wall: '2026-01-31T23:59:59.120',
      moment: '2026-01-31T23:59:59.999+02:00',
      u: 'A0000000-0000-4000-8000-00000000000A',
      j: { b: [1, null], a: 'x' },
      l: ['9007199254740993', 1],
      x: 'Cv8=',
      t: 'äöü',
    };
    const { d: _, ...others } = data;
    const set = { ...others, d: 100.25 };
    assert.deepEqual(await db.update({ table: 'every', data: set, where: { n: null } }), { matched: 1, modified: 1 });
    assert.deepEqual(await db.update({ table: 'every', data: set, where: { n: { $gt: 0 } } }), {
      matched: 1,
      modified: 0,
    });
    for (const [field, value] of Object.entries(set)) {
      assert.equal(
        (await db.update({ table: 'every', data: { b: false }, where: { [field]: value } })).matched,
        1,
        field,
      );
      assert.equal(
        (await db.update({ table: 'every', data: { b: false }, where: { [field]: { $ne: value } } })).matched,
        0,
        field,
      );
    }
    // Another client's encoding of a round number.
    await keyspace.query('UPDATE every SET d = 1E+15 WHERE id = 1');
    for (const where of [{ d: 1 }, { d: { $lt: 5 } }, { d: { $ne: '1000000000000000' } }]) {
      assert.equal((await db.update({ table: 'every', data: { b: true }, where })).matched, 0, JSON.stringify(where));
    }
    await expectError(db.schema.modifyField('every', 'd', { precision: 8 }), 'data_violates');
    await db.update({ table: 'every', data: { d: 100.25 }, where: { d: '1000000000000000' } });
    const [row] = await keyspace.query('SELECT n, d, l, x, wall FROM every');
    assert.deepEqual(
      [String(row?.n), String(row?.d), String(row?.l)],
      ['9223372036854775807', '100.25', '9007199254740993,1'],
    );
    assert.equal(new Date(Number(row?.wall)).toISOString(), '2026-01-31T23:59:59.120Z');
    for (const bad of [
      { d: 1.23456 },
      { f: 1e39 },
      { t: '123456' },
      { x: 'no base64' },
      { x: 'SGVsbG8=' },
      { l: [1, null] },
    ]) {
      await assert.rejects(db.update({ table: 'every', data: bad, all: true }), JSON.stringify(bad));
    }
    await expectError(db.update({ table: 'every', data: { id: 2 }, all: true }), 'not_supported');
  });

  on('the result of $CONCAT must fit its field', async ({ db, keyspace }) => {
    await db.schema.create('fits', {
      id: key,
      small: 'smallint',
      whole: 'integer',
      big: 'bigint',
      u: 'uuid',
      mood: { type: 'enum', enumValues: ['a'] },
    });
    await keyspace.query('INSERT INTO fits (id, big) VALUES (1, 0)');
    const give = (field: string, $literal: string) =>
      db.update({ table: 'fits', data: { [field]: { $CONCAT: [{ $literal }] } }, all: true });
    for (const text of ['', '0x10', '9223372036854775808', '99999999999999999999']) {
      await expectError(give('big', text), 'data_violates');
    }
    await expectError(give('small', '32768'), 'data_violates');
    await expectError(give('whole', '2147483648'), 'data_violates');
    await expectError(give('mood', 'b'), 'data_violates');
    await expectError(give('u', 'none'), 'value_invalid');
    const readBack = { small: 1, whole: { $CONCAT: ['small'] } };
    await expectError(db.update({ table: 'fits', data: readBack, all: true }), 'update_invalid');
    const read = 'SELECT small, whole, big, u, mood FROM fits';
    const [before] = await keyspace.query(read);
    assert.deepEqual({ ...before }, { small: null, whole: null, big: 0n, u: null, mood: null });
    await give('big', '-9223372036854775808');
    await give('mood', 'a');
    const [after] = await keyspace.query(read);
    assert.deepEqual([after?.big, after?.mood], [-9223372036854775808n, 'a']);
  });

  on(
    'an update of many rows resumes where a killed one stopped, and reports progress',
    async ({ db, keyspace, again }) => {
      await db.schema.create('many', { id: key, a: 'text', b: 'text', at: 'timestamp' });
      const rows = 6000;
      for (let from = 0; from < rows; from += 500) {
        await Promise.all(
          Array.from({ length: 500 }, (_, at) =>
            keyspace.query('INSERT INTO many (id, a) VALUES (?, ?)', [from + at, `a${from + at}`]),
          ),
        );
      }
      const interrupted = async (what: UpdateRequest) => {
        const stop = new AbortController();
        const reported: Progress[] = [];
        const slow = await again({
          concurrency: 2,
          signal: stop.signal,
          onProgress: (progress) => {
            reported.push(progress);
            if (progress.done >= 1000) stop.abort();
          },
        });
        await expectError(new Database(slow).update(what), 'interrupted');
        assert.ok(reported.length > 0 && reported.every(({ collection }) => collection === 'many'));
        assert.deepEqual(await db.update(what), { matched: rows, modified: rows });
      };
      const request = { table: 'many', data: { b: { $CONCAT: ['a', '!'] } }, where: { b: null } };
      await interrupted(request);
      // A row that was already updated cannot be distinguished from a new one.
      await interrupted({ table: 'many', data: { at: 'now' }, all: true });
      const left = (await keyspace.query('SELECT id, a, b FROM many')).filter(({ a, b }) => b !== `${a}!`);
      assert.deepEqual(left, []);
      assert.deepEqual(
        await keyspace.query(`SELECT key FROM "_svc_migrations" WHERE kind = '_svc_progress' ALLOW FILTERING`),
        [],
      );
      assert.deepEqual(await db.update(request), { matched: 0, modified: 0 });
    },
  );

  on('rows deleted or changed by others during an update keep those changes', async ({ db, keyspace }) => {
    await db.schema.create('busy', { id: key, n: 'integer', m: 'integer' });
    const rows = 600;
    await Promise.all(
      Array.from({ length: rows }, (_, id) => keyspace.query('INSERT INTO busy (id, n) VALUES (?, 1)', [id])),
    );
    const deleting = (async () => {
      for (let id = 0; id < rows; id += 3) await keyspace.query('DELETE FROM busy WHERE id = ? IF EXISTS', [id]);
    })();
    await Promise.all([db.update({ table: 'busy', data: { m: 2 }, where: { n: 1 } }), deleting]);
    const left = await keyspace.query('SELECT id, n, m FROM busy');
    assert.equal(left.length, rows - Math.ceil(rows / 3));
    assert.ok(left.every(({ n, m }) => n === 1 && m === 2));
  });

  test('an error leaves the model unchanged: compile and apply agree', () => {
    const create: Operation = { type: 'createCollection', name: 't', fields: [{ name: 'id', ...key }] };
    const model = apply(new Map(), create);
    const rename: Operation = { type: 'renameCollection', collection: 't', to: 'u' };
    assert.throws(() => cassandra.compile(rename, model), { code: 'not_supported' });
    assert.deepEqual([...model.keys()], ['t']);
  });
}
