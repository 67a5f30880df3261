import * as assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import type { SchemaResult } from '../core/database/automatic.ts';
import { Database } from '../core/database/database.ts';
import type { UpdateRequest } from '../core/database/update.ts';
import type { Json } from '../core/json.ts';
import { MigrationHelpers } from '../core/migration/builder.ts';
import { drift, withoutUnknownReferences } from '../core/migration/drift.ts';
import { historyModel } from '../core/migration/history.ts';
import { migrate, rollback } from '../core/migration/migrate.ts';
import { MigrationEngine } from '../core/migration/migration-engine.ts';
import { previewMigrate } from '../core/migration/preview.ts';
import type { Target } from '../core/migration/target.ts';
import type { ConstraintDefinition } from '../core/schema/operation.ts';
import { committingEngines, sqlEngines } from './kit/engines.ts';
import { definedInCode } from './kit/migrations.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

const catalog = ({ connection }: Target) => connection.introspect();
const rows = async ({ connection }: Target, text: string) => connection.query(text);

/** Runs a call, rolls it back and applies it again: each time the catalog is as it was before. */
async function assertReversible(adapter: Target, call: () => Promise<SchemaResult>): Promise<SchemaResult> {
  const before = await catalog(adapter);
  const result = await call();
  const after = await catalog(adapter);
  assert.ok(!isDeepStrictEqual(before, after), `${result.migration.tag} changed nothing`);
  assert.ok(MigrationHelpers.validate(result.migration), MigrationHelpers.problems(result.migration).join());
  assert.ok(result.durationMs >= 0 && result.statements.length > 0);
  const engine = new MigrationEngine(adapter);
  assert.equal((await engine.down(result.migration)).status, 'rolled_back');
  assert.deepEqual(await catalog(adapter), before);
  assert.equal((await engine.up(result.migration)).status, 'completed');
  assert.deepEqual(await catalog(adapter), after);
  return result;
}

for (const engine of sqlEngines) {
  if (engine.missing !== undefined) {
    test.skip(`${engine.name}: the schema API`, engine.missing);
    continue;
  }
  const { quote, approximated, readOnly } = engine.sql;
  const on = (name: string, body: (db: Database, adapter: Target, again: () => Promise<Target>) => Promise<void>) =>
    test(`${engine.name}: ${name}`, () =>
      engine.withDatabase((adapter, again) => body(new Database(adapter), adapter, again)));

  on('every operation is a migration, applied at once, that can be rolled back', async (db, adapter) => {
    const { schema } = db;
    const go = (call: () => Promise<SchemaResult>) => assertReversible(adapter, call);
    const { migration: created } = await go(() =>
      schema.create(
        'users',
        {
          id: { type: 'integer', primaryKey: true },
          email: { type: 'string', length: 255, required: true, unique: true },
          age: 'integer',
          state: { type: 'enum', enumValues: ['on', 'off'], default: 'on' },
        },
        { timestamps: true },
      ),
    );
    assert.match(created.tag, /^\d{8}_\d{6}_create_users$/);
    assert.deepEqual(
      [created.type, created.name, created.collection, created.fields?.length],
      ['createCollection', 'users', 'users', 4],
    );
    assert.deepEqual(created.down, [{ type: 'dropCollection', collection: 'users' }]);
    const { migration: added } = await go(() =>
      schema.addField('users', 'nick', { type: 'string', length: 20, default: 'x' }),
    );
    assert.deepEqual(
      [added.type, added.name, added.collection, added.field],
      ['addField', 'add_nick_to_users', 'users', { name: 'nick', type: 'string', length: 20, default: 'x' }],
    );
    assert.deepEqual(added.down, [{ type: 'dropField', collection: 'users', field: 'nick' }]);
    await go(() => schema.renameField('users', 'nick', 'alias'));
    await go(() => schema.modifyField('users', 'alias', { length: 40, required: true }));
    await go(() => schema.modifyField('users', 'state', { enumValues: ['on', 'off', 'gone'] }));
    await go(() => schema.createIndex('users', ['email', 'age'], { unique: true, name: 'users_email_age' }));
    await go(() => schema.createIndex('users', ['age', { name: 'alias', order: 'desc' }]));
    await go(() =>
      schema.create('orders', {
        id: { type: 'integer', primaryKey: true },
        user_id: 'integer',
        total: { type: 'decimal', precision: 10, scale: 2 },
      }),
    );
    await go(() =>
      schema.addConstraint('orders', {
        name: 'orders_user',
        type: 'foreignKey',
        columns: ['user_id'],
        references: { table: 'users', columns: ['id'], onDelete: 'CASCADE', onUpdate: 'CASCADE' },
      }),
    );
    await go(() =>
      schema.addConstraint('orders', {
        name: 'orders_total',
        type: 'check',
        expression: 'total >= 0',
        columns: ['total'],
      }),
    );
    await go(() =>
      schema.addConstraint('orders', { name: 'orders_pair', type: 'unique', columns: ['user_id', 'total'] }),
    );
    await go(() => schema.dropConstraint('orders', 'orders_pair'));
    await go(() => schema.dropIndex('users', 'users_email_age'));
    const { migration: dropped } = await go(() => schema.dropField('users', 'age'));
    assert.deepEqual(
      dropped.up.map(({ type }) => type),
      ['dropIndex', 'dropField'],
    );
    assert.match(dropped.lossy?.join() ?? '', /users\.age/);
    await go(() => schema.rename('users', 'people'));
    await expectError(schema.drop('people'), 'collection_referenced');
    await go(() => schema.drop('people', { cascade: true }));
    assert.deepEqual([...(await catalog(adapter)).keys()], ['orders']);
  });

  on('all changes through the API can be rolled back', async (db, adapter) => {
    await db.schema.create('a', { id: { type: 'integer', primaryKey: true } });
    await db.schema.addField('a', 'b', 'string');
    await db.schema.createIndex('a', ['b']);
    const { migrations } = await rollback(adapter, { count: 3 });
    assert.equal(migrations.length, 3);
    assert.equal((await catalog(adapter)).size, 0);
  });

  on('a taken database-wide name is reported as such, not as an existing table', async (db, adapter) => {
    const { schema } = db;
    const id = { type: 'integer', primaryKey: true } as const;
    const shared = adapter.dialect.capabilities.names.databaseWideNames !== undefined;
    const go = async (call: () => Promise<unknown>, says: RegExp) => {
      if (!shared) return void (await call());
      assert.match((await expectError(call(), 'name_invalid')).message, says);
    };
    await schema.create('user_email', { id, address: { type: 'string', unique: true } });
    await schema.create('other', { id, a: 'integer' });
    const unique = { type: 'string', unique: true } as const;
    await go(
      () => schema.create('user', { id, email_address: unique }),
      /"user_email_address_key" is used twice: by "user_email" and "user"/,
    );
    await go(() => schema.createIndex('other', ['a'], { name: 'user_email' }), /"user_email" is used twice/);
    assert.equal((await catalog(adapter)).has('user'), !shared);

    await adapter.connection.query('CREATE TABLE theirs (n integer)');
    await adapter.connection.query('CREATE INDEX team_name_key ON theirs (n)');
    await go(
      () => schema.create('team', { id, name: unique }),
      /^The name "team_name_key" of a key of the new table is taken\.$/,
    );
    assert.equal((await catalog(adapter)).has('team'), !shared);
    await schema.createIndex('user_email', ['address'], { name: 'freed' });
    await schema.dropIndex('user_email', 'freed');
    await schema.createIndex('other', ['a'], { name: 'freed' });
  });

  on('a rejected call changes nothing and records nothing', async (db, adapter) => {
    await db.schema.create('a', { id: { type: 'integer', primaryKey: true } });
    assert.match(
      (await expectError(db.schema.create('a', { id: 'integer' }), 'collection_exists')).message,
      /already exists/,
    );
    await expectError(db.schema.addField('a', 'id', 'integer'), 'field_exists');
    await expectError(db.schema.dropField('a', 'nope'), 'field_unknown');
    await expectError(db.schema.renameField('b', 'x', 'y'), 'collection_unknown');
    // @ts-expect-error: there is no such type
    await expectError(db.schema.addField('a', 'x', 'strin'), 'field_type_unknown');
    await expectError(db.schema.addField('a', 'x', { type: 'decimal' }), 'field_invalid');
    await expectError(db.schema.dropIndex('a', 'nope'), 'index_unknown');
    assert.equal((await new MigrationEngine(adapter).getHistory({ all: true })).length, 1);
    assert.deepEqual([...((await catalog(adapter)).get('a')?.fields.keys() ?? [])], ['id']);
  });

  on('two connections see the changes of each other', async (db, _adapter, again) => {
    const other = new Database(await again());
    await db.schema.create('a', { id: { type: 'integer', primaryKey: true } });
    await other.schema.addField('a', 'x', 'text');
    await db.schema.addField('a', 'y', 'text');
    await other.schema.dropField('a', 'y');
    await expectError(db.schema.dropField('a', 'y'), 'field_unknown');
  });

  on('concurrent calls are applied one after the other', async (db, adapter) => {
    await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        db.schema.create(`t${index}`, { id: { type: 'integer', primaryKey: true } }),
      ),
    );
    assert.deepEqual(
      (await new MigrationEngine(adapter).getHistory()).map(({ seq }) => seq),
      [1, 2, 3, 4, 5, 6, 7, 8],
    );
  });

  on('the same name within one second gets another tag', async (db) => {
    const tags = [];
    for (let round = 0; round < 3; round++) {
      tags.push((await db.schema.create('a', { id: { type: 'integer', primaryKey: true } })).migration.tag);
      await db.schema.drop('a');
    }
    assert.equal(new Set(tags).size, 3);
  });

  on('tags sort in the order of the calls, regardless of their names', async (db) => {
    const calls = [
      await db.schema.create('zebra', { id: { type: 'integer', primaryKey: true } }),
      await db.schema.addField('zebra', 'a', 'text'),
      await db.schema.create('ape', { id: { type: 'integer', primaryKey: true } }),
    ].map(({ migration }) => migration.tag);
    assert.deepEqual(calls, [...calls].sort());
  });

  on('dropping a table not created by svc reports what a rollback does not restore', async (db, adapter) => {
    if (approximated.before) await rows(adapter, approximated.before);
    await rows(
      adapter,
      `CREATE TABLE legacy (id integer, ${approximated.column}, CONSTRAINT legacy_pkey PRIMARY KEY (id))`,
    );
    const { migration } = await db.schema.drop('legacy');
    assert.match(migration.lossy?.join() ?? '', approximated.warning);
    if (!readOnly) return;
    await rows(adapter, `CREATE TABLE sums (id integer, ${readOnly.column}, CONSTRAINT sums_pkey PRIMARY KEY (id))`);
    const { migration: irreversible } = await db.schema.drop('sums');
    assert.match(irreversible.irreversible ?? '', readOnly.why);
    await expectError(new MigrationEngine(adapter).down(irreversible), 'irreversible');
  });

  on(
    'tables not created by svc appear and disappear, and later connections see the current ones',
    async (db, adapter, again) => {
      for (const name of ['orders', 'notes', 'teams'])
        await rows(adapter, `CREATE TABLE ${name} (id integer, CONSTRAINT ${name}_pkey PRIMARY KEY (id))`);
      const newcomer = async (): Promise<Database> => {
        const other = await again();
        const laterModel = await historyModel(other);
        const known = new Map([...(await catalog(other))].filter(([name]) => laterModel.has(name)));
        assert.deepEqual(await drift(other.connection, laterModel, withoutUnknownReferences(known, laterModel)), []);
        return new Database(other);
      };
      const fields = { id: { type: 'integer', primaryKey: true }, team: 'integer' } as const;
      await db.schema.rename('orders', 'orders_old');
      await db.schema.create('orders', fields);
      await db.schema.drop('notes');
      await db.schema.create('notes', fields);
      const second = await newcomer();
      const toTeams: ConstraintDefinition = {
        name: 'notes_team_fkey',
        type: 'foreignKey',
        columns: ['team'],
        references: { table: 'teams', columns: ['id'] },
      };
      await second.schema.addConstraint('notes', toTeams);
      await second.schema.renameField('teams', 'id', 'code');
      await second.schema.rename('teams', 'groups_of');
      const third = await newcomer();
      await third.schema.addField('orders', 'more', 'text');
      await third.schema.addField('orders_old', 'more', 'text');
      await third.schema.drop('groups_of', { cascade: true });
      await third.schema.drop('orders_old');
      const fourth = await newcomer();
      await fourth.schema.rename('orders', 'orders_old');
      await newcomer();
    },
  );

  on('ifNotExists records an equal table, and rejects a different one', async (db, adapter) => {
    const options = { sqlOptions: { ifNotExists: true } };
    await rows(
      adapter,
      `CREATE TABLE old (id integer, note ${engine.dialect.types.text}, CONSTRAINT old_pkey PRIMARY KEY (id))`,
    );
    await expectError(
      db.schema.create('old', { id: { type: 'integer', primaryKey: true }, note: 'integer' }, options),
      'table_differs',
    );
    const { migration, statements } = await db.schema.create(
      'old',
      { id: { type: 'integer', primaryKey: true }, note: 'text' },
      options,
    );
    assert.deepEqual(statements, []);
    assert.equal((await new MigrationEngine(adapter).down(migration)).status, 'rolled_back');
    assert.ok((await catalog(adapter)).has('old'), 'the rollback dropped a table not created by svc');
    await db.schema.create('fresh', { id: { type: 'integer', primaryKey: true } }, options);
    await db.schema.addField('old', 'more', 'text');
  });

  on('a temporary table is recorded and left out of the model', async (db, adapter) => {
    await db.schema.create('scratch', { id: 'integer' }, { sqlOptions: { temporary: true } });
    assert.equal((await new MigrationEngine(adapter).getHistory()).length, 1);
    assert.equal((await catalog(adapter)).size, 0);
    await db.schema.create('scratch', { id: { type: 'integer', primaryKey: true } });
  });

  on('db.update with literals, null, operators and $CONCAT', async (db, adapter) => {
    await db.schema.create(
      'users',
      {
        id: { type: 'integer', primaryKey: true },
        first: 'text',
        last: 'text',
        name: 'text',
        born: 'date',
      },
      { timestamps: true },
    );
    await rows(
      adapter,
      `INSERT INTO users (id, first, last, name, ${quote('updatedAt')}) VALUES (1, 'Ada', 'Lovelace', NULL, '2020-01-01'), (2, 'Alan', NULL, NULL, '2020-01-01'), (3, 'x', 'y', 'kept', '2020-01-01')`,
    );
    const done = await db.update({
      table: 'users',
      data: { name: { $CONCAT: ['first', ' ', 'last', { $literal: '!' }, 'id'] } },
      where: { name: null },
    });
    assert.deepEqual(done, { matched: 2, modified: 2 });
    assert.deepEqual(
      (await rows(adapter, 'SELECT name FROM users ORDER BY id')).map(({ name }) => name),
      ['Ada Lovelace!1', 'Alan !2', 'kept'],
    );
    const timestamped = await rows(
      adapter,
      `SELECT id FROM users WHERE ${quote('updatedAt')} > '2021-01-01' ORDER BY id`,
    );
    assert.deepEqual(
      timestamped.map(({ id }) => Number(id)),
      [1, 2],
    );
    assert.deepEqual(
      await db.update({
        table: 'users',
        data: { last: "O'Hara; DROP TABLE users" },
        where: { id: { $gte: 2, $lt: 3 } },
      }),
      { matched: 1, modified: 1 },
    );
    assert.deepEqual(
      await db.update({ table: 'users', data: { last: null }, where: { id: { $in: [1, 2] }, first: { $ne: 'Alan' } } }),
      { matched: 1, modified: 1 },
    );
    assert.equal((await db.update({ table: 'users', data: { last: 'z' }, all: true })).matched, 3);
    for (const wrong of [
      { table: 'users', data: { last: 'x' } },
      { table: 'users', data: {}, all: true },
      { table: 'users', data: { last: 'x' }, where: { id: 1 }, all: true },
      { table: 'users', data: { last: { $CONCAT: ['born'] } }, all: true },
      { table: 'users', data: { last: { $CONCAT: [] } }, all: true },
      { table: 'users', data: { last: 'x' }, where: { id: { $like: 1 } } },
    ])
      await expectError(db.update(wrong as UpdateRequest), 'update_invalid');
    await expectError(db.update({ table: 'nope', data: { a: 1 }, all: true }), 'collection_unknown');
    await expectError(db.update({ table: 'users', data: { lst: 'x' }, all: true }), 'field_unknown');
  });

  on('the result of $CONCAT must be valid for its field', async (db, adapter) => {
    await db.schema.create('fits', {
      id: { type: 'integer', primaryKey: true },
      word: { type: 'enum', enumValues: ['a', 'b', 'é', '20'] },
      key: 'uuid',
      part: 'text',
    });
    const upper = 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11';
    const key = quote('key');
    await rows(adapter, `INSERT INTO fits (id, word, ${key}, part) VALUES (1, 'a', '${upper.toLowerCase()}', '2')`);
    const storedValues = () => rows(adapter, `SELECT word, ${key} AS k, part FROM fits`);
    const before = await storedValues();
    const set = (field: string, ...$CONCAT: Json[]) =>
      db.update({ table: 'fits', data: { [field]: { $CONCAT } }, all: true });
    for (const wrong of ['2', '1', 'B', 'b ', 'e', ''])
      await expectError(set('word', { $literal: wrong }), 'data_violates');
    await expectError(set('word', 'part'), 'data_violates');
    for (const wrong of ['garbage', '', `${upper}0`])
      await expectError(set('key', { $literal: wrong }), 'data_violates');
    assert.deepEqual(await storedValues(), before);
    assert.deepEqual(await set('word', 'part', '0'), { matched: 1, modified: 1 });
    assert.deepEqual(await set('key', { $literal: upper }), { matched: 1, modified: 0 });
    assert.deepEqual(await set('key', { $literal: `B${upper.slice(1)}` }), { matched: 1, modified: 1 });
    assert.deepEqual(await storedValues(), [{ word: '20', k: `b${upper.slice(1).toLowerCase()}`, part: '2' }]);
  });

  on('"now" in db.update is the time of the engine', async (db, adapter) => {
    const clock = { day: 'date', time: 'time', wall: 'datetime', at: 'timestamp' } as const;
    await db.schema.create('t', { id: { type: 'integer', primaryKey: true }, ...clock });
    await rows(adapter, "INSERT INTO t (id, at) VALUES (1, '2020-01-01'), (2, '2037-01-01')");
    const data = { day: 'now', time: 'now', wall: 'now', at: 'now' };
    assert.equal((await db.update({ table: 't', data, where: { at: { $lt: 'now' } } })).modified, 1);
    const set = 'day IS NOT NULL AND time IS NOT NULL AND wall > day';
    const year = "at BETWEEN '2026-01-01' AND '2036-01-01'";
    assert.deepEqual(
      (await rows(adapter, `SELECT id FROM t WHERE ${set} AND ${year}`)).map(({ id }) => Number(id)),
      [1],
    );
  });

  on('db.update matches numbers of single precision, and does not change their value', async (db, adapter) => {
    await db.schema.create('marks', { id: { type: 'integer', primaryKey: true }, f: 'float', n: 'integer' });
    await rows(adapter, 'INSERT INTO marks (id, f) VALUES (1, 1.1), (2, 2.5), (3, NULL), (4, -0.1)');
    const matched = async (where: Record<string, Json>) =>
      (await db.update({ table: 'marks', data: { n: 1 }, where })).matched;
    assert.equal(await matched({ f: 1.1 }), 1);
    assert.equal(await matched({ f: { $ne: 1.1 } }), 3);
    assert.equal(await matched({ f: { $in: [1.1, -0.1, 7] } }), 2);
    assert.equal(await matched({ f: { $gt: 1.1 } }), 1);
    assert.equal(await matched({ f: { $lte: -0.1 } }), 1);
    assert.equal(await matched({ f: { $lt: 1e300 } }), 3, 'beyond its range');
    const again = { table: 'marks', data: { f: 1.1 }, where: { id: { $lte: 2 } } };
    assert.deepEqual(await db.update(again), { matched: 2, modified: 1 });
    assert.deepEqual(await db.update(again), { matched: 2, modified: 0 });
  });

  on('db.update compares JSON by value, not by text', async (db, adapter) => {
    await db.schema.create('papers', {
      id: { type: 'integer', primaryKey: true },
      data: 'json',
      list: { type: 'array', items: 'string' },
      n: 'integer',
    });
    await rows(
      adapter,
      `INSERT INTO papers (id, data) VALUES (1, '{ "b": [1, 2],  "a": "é" }'), (2, '"x"'), (3, NULL)`,
    );
    const set = (data: Record<string, Json>, where: Record<string, Json>) =>
      db.update({ table: 'papers', data, where });
    assert.deepEqual(await set({ n: 1 }, { data: { a: 'é', b: [1, 2] } }), { matched: 1, modified: 1 });
    assert.deepEqual(await set({ n: 2 }, { data: 'x' }), { matched: 1, modified: 1 });
    assert.equal((await set({ n: 3 }, { data: { $in: ['x', { b: [1, 2], a: 'é' }, null] } })).matched, 3);
    assert.equal((await set({ n: 4 }, { data: { $ne: 'x' } })).matched, 2);
    assert.deepEqual(await set({ data: { a: 'é', b: [1, 2] } }, { id: { $lte: 3 } }), { matched: 3, modified: 2 });
    assert.deepEqual(await set({ data: { a: 'é', b: [2, 1] } }, { id: 1 }), { matched: 1, modified: 1 });
    assert.deepEqual(await set({ list: ['1', '2'] }, { id: 1 }), { matched: 1, modified: 1 });
    assert.deepEqual(await set({ list: ['1', '2'] }, { list: ['1', '2'] }), { matched: 1, modified: 0 });
    assert.deepEqual(await set({ data: null }, { id: { $gte: 2 } }), { matched: 2, modified: 2 });
  });
}

for (const engine of committingEngines) {
  if (engine.missing !== undefined) {
    test.skip(`${engine.name}: the statements of a result`, engine.missing);
    continue;
  }
  test(`${engine.name}: a result lists the statements that were sent, with the attributes from the catalog`, () =>
    engine.withDatabase(async (adapter) => {
      await rows(
        adapter,
        "CREATE TABLE old (id int PRIMARY KEY, v varchar(20) NOT NULL COMMENT 'kept', g varchar(100) AS (v) VIRTUAL)",
      );
      const db = new Database(adapter);
      const { migration, statements } = await db.schema.modifyField('old', 'v', { length: 30 });
      assert.deepEqual(statements, ["ALTER TABLE `old` MODIFY COLUMN `v` varchar(30) NOT NULL COMMENT 'kept'"]);
      const more = {
        ...migration,
        tag: '99990101_000000_more',
        up: [
          { type: 'modifyField', collection: 'old', field: 'v', changes: { length: 40 } },
          { type: 'modifyField', collection: 'old', field: 'g', changes: { length: 200 } },
        ] as const,
        down: [],
      };
      const [planned] = await previewMigrate(adapter, [definedInCode(more)]);
      const laterModel: string[] = [];
      await migrate(adapter, [definedInCode(more)], {
        onEvent: (event) => {
          if (event.type === 'finished') laterModel.push(...event.statements);
        },
      });
      assert.deepEqual(
        laterModel,
        planned?.statements.map(({ text }) => text),
      );
      assert.match(laterModel[1] ?? '', /varchar\(200\) GENERATED ALWAYS AS/);
    }));
}
