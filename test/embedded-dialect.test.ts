import * as assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Connection } from '../core/dialect.ts';
import { isSvcError } from '../core/errors.ts';
import { describeDifferences } from '../core/schema/diff.ts';
import type { SchemaModel } from '../core/schema/model.ts';
import type { CreateCollection, Operation } from '../core/schema/operation.ts';
import { duckdb } from '../examples/dialect-duckdb/src/index.ts';
import { sqlite } from '../examples/dialect-sqlite/src/index.ts';
import { SYNTAX } from '../examples/dialect-sqlite/src/syntax.ts';
import { embeddedDialect, engineErrors } from '../plugins/dialects/toolkit.ts';
import { folder } from './kit/folder.ts';
import { test } from './kit/test.ts';
import { runOperations } from './suites/run-operations.ts';

const newUrl = () => `duckdb://${join(folder(), 'test.db')}`;

async function connected(work: (connection: Connection, url: string) => Promise<void>): Promise<void> {
  const url = newUrl();
  const connection = await duckdb.connect(url, {});
  try {
    await work(connection, url);
  } finally {
    await connection.close();
  }
}

const run = (connection: Connection, operations: readonly Operation[], from?: SchemaModel, dialect = duckdb) =>
  runOperations(dialect, connection, operations, from);

const TEAMS: CreateCollection = {
  type: 'createCollection',
  name: 'teams',
  fields: [
    { name: 'id', type: 'integer', primaryKey: true },
    { name: 'title', type: 'string', length: 40, default: "it's" },
    { name: 'notes', type: 'text' },
    { name: 'mood', type: 'enum', enumValues: ['a', 'b'] },
  ],
};
const RULE: Operation = {
  type: 'addConstraint',
  collection: 'teams',
  constraint: { name: 'positive', type: 'check', expression: 'id > 0' },
};

test('a change outside svc is read, and the rest of the table stays what svc wrote', async () => {
  await connected(async (connection) => {
    const model = await run(connection, [TEAMS, RULE]);
    const expected = await connection.normalize(model);
    assert.deepEqual(describeDifferences(expected, await connection.introspect()), []);
    assert.deepEqual(await connection.unsupportedObjects(), []);
    await connection.query('ALTER TABLE teams ADD COLUMN extra INTEGER');
    const changed = await connection.introspect();
    const teams = changed.get('teams');
    assert.deepEqual(teams?.fields.get('extra'), { name: 'extra', type: 'integer' });
    assert.deepEqual(teams?.fields.get('title'), expected.get('teams')?.fields.get('title'));
    assert.deepEqual(teams?.fields.get('mood'), expected.get('teams')?.fields.get('mood'));
    assert.deepEqual(teams?.constraints, expected.get('teams')?.constraints);
    // "mood" has a type that DuckDB rewrites, but comes from the stored definition.
    const [found, ...others] = await connection.unsupportedObjects();
    assert.match(found?.what ?? '', /was changed since/);
    assert.deepEqual(others, []);
  });
});

test('a change outside svc is still seen after svc renames the table', async () => {
  await connected(async (connection) => {
    const model = await run(connection, [TEAMS]);
    await connection.query('ALTER TABLE teams ADD COLUMN extra INTEGER');
    await run(connection, [{ type: 'renameCollection', collection: 'teams', to: 'groups' }], model);
    const found = await connection.introspect();
    assert.deepEqual([...found.keys()], ['groups']);
    assert.ok(found.get('groups')?.fields.has('extra'));
  });
});

test('a table that is created over one of another program is not read as what svc wanted', async () => {
  await connected(async (connection) => {
    await connection.query('CREATE TABLE teams (id INTEGER PRIMARY KEY, other BLOB)');
    await run(connection, [{ ...TEAMS, options: { sqlOptions: { ifNotExists: true } } }]);
    const teams = (await connection.introspect()).get('teams');
    assert.deepEqual([...(teams?.fields.keys() ?? [])], ['id', 'other']);
  });
});

test('a table with an index can be renamed, and keeps the index', async () => {
  await connected(async (connection) => {
    const index: Operation = {
      type: 'createIndex',
      collection: 'teams',
      index: 'by_title',
      columns: [{ name: 'title' }],
    };
    const model = await run(connection, [TEAMS, index]);
    const [statement] = duckdb.compile({ type: 'renameCollection', collection: 'teams', to: 'groups' }, model);
    assert.equal(
      statement?.text,
      'DROP INDEX "by_title";\nALTER TABLE "teams" RENAME TO "groups";\nCREATE INDEX "by_title" ON "groups" ("title")',
    );
    const renamed = await run(connection, [{ type: 'renameCollection', collection: 'teams', to: 'groups' }], model);
    assert.deepEqual(describeDifferences(await connection.normalize(renamed), await connection.introspect()), []);
  });
});

test('connections of a process share one instance, which closes with the last of them', async () => {
  await connected(async (first, url) => {
    const second = await duckdb.connect(url, {});
    await run(first, [TEAMS]);
    assert.equal(await second.count('teams', 1), 0);
    await second.close();
    await second.close();
    await assert.rejects(second.now(), (error) => isSvcError(error) && error.code === 'connection_lost');
    assert.equal(await first.count('teams', 1), 0);
    await first.close();
    const again = await duckdb.connect(url, {});
    assert.deepEqual([...(await again.introspect()).keys()], ['teams']);
    await again.close();
  });
});

/** A process that opens the file and keeps it until it is killed. */
async function holder(url: string): Promise<{ release(): Promise<void> }> {
  const script = `import { DuckDBInstance } from '@duckdb/node-api';
    globalThis.instance = await DuckDBInstance.create(${JSON.stringify(url.slice('duckdb://'.length))});
    console.log('open');
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const closed = once(child, 'close');
  await once(child.stdout, 'data');
  return {
    async release() {
      child.kill('SIGKILL');
      await closed;
    },
  };
}

test('a file that another process has open is waited for', async () => {
  const url = newUrl();
  const other = await holder(url);
  try {
    await assert.rejects(
      duckdb.connect(url, {}),
      (error) =>
        isSvcError(error) &&
        error.code === 'database_in_use' &&
        error.message.includes(url.slice('duckdb://'.length)) &&
        error.why !== undefined &&
        error.next.length > 0,
    );
    const abort = new AbortController();
    await assert.rejects(
      duckdb.connect(url, { busyTimeoutMs: 60_000, signal: abort.signal, onWait: () => abort.abort() }),
      (error) => isSvcError(error) && error.code === 'interrupted',
    );
    let waits = 0;
    const connection = await duckdb.connect(url, {
      busyTimeoutMs: 60_000,
      onWait() {
        waits += 1;
        void other.release();
      },
    });
    assert.equal(waits, 1);
    await connection.close();
  } finally {
    await other.release();
  }
});

const withSqlite = async (work: (connection: Connection) => Promise<void>) => {
  const connection = await sqlite.connect(`sqlite://${join(folder(), 'test.db')}`, {});
  await work(connection).finally(() => connection.close());
};

test('a URL without a path to a file is rejected', () => {
  for (const url of ['shop.turso.io', 'shop.db', ':memory:', '', './100%.db'])
    assert.throws(
      () => sqlite.identify(`sqlite://${url}`),
      (error) => isSvcError(error) && error.code === 'url_invalid' && error.next.length === 1,
      url,
    );
  for (const url of ['./shop.db', '../shop.db', '/tmp/shop.db', './a%20b.db']) sqlite.identify(`sqlite://${url}`);
});

test('synonyms of column types are read, and unknown types are listed', async () => {
  await withSqlite(async (connection) => {
    await connection.query(
      'CREATE TABLE teams (id INT(11) PRIMARY KEY, "the size" MONEY(9), other, title NVARCHAR(40))',
    );
    const teams = (await connection.introspect()).get('teams');
    assert.deepEqual(
      [...(teams?.fields.values() ?? [])],
      [
        { name: 'id', type: 'integer', primaryKey: true, required: true },
        { name: 'the size', type: 'text' },
        { name: 'other', type: 'text' },
        { name: 'title', type: 'string', length: 40 },
      ],
    );
    const found = (await connection.unsupportedObjects()).filter(({ field }) => field !== undefined);
    assert.deepEqual(found, [
      { collection: 'teams', field: 'the size', what: 'has the type MONEY (9), which svc reads as text' },
      { collection: 'teams', field: 'other', what: 'has no type, and svc reads it as text' },
    ]);
  });
});

test('triggers and views are listed', async () => {
  await withSqlite(async (connection) => {
    await run(connection, [TEAMS], new Map(), sqlite);
    await connection.query('CREATE TRIGGER "ring" AFTER INSERT ON teams BEGIN DELETE FROM teams WHERE id < 0; END');
    await connection.query('CREATE VIEW few AS SELECT id FROM teams');
    assert.deepEqual(await connection.unsupportedObjects(), [
      {
        collection: 'teams',
        what: 'has the trigger "ring", which svc does not manage; it is kept when svc recreates the table',
      },
      { what: 'has the view "few", which svc does not manage' },
    ]);
    assert.deepEqual([...(await connection.introspect()).keys()], ['teams']);
  });
});

test('a table with a field that no migration made is not recreated without it', async () => {
  for (const [dialect, use] of [
    [sqlite, withSqlite],
    [duckdb, connected],
  ] as const) {
    await use(async (connection) => {
      const model = await run(connection, [TEAMS], new Map(), dialect);
      await connection.query('ALTER TABLE teams ADD COLUMN hack integer');
      await connection.query("INSERT INTO teams (id, mood, hack) VALUES (1, 'a', 42)");
      const shorten: Operation = { type: 'modifyField', collection: 'teams', field: 'title', changes: { length: 20 } };
      await assert.rejects(run(connection, [shorten], model, dialect), /has fields that no migration made: hack/);
      assert.equal(Number((await connection.query('SELECT hack FROM teams'))[0]?.hack), 42);
      const adopted = await connection.introspect();
      await run(connection, [shorten], adopted, dialect);
      assert.equal(Number((await connection.query('SELECT hack FROM teams'))[0]?.hack), 42);
    });
  }
});

test('triggers and partial indexes are kept when their table is recreated', async () => {
  await withSqlite(async (connection) => {
    const model = await run(connection, [TEAMS], new Map(), sqlite);
    await connection.query('CREATE TRIGGER ring AFTER INSERT ON teams BEGIN DELETE FROM teams WHERE id < 0; END');
    await connection.query('CREATE UNIQUE INDEX once ON teams (mood) WHERE id > 10');
    const before = await connection.unsupportedObjects();
    await run(connection, [RULE, { type: 'dropField', collection: 'teams', field: 'notes' }], model, sqlite).catch(
      () => 0,
    );
    assert.ok(!(await connection.introspect()).get('teams')?.fields.has('notes'));
    assert.deepEqual(await connection.unsupportedObjects(), before);
    assert.deepEqual(before.map(({ what }) => /"(\w+)"/.exec(what)?.[1]).sort(), ['once', 'ring']);
    await connection.query("INSERT INTO teams (id, mood) VALUES (11, 'a')");
    await assert.rejects(connection.query("INSERT INTO teams (id, mood) VALUES (12, 'a')"), /Rows in the table/);
  });
});

test('a table that a view selects from is not recreated, and stays as it was', async () => {
  await withSqlite(async (connection) => {
    const model = await run(connection, [TEAMS], new Map(), sqlite);
    await connection.query('CREATE VIEW few AS SELECT id FROM teams');
    await connection.query('INSERT INTO teams (id) VALUES (1)');
    await assert.rejects(
      run(connection, [{ type: 'dropField', collection: 'teams', field: 'notes' }], model, sqlite),
      (error) => isSvcError(error) && error.why?.includes('error in view few') === true,
    );
    assert.equal(await connection.count('teams', 2), 1);
    assert.ok((await connection.introspect()).get('teams')?.fields.has('notes'));
  });
});

test('an error that the dialect does not recognize is reported as an error of the dialect', async () => {
  const { capabilities } = sqlite;
  const dialect = (open: Parameters<typeof embeddedDialect>[0]['open']) =>
    embeddedDialect({
      rules: { name: 'abacus', names: capabilities.names, unsupported: capabilities.unsupported },
      syntax: SYNTAX,
      errors: engineErrors({ engine: 'Abacus', isEngineError: () => false, messages: {}, duplicate: /taken/ }),
      open,
    });
  const fails = (): never => {
    throw new TypeError('a bead fell off');
  };
  const isReported = (error: unknown) =>
    isSvcError(error) &&
    error.code === 'plugin_invalid' &&
    error.message.includes('"abacus"') &&
    error.why === 'a bead fell off' &&
    error.where?.includes('embedded-dialect.test') === true &&
    error.cause instanceof TypeError;
  const url = `abacus://${join(folder(), 'test.db')}`;
  await assert.rejects(dialect(async () => fails()).connect(url, {}), isReported);
  const connection = await dialect(async () => ({ server: 'Abacus', exec: fails, close() {} })).connect(url, {});
  await assert.rejects(connection.now(), isReported);
  await connection.close();
});
