import * as assert from 'node:assert/strict';
import { createColors } from 'picocolors';
import { withDefaults } from '../cli/base.ts';
import { exitStatus } from '../cli/exit-status.ts';
import { errorLines } from '../cli/output.ts';
import type { ErrorCode } from '../core/error-codes.ts';
import { migrate } from '../core/migration/migrate.ts';
import type { Migration } from '../core/migration/migration.ts';
import type { Target } from '../core/migration/target.ts';
import type { Operation } from '../core/schema/operation.ts';
import { errorJson, errorText } from './kit/command-error.ts';
import { engines, type TestEngine } from './kit/engines.ts';
import { readMigrations } from './kit/load.ts';
import { definedInCode } from './kit/migrations.ts';
import { freshFolder } from './kit/pglite.ts';
import { assertExit, json, LONG, type Project, project } from './kit/project.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

const MIGRATIONS = 'svc/database/migrations/main';
const users: Migration = {
  tag: '20260101_000000_users',
  name: 'users',
  up: [
    {
      type: 'createCollection',
      name: 'users',
      fields: [
        { name: 'id', type: 'integer', primaryKey: true },
        { name: 'team', type: 'integer' },
      ],
    },
  ],
  down: [{ type: 'dropCollection', collection: 'users' }],
};
const TAG = '20260202_000000_next';
const next = (up: readonly Operation[], tag = TAG): Migration => ({ tag, name: 'next', up, down: [] });
const raw = (statement: string, more: object = {}): Operation => ({
  type: 'raw',
  dialect: 'postgresql',
  statement,
  ...more,
});
const table = (name: string): Operation => ({
  type: 'createCollection',
  name,
  fields: [{ name: 'id', type: 'integer', primaryKey: true }],
});
const write = (shop: Project, ...migrations: readonly Migration[]): void => {
  for (const one of migrations) shop.write(`${MIGRATIONS}/${one.tag}.json`, one);
};

/** The catalog, the history and the rows, which a rejected command must not change. */
async function readState({ connection }: Target): Promise<object> {
  return {
    model: await connection.introspect(),
    relations: await connection.query(
      "SELECT relname, relkind FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1",
    ),
    rows: await connection.query('SELECT * FROM users ORDER BY id'),
    history: await connection.query('SELECT tag, seq, status, step, checksum FROM _svc_migrations ORDER BY seq'),
    journal: await connection.query('SELECT tag FROM _svc_migrations WHERE journal IS NOT NULL'),
  };
}

/** A database with the table `users` and three rows, and the project that created it. */
function withShop(
  engine: TestEngine,
  body: (shop: Project, withTarget: <T>(work: (adapter: Target) => Promise<T>) => Promise<T>) => Promise<void>,
): Promise<void> {
  return engine.withUrl(async (url, connect) => {
    const withTarget = async <T>(work: (adapter: Target) => Promise<T>): Promise<T> => {
      const adapter = await connect();
      try {
        return await work(adapter);
      } finally {
        await adapter.connection.close();
      }
    };
    await withTarget(createUsers);
    const shop = project({ main: url });
    write(shop, users);
    await body(shop, withTarget);
  });
}

async function createUsers(adapter: Target): Promise<void> {
  await migrate(adapter, [definedInCode(users)]);
  await adapter.connection.query('INSERT INTO users VALUES (1, 7), (2, 7), (3, NULL)');
}

interface BadInput {
  readonly what: string;
  readonly migrations?: readonly Migration[];
  readonly up?: readonly Operation[];
  readonly before?: string;
  readonly status: number;
  readonly code: ErrorCode;
  readonly messages: readonly RegExp[];
}

const BAD_INPUTS: readonly BadInput[] = [
  {
    what: 'a table that exists',
    up: [table('users')],
    status: 2,
    code: 'collection_exists',
    messages: [/already exists/, /Nothing was changed/],
  },
  {
    what: 'a table that another program created',
    before: 'CREATE TABLE theirs (id integer)',
    up: [table('ours'), table('theirs')],
    status: 2,
    code: 'collection_exists',
    messages: [
      /already exists/,
      /svc db schema pull[\s\S]*drop the existing table/,
      /None of it took effect/,
      /step 2 of 2/,
    ],
  },
  {
    what: 'a table that does not exist',
    up: [{ type: 'addField', collection: 'user', field: { name: 'a', type: 'text' } }],
    status: 2,
    code: 'collection_unknown',
    messages: [/"user"/, /Nothing was changed/],
  },
  {
    what: 'a field that does not exist',
    up: [table('ours'), { type: 'dropField', collection: 'users', field: 'taem' }],
    status: 2,
    code: 'field_unknown',
    messages: [/users\.taem/, /id, team/, /up\[1\]/],
  },
  {
    what: 'a foreign key to an unknown table',
    up: [
      {
        type: 'addConstraint',
        collection: 'users',
        constraint: {
          name: 'f',
          type: 'foreignKey',
          columns: ['team'],
          references: { table: 'teams', columns: ['id'] },
        },
      },
    ],
    status: 2,
    code: 'collection_unknown',
    messages: [/teams/],
  },
  {
    what: 'a foreign key that rows violate',
    up: [
      table('teams'),
      {
        type: 'addConstraint',
        collection: 'users',
        constraint: {
          name: 'f',
          type: 'foreignKey',
          columns: ['team'],
          references: { table: 'teams', columns: ['id'] },
        },
      },
    ],
    status: 1,
    code: 'data_violates',
    messages: [/23503/, /step 2 of 2/, /None of it took effect/],
  },
  {
    what: 'a NOT NULL field without default on rows',
    up: [table('ours'), { type: 'addField', collection: 'users', field: { name: 'a', type: 'text', required: true } }],
    status: 1,
    code: 'data_violates',
    messages: [/23502/, /default/, /None of it took effect/, new RegExp(`Do so in "${TAG}".*may be edited`)],
  },
  {
    what: 'NOT NULL on a field with NULL in it',
    up: [{ type: 'modifyField', collection: 'users', field: 'team', changes: { required: true } }],
    status: 1,
    code: 'data_violates',
    messages: [/23502/, /fill the rows/],
  },
  {
    what: 'a unique index over duplicates',
    up: [{ type: 'createIndex', collection: 'users', index: 'u', columns: [{ name: 'team' }], unique: true }],
    status: 1,
    code: 'data_violates',
    messages: [/23505/, /columns team, constraint u/, /duplicates/],
  },
  {
    what: 'a unique index over duplicates, built concurrently',
    up: [
      {
        type: 'createIndex',
        collection: 'users',
        index: 'u',
        columns: [{ name: 'team' }],
        unique: true,
        sqlOptions: { concurrently: true },
      },
    ],
    status: 1,
    code: 'data_violates',
    messages: [/23505/, /None of it took effect/],
  },
  {
    what: 'a third step of five that fails',
    up: [table('a'), table('b'), raw('SELECT 1 / 0'), table('c'), table('d')],
    status: 1,
    code: 'data_violates',
    messages: [/22012.*division by zero/, /step 3 of 5: SELECT 1 \/ 0/, /None of it took effect/, new RegExp(TAG)],
  },
  {
    what: 'invalid SQL',
    up: [table('a'), raw('CREAT TABLE b (i int)')],
    status: 1,
    code: 'migration_failed',
    messages: [/42601.*CREAT/i, /step 2 of 2/],
  },
  {
    what: 'a COMMIT in raw text',
    up: [table('a'), raw('CREATE TABLE b (i int); COMMIT')],
    status: 2,
    code: 'migration_invalid',
    messages: [/COMMIT/, /up\[1\]/],
  },
  {
    what: 'a name of 64 bytes',
    up: [table('a'), table('é'.repeat(32))],
    status: 2,
    code: 'name_invalid',
    messages: [/64 bytes/, /63/],
  },
  {
    what: 'a migration edited after it was applied',
    migrations: [{ ...users, up: [table('users')] }, next([table('a')])],
    status: 5,
    code: 'migration_edited',
    messages: [/version control/, /20260101_000000_users\.json/],
  },
  {
    what: 'a history of a newer version',
    before: 'UPDATE _svc_meta SET "version" = 99',
    up: [table('a')],
    status: 2,
    code: 'history_newer',
    messages: [/99/, /npm install/],
  },
  {
    what: 'a database of another product',
    before: `UPDATE _svc_meta SET product = 'bank'`,
    up: [table('a')],
    status: 2,
    code: 'database_foreign',
    messages: [/bank/, /--adopt/],
  },
  {
    what: 'the drop of a field, not allowed',
    up: [{ type: 'dropField', collection: 'users', field: 'team' }],
    status: 8,
    code: 'destructive',
    messages: [/DROP COLUMN "team"/, /--allow-destructive/],
  },
];

// The messages are PostgreSQL's; those of MySQL and MariaDB are in mysql-bad-input.test.ts.
for (const engine of engines) {
  if (engine.missing !== undefined) test.skip(`${engine.name}: bad input`, engine.missing);
  else declare(engine);
}

/** Through the command, with both text and JSON output. */
function assertCommandRejects(
  engine: TestEngine,
  { migrations, up, before, status, code, messages }: BadInput,
): Promise<void> {
  return withShop(engine, async (shop, withTarget) => {
    write(shop, ...(migrations ?? [next(up ?? [])]));
    const initial = await withTarget(async (adapter) => {
      if (before !== undefined) await adapter.connection.query(before);
      return readState(adapter);
    });
    const allow = code === 'destructive' ? [] : ['--allow-destructive'];
    const text = errorText(await shop.svc('db', 'migrate', ...allow), status, code);
    for (const pattern of messages) assert.match(text, pattern);
    errorJson(await shop.svc('db', 'migrate', '--json', ...allow), status, code);
    assert.deepEqual(await withTarget(readState), initial);
  });
}

/** Through the functions that the command calls and its error text, all in one database that is emptied in between. */
async function assertRunRejects(
  adapter: Target,
  { migrations, up, before, status, code, messages }: BadInput,
): Promise<void> {
  await adapter.connection.query('DROP SCHEMA public CASCADE');
  await adapter.connection.query('CREATE SCHEMA public');
  await createUsers(adapter);
  const shop = project({});
  write(shop, users, ...(migrations ?? [next(up ?? [])]));
  if (before !== undefined) await adapter.connection.query(before);
  const initial = await readState(adapter);
  const defined = await readMigrations(shop.root, 'main');
  const error = await expectError(migrate(adapter, defined, { allowDestructive: code !== 'destructive' }), code);
  assert.equal(exitStatus(error), status);
  const text = errorLines(withDefaults(error), createColors(false)).join('\n');
  for (const pattern of messages) assert.match(text, pattern);
  assert.deepEqual(await readState(adapter), initial);
}

function declare(engine: TestEngine): void {
  // The command does not depend on the engine: one engine covers all.
  if (engine === engines.find(({ missing }) => missing === undefined)) {
    for (const bad of BAD_INPUTS)
      test(
        `${engine.name}: ${bad.what} is rejected and changes nothing`,
        () => assertCommandRejects(engine, bad),
        LONG,
      );
  } else {
    test(
      `${engine.name}: each of these is rejected and changes nothing`,
      () =>
        engine.withDatabase(async (adapter) => {
          for (const bad of BAD_INPUTS)
            await assertRunRejects(adapter, bad).catch((error) => {
              throw new Error(`${bad.what}: ${error}`, { cause: error });
            });
        }),
      LONG,
    );
  }

  test(
    `${engine.name}: a missing file stops the run and is restored from the history`,
    () =>
      withShop(engine, async (_shop, withTarget) => {
        const initial = await withTarget(readState);
        const url = _shop.read('svc.config.json');
        const other = project({});
        other.write('svc.config.json', url);
        write(other, next([table('a')]));
        const text = errorText(await other.svc('db', 'migrate'), 5, 'migration_missing');
        assert.match(text, /svc db migrate export 20260101_000000_users/);
        assert.deepEqual(await withTarget(readState), initial);
        assertExit(await other.svc('db', 'migrate', 'export', users.tag));
        assertExit(await other.svc('db', 'migrate'));
      }),
    LONG,
  );

  test(
    `${engine.name}: a failed third step of five outside a transaction needs a decision, and resumes after it`,
    () =>
      withShop(engine, async (shop, withTarget) => {
        const outsideTransaction = (statement: string) => raw(statement, { transaction: false });
        write(
          shop,
          next([
            outsideTransaction('CREATE TABLE a (i int)'),
            outsideTransaction('CREATE TABLE b (i int)'),
            outsideTransaction('INSERT INTO users VALUES (1, 1)'),
            outsideTransaction('CREATE TABLE c (i int)'),
            outsideTransaction('CREATE TABLE d (i int)'),
          ]),
        );
        const text = errorText(await shop.svc('db', 'migrate'), 6, 'migration_half_done');
        for (const pattern of [
          /2 of 5 steps are committed/,
          /23505/,
          /step 3 of 5/,
          /resolve 20260202_000000_next --retry/,
        ])
          assert.match(text, pattern);
        const again = errorJson(await shop.svc('db', 'migrate', '--json'), 6, 'migration_half_done');
        assert.equal(again.nextActions.length, 3);
        errorText(await shop.svc('db', 'migrate', 'rollback'), 6, 'migration_half_done');
        const status = assertExit(await shop.svc('db', 'migrate', 'status'), 6);
        assert.match(status.stdout, /^FAILED[\s\S]*\[!\] 20260202_000000_next {2}failed at step 3 of 5: INSERT/m);
        await withTarget(({ connection }) => connection.query('DELETE FROM users WHERE id = 1'));
        assertExit(await shop.svc('db', 'migrate', 'resolve', TAG, '--retry'));
        assert.match(assertExit(await shop.svc('db', 'migrate', 'status', '--check')).stdout, /^OK/);
        const created = await withTarget(({ connection }) =>
          connection.query(
            "SELECT string_agg(relname, '' ORDER BY relname) AS made FROM pg_class WHERE relname IN ('a', 'b', 'c', 'd')",
          ),
        );
        assert.deepEqual(created, [{ made: 'abcd' }]);
      }),
    LONG,
  );

  test(
    `${engine.name}: a raw step without down is applied and not rolled back`,
    () =>
      withShop(engine, async (shop, withTarget) => {
        write(shop, next([raw('CREATE TABLE a (i int)')]));
        assertExit(await shop.svc('db', 'migrate'));
        const initial = await withTarget(readState);
        const text = errorText(await shop.svc('db', 'migrate', 'rollback'), 2, 'irreversible');
        assert.match(text, /svc db migrate create/);
        errorText(await shop.svc('db', 'migrate', 'rollback', '-n', '2'), 2, 'irreversible');
        assert.deepEqual(await withTarget(readState), initial);
      }),
    LONG,
  );

  test(
    `${engine.name}: a migration older than the applied ones runs after a branch merge, with a notice`,
    () =>
      withShop(engine, async (shop, withTarget) => {
        write(shop, next([table('late')]));
        assertExit(await shop.svc('db', 'migrate'));
        write(shop, { ...next([table('early')], '20260115_000000_early'), name: 'early' });
        const { stderr } = assertExit(await shop.svc('db', 'migrate'));
        assert.match(stderr, /warning Older than "20260202_000000_next"[^\n]*20260115_000000_early/);
        const history = await withTarget(({ connection }) =>
          connection.query('SELECT tag FROM _svc_migrations ORDER BY seq'),
        );
        assert.deepEqual(
          history.map(({ tag }) => tag),
          [users.tag, TAG, '20260115_000000_early'],
        );
        // Rolled back in the reverse order of application, not of tags.
        assert.match(
          assertExit(await shop.svc('db', 'migrate', 'rollback', '--dry-run', '--json'), 2).stdout,
          /20260115_000000_early/,
        );
      }),
    LONG,
  );

  test(
    `${engine.name}: names of every kind work from schema file to database`,
    () =>
      engine.withUrl(async (url) => {
        const shop = project({ main: url });
        shop.schema(entry());
        assertExit(await shop.svc('db', 'schema', 'generate'));
        assertExit(await shop.svc('db', 'migrate'));
        assertExit(await shop.svc('db', 'schema', 'check'));
        assert.match(assertExit(await shop.svc('db', 'schema', 'generate')).stdout, /^Nothing to generate/);
        shop.schema(entry({ more: 'Text' }));
        assertExit(await shop.svc('db', 'schema', 'generate'));
        assertExit(await shop.svc('db', 'migrate'));
        assertExit(await shop.svc('db', 'schema', 'check'));
        const { databases } = json(assertExit(await shop.svc('db', 'migrate', 'status', '--json')));
        assert.equal(databases[0].state, 'OK');
        assertExit(await shop.svc('db', 'migrate', 'rollback', '-n', String(databases[0].total)));
        assertExit(await shop.svc('db', 'schema', 'check'));
      }),
    LONG,
  );
}

const NAMES = [
  'with "quotes"',
  "it's",
  ' spaces ',
  'CapitalS',
  'capitals',
  'emo😀ji',
  'select',
  'back\\slash',
  'dot.ted',
  'line\nbreak',
  '$1',
  '%s',
  '__proto__',
  'x'.repeat(63),
  `${'é'.repeat(31)}x`,
];

/** Tables with these names, each with a field, an index, an enum and a foreign key of the same name. */
function entry(more: object = {}): readonly object[] {
  const named = <T>(value: (name: string, index: number) => T): Record<string, T> =>
    Object.fromEntries(NAMES.map((name, index) => [name, value(name, index)]));
  // What is before a dot is a schema.
  const tableOf = (name = ''): string => (name.includes('.') ? `public.${name}` : name);
  const byTable = (all: Readonly<Record<string, unknown>>) =>
    Object.fromEntries(Object.entries(all).map(([name, value]) => [tableOf(name), value]));
  const tables = named((name, index) => ({
    id: { type: 'Integer', primaryKey: true },
    ...Object.fromEntries([[name, { type: 'String', default: name }]]),
    kind: { type: 'Enum', enumValues: [name, 'other'], default: name },
    ref: { type: 'Integer', references: { table: tableOf(NAMES[(index + 1) % NAMES.length]), column: 'id' } },
    ...more,
  }));
  const indexes = named((name) => [{ columns: [name, 'id'], unique: true }]);
  return [{ db: 'main', tables: byTable(tables), indexes: byTable(indexes) }];
}

// ---- schema files, without a database

const id = { type: 'Integer', primaryKey: true };
const SCHEMAS: readonly [what: string, text: string | object, code: string, messages: RegExp][] = [
  ['invalid JSON', '[\n  { "db": main }\n]', 'schema_invalid', /schema\.json:2:11/],
  ['an unknown type', { t: { id, a: 'integr' } }, 'field_type_unknown', /integer/],
  ['an unknown property', { t: { id, a: { type: 'integer', uniqe: true } } }, 'field_invalid', /unique/],
  [
    'a duplicate name',
    '[{ "db": "main", "tables": {\n"t": { "id": "integer" },\n"t": {} } }]',
    'schema_invalid',
    /schema\.json:3:1/,
  ],
  [
    'a foreign key to an unknown table',
    { t: { id, a: { type: 'integer', references: { table: 'nowhere', column: 'id' } } } },
    'collection_unknown',
    /nowhere/,
  ],
  ['a table name of 64 bytes', { ['x'.repeat(64)]: { id } }, 'name_invalid', /64 bytes/],
  ['a field name of what is kept', { t: { id, _svc_kept_mine: 'text' } }, 'name_invalid', /_svc_kept_ are reserved/],
  ['a field name of 64 bytes', { t: { id, ['😀'.repeat(16)]: 'text' } }, 'name_invalid', /64 bytes/],
  ['an empty name', { t: { id, '': 'text' } }, 'name_invalid', /empty/],
];

for (const [what, schema, code, messages] of SCHEMAS) {
  test(
    `a schema file with ${what} is rejected and no migration is written`,
    async () => {
      const shop = project({ main: 'postgresql://postgres@127.0.0.1:1/none' });
      if (typeof schema === 'string') shop.write('svc/database/schema.json', schema);
      else shop.schema(schema);
      assert.match(errorText(await shop.svc('db', 'schema', 'generate'), 2, code), messages);
      errorJson(await shop.svc('db', 'schema', 'generate', '--json'), 2, code);
      assert.deepEqual(shop.files(), []);
    },
    LONG,
  );
}

test(
  'a link and SVC_ENV that disagree are rejected until --env decides',
  async () => {
    const { url, drop } = await freshFolder();
    try {
      const shop = project({ main: url }, {}, { SVC_ENV: 'prd' });
      shop.write('svc/config.json', { product: 'shop', env: 'dev' });
      const text = errorText(await shop.svc('db', 'migrate'), 2, 'env_conflict');
      assert.match(text, /--env dev or --env prd/);
      assert.match(assertExit(await shop.svc('db', 'migrate', 'status', '--env', 'dev')).stdout, /^OK {2}main \(dev\)/);
    } finally {
      await drop();
    }
  },
  LONG,
);
