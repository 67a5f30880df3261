import * as assert from 'node:assert/strict';
import { createColors } from 'picocolors';
import { withDefaults } from '../cli/base.ts';
import { exitStatus } from '../cli/exit-status.ts';
import { errorLines } from '../cli/output.ts';
import { readMigrations } from './kit/load.ts';
import type { Target } from '../core/migration/target.ts';
import type { ErrorCode } from '../core/errors.ts';
import type { Migration } from '../core/migration/migration.ts';
import { migrate } from '../core/migration/migrate.ts';
import type { Operation } from '../core/schema/operation.ts';
import { definedInCode } from './kit/defined.ts';
import { engines, type TestEngine } from './kit/engines.ts';
import { freshFolder } from './kit/pglite.ts';
import { type Project, project } from './kit/project.ts';
import { expectError } from './suites/expect-error.ts';
import { refusedJson, refusedText } from './kit/refused-command.ts';
import { json, LONG, ok } from './kit/shop.ts';
import { test } from './kit/test.ts';

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

/** The catalog, the history and the rows: what a refusal must leave as it is. */
async function everything({ connection }: Target): Promise<object> {
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

/** A database with the table `users`, three rows in it, and the project that made it. */
function onShop(
  engine: TestEngine,
  body: (shop: Project, look: <T>(work: (adapter: Target) => Promise<T>) => Promise<T>) => Promise<void>,
): Promise<void> {
  return engine.withUrl(async (url, connect) => {
    const look = async <T>(work: (adapter: Target) => Promise<T>): Promise<T> => {
      const adapter = await connect();
      try {
        return await work(adapter);
      } finally {
        await adapter.connection.close();
      }
    };
    await look(makeUsers);
    const shop = project({ main: url });
    write(shop, users);
    await body(shop, look);
  });
}

async function makeUsers(adapter: Target): Promise<void> {
  await migrate(adapter, [definedInCode(users)]);
  await adapter.connection.query('INSERT INTO users VALUES (1, 7), (2, 7), (3, NULL)');
}

interface Bad {
  readonly what: string;
  readonly migrations?: readonly Migration[];
  readonly up?: readonly Operation[];
  readonly before?: string;
  readonly status: number;
  readonly code: ErrorCode;
  readonly says: readonly RegExp[];
}

const BAD: readonly Bad[] = [
  {
    what: 'a table that exists',
    up: [table('users')],
    status: 2,
    code: 'collection_exists',
    says: [/already exists/, /Nothing was changed/],
  },
  {
    what: 'a table that somebody else made',
    before: 'CREATE TABLE theirs (id integer)',
    up: [table('ours'), table('theirs')],
    status: 2,
    code: 'collection_exists',
    says: [/already exists/, /svc db schema pull[\s\S]*drop the existing table/, /None of it took effect/, /step 2 of 2/],
  },
  {
    what: 'a table that does not exist',
    up: [{ type: 'addField', collection: 'user', field: { name: 'a', type: 'text' } }],
    status: 2,
    code: 'collection_unknown',
    says: [/"user"/, /Nothing was changed/],
  },
  {
    what: 'a field that does not exist',
    up: [table('ours'), { type: 'dropField', collection: 'users', field: 'taem' }],
    status: 2,
    code: 'field_unknown',
    says: [/users\.taem/, /id, team/, /up\[1\]/],
  },
  {
    what: 'a foreign key to nowhere',
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
    says: [/teams/],
  },
  {
    what: 'a foreign key that rows break',
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
    says: [/23503/, /step 2 of 2/, /None of it took effect/],
  },
  {
    what: 'a NOT NULL field without default on rows',
    up: [table('ours'), { type: 'addField', collection: 'users', field: { name: 'a', type: 'text', required: true } }],
    status: 1,
    code: 'data_violates',
    says: [/23502/, /default/, /None of it took effect/, new RegExp(`Do so in "${TAG}".*may be edited`)],
  },
  {
    what: 'NOT NULL on a field with NULL in it',
    up: [{ type: 'modifyField', collection: 'users', field: 'team', changes: { required: true } }],
    status: 1,
    code: 'data_violates',
    says: [/23502/, /fill the rows/],
  },
  {
    what: 'a unique index over duplicates',
    up: [{ type: 'createIndex', collection: 'users', index: 'u', columns: [{ name: 'team' }], unique: true }],
    status: 1,
    code: 'data_violates',
    says: [/23505/, /columns team, constraint u/, /duplicates/],
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
    says: [/23505/, /None of it took effect/],
  },
  {
    what: 'a third step of five that fails',
    up: [table('a'), table('b'), raw('SELECT 1 / 0'), table('c'), table('d')],
    status: 1,
    code: 'data_violates',
    says: [/22012.*division by zero/, /step 3 of 5: SELECT 1 \/ 0/, /None of it took effect/, new RegExp(TAG)],
  },
  {
    what: 'text that is no SQL',
    up: [table('a'), raw('CREAT TABLE b (i int)')],
    status: 1,
    code: 'migration_failed',
    says: [/42601.*CREAT/i, /step 2 of 2/],
  },
  {
    what: 'a COMMIT in raw text',
    up: [table('a'), raw('CREATE TABLE b (i int); COMMIT')],
    status: 2,
    code: 'migration_invalid',
    says: [/COMMIT/, /up\[1\]/],
  },
  {
    what: 'a name of 64 bytes',
    up: [table('a'), table('é'.repeat(32))],
    status: 2,
    code: 'name_invalid',
    says: [/64 bytes/, /63/],
  },
  {
    what: 'a migration edited after it was applied',
    migrations: [{ ...users, up: [table('users')] }, next([table('a')])],
    status: 5,
    code: 'migration_edited',
    says: [/version control/, /20260101_000000_users\.json/],
  },
  {
    what: 'a history of a newer version',
    before: 'UPDATE _svc_meta SET "version" = 99',
    up: [table('a')],
    status: 2,
    code: 'history_newer',
    says: [/99/, /npm install/],
  },
  {
    what: 'a database of another product',
    before: `UPDATE _svc_meta SET product = 'bank'`,
    up: [table('a')],
    status: 2,
    code: 'database_foreign',
    says: [/bank/, /--adopt/],
  },
  {
    what: 'the drop of a field, not allowed',
    up: [{ type: 'dropField', collection: 'users', field: 'team' }],
    status: 8,
    code: 'destructive',
    says: [/DROP COLUMN "team"/, /--allow-destructive/],
  },
];

// The words are PostgreSQL's; those of MySQL and MariaDB are in mysql-bad-input.test.ts.
for (const engine of engines) {
  if (engine.missing !== undefined) test.skip(`${engine.name}: bad input`, engine.missing);
  else declare(engine);
}

/** Through the command, in both forms of its words. */
function refusedByCommand(engine: TestEngine, { migrations, up, before, status, code, says }: Bad): Promise<void> {
  return onShop(engine, async (shop, look) => {
    write(shop, ...(migrations ?? [next(up ?? [])]));
    const was = await look(async (adapter) => {
      if (before !== undefined) await adapter.connection.query(before);
      return everything(adapter);
    });
    const allow = code === 'destructive' ? [] : ['--allow-destructive'];
    const text = refusedText(await shop.svc('db', 'migrate', ...allow), status, code);
    for (const pattern of says) assert.match(text, pattern);
    refusedJson(await shop.svc('db', 'migrate', '--json', ...allow), status, code);
    assert.deepEqual(await look(everything), was);
  });
}

/** By what the command calls, with the words it makes of that, all in one database that is emptied in between. */
async function refusedInside(adapter: Target, { migrations, up, before, status, code, says }: Bad): Promise<void> {
  await adapter.connection.query('DROP SCHEMA public CASCADE');
  await adapter.connection.query('CREATE SCHEMA public');
  await makeUsers(adapter);
  const shop = project({});
  write(shop, users, ...(migrations ?? [next(up ?? [])]));
  if (before !== undefined) await adapter.connection.query(before);
  const was = await everything(adapter);
  const defined = await readMigrations(shop.root, 'main');
  const error = await expectError(migrate(adapter, defined, { allowDestructive: code !== 'destructive' }), code);
  assert.equal(exitStatus(error), status);
  const text = errorLines(withDefaults(error), createColors(false)).join('\n');
  for (const pattern of says) assert.match(text, pattern);
  assert.deepEqual(await everything(adapter), was);
}

function declare(engine: TestEngine): void {
  // The command is the same on all: seen on one engine, seen on all.
  if (engine === engines.find(({ missing }) => missing === undefined)) {
    for (const bad of BAD)
      test(`${engine.name}: ${bad.what} is refused and changes nothing`, () => refusedByCommand(engine, bad), LONG);
  } else {
    test(
      `${engine.name}: each of these is refused and changes nothing`,
      () =>
        engine.withDatabase(async (adapter) => {
          for (const bad of BAD)
            await refusedInside(adapter, bad).catch((error) => {
              throw new Error(`${bad.what}: ${error}`, { cause: error });
            });
        }),
      LONG,
    );
  }

  test(
    `${engine.name}: a missing file stops the run and comes back out of the history`,
    () =>
      onShop(engine, async (_shop, look) => {
        const was = await look(everything);
        const url = _shop.read('svc.config.json');
        const other = project({});
        other.write('svc.config.json', url);
        write(other, next([table('a')]));
        const text = refusedText(await other.svc('db', 'migrate'), 5, 'migration_missing');
        assert.match(text, /svc db migrate export 20260101_000000_users/);
        assert.deepEqual(await look(everything), was);
        ok(await other.svc('db', 'migrate', 'export', users.tag));
        ok(await other.svc('db', 'migrate'));
      }),
    LONG,
  );

  test(
    `${engine.name}: a third step of five that fails outside a transaction waits for a person, and goes on`,
    () =>
      onShop(engine, async (shop, look) => {
        const apart = (statement: string) => raw(statement, { transaction: false });
        write(
          shop,
          next([
            apart('CREATE TABLE a (i int)'),
            apart('CREATE TABLE b (i int)'),
            apart('INSERT INTO users VALUES (1, 1)'),
            apart('CREATE TABLE c (i int)'),
            apart('CREATE TABLE d (i int)'),
          ]),
        );
        const text = refusedText(await shop.svc('db', 'migrate'), 6, 'migration_half_done');
        for (const pattern of [
          /2 of 5 steps are committed/,
          /23505/,
          /step 3 of 5/,
          /resolve 20260202_000000_next --retry/,
        ])
          assert.match(text, pattern);
        const again = refusedJson(await shop.svc('db', 'migrate', '--json'), 6, 'migration_half_done');
        assert.equal(again.nextActions.length, 3);
        refusedText(await shop.svc('db', 'migrate', 'rollback'), 6, 'migration_half_done');
        const status = ok(await shop.svc('db', 'migrate', 'status', '--check'), 6);
        assert.match(status.stdout, /^FAILED[\s\S]*\[!\] 20260202_000000_next {2}failed at step 3 of 5: INSERT/m);
        await look(({ connection }) => connection.query('DELETE FROM users WHERE id = 1'));
        ok(await shop.svc('db', 'migrate', 'resolve', TAG, '--retry'));
        assert.match(ok(await shop.svc('db', 'migrate', 'status', '--check')).stdout, /^OK/);
        const made = await look(({ connection }) =>
          connection.query(
            "SELECT string_agg(relname, '' ORDER BY relname) AS made FROM pg_class WHERE relname IN ('a', 'b', 'c', 'd')",
          ),
        );
        assert.deepEqual(made, [{ made: 'abcd' }]);
      }),
    LONG,
  );

  test(
    `${engine.name}: raw text without down is applied and is not taken back`,
    () =>
      onShop(engine, async (shop, look) => {
        write(shop, next([raw('CREATE TABLE a (i int)')]));
        ok(await shop.svc('db', 'migrate'));
        const was = await look(everything);
        const text = refusedText(await shop.svc('db', 'migrate', 'rollback'), 2, 'irreversible');
        assert.match(text, /svc db migrate create/);
        refusedText(await shop.svc('db', 'migrate', 'rollback', '-n', '2'), 2, 'irreversible');
        assert.deepEqual(await look(everything), was);
      }),
    LONG,
  );

  test(
    `${engine.name}: one that is older than what is applied runs after a branch merge, and says so`,
    () =>
      onShop(engine, async (shop, look) => {
        write(shop, next([table('late')]));
        ok(await shop.svc('db', 'migrate'));
        write(shop, { ...next([table('early')], '20260115_000000_early'), name: 'early' });
        const { stderr } = ok(await shop.svc('db', 'migrate'));
        assert.match(stderr, /warning Older than "20260202_000000_next"[^\n]*20260115_000000_early/);
        const history = await look(({ connection }) =>
          connection.query('SELECT tag FROM _svc_migrations ORDER BY seq'),
        );
        assert.deepEqual(
          history.map(({ tag }) => tag),
          [users.tag, TAG, '20260115_000000_early'],
        );
        // Taken back in the reverse order of application, not of tags.
        assert.match(
          ok(await shop.svc('db', 'migrate', 'rollback', '--dry-run', '--json'), 2).stdout,
          /20260115_000000_early/,
        );
      }),
    LONG,
  );

  test(
    `${engine.name}: names of every kind go the whole way`,
    () =>
      engine.withUrl(async (url) => {
        const shop = project({ main: url });
        shop.schema(entry());
        ok(await shop.svc('db', 'schema', 'generate'));
        ok(await shop.svc('db', 'migrate'));
        ok(await shop.svc('db', 'schema', 'check'));
        assert.match(ok(await shop.svc('db', 'schema', 'generate')).stdout, /^Nothing to generate/);
        shop.schema(entry({ more: 'Text' }));
        ok(await shop.svc('db', 'schema', 'generate'));
        ok(await shop.svc('db', 'migrate'));
        ok(await shop.svc('db', 'schema', 'check'));
        const { databases } = json(ok(await shop.svc('db', 'migrate', 'status', '--json')));
        assert.equal(databases[0].state, 'OK');
        ok(await shop.svc('db', 'migrate', 'rollback', '-n', String(databases[0].total)));
        ok(await shop.svc('db', 'schema', 'check'));
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

/** Tables of these names, with a field, an index, an enum and a foreign key that bear them too. */
function entry(more: object = {}): readonly object[] {
  const named = <T>(value: (name: string, index: number) => T): Record<string, T> =>
    Object.fromEntries(NAMES.map((name, index) => [name, value(name, index)]));
  const tables = named((name, index) => ({
    id: { type: 'Integer', primaryKey: true },
    ...Object.fromEntries([[name, { type: 'String', default: name }]]),
    kind: { type: 'Enum', enumValues: [name, 'other'], default: name },
    ref: { type: 'Integer', references: { table: NAMES[(index + 1) % NAMES.length], column: 'id' } },
    ...more,
  }));
  return [{ db: 'main', tables, indexes: named((name) => [{ columns: [name, 'id'], unique: true }]) }];
}

// ---- schema files, before any database

const id = { type: 'Integer', primaryKey: true };
const SCHEMAS: readonly [what: string, text: string | object, code: string, says: RegExp][] = [
  ['what is not JSON', '[\n  { "db": main }\n]', 'schema_invalid', /schema\.json:2:11/],
  ['an unknown type', { t: { id, a: 'integr' } }, 'field_type_unknown', /integer/],
  ['an unknown property', { t: { id, a: { type: 'integer', uniqe: true } } }, 'field_invalid', /unique/],
  [
    'a name that stands twice',
    '[{ "db": "main", "tables": {\n"t": { "id": "integer" },\n"t": {} } }]',
    'schema_invalid',
    /schema\.json:3:1/,
  ],
  [
    'a foreign key to nowhere',
    { t: { id, a: { type: 'integer', references: { table: 'nowhere', column: 'id' } } } },
    'collection_unknown',
    /nowhere/,
  ],
  ['a primary key missing', { t: { a: 'text' } }, 'schema_invalid', /primary/],
  ['a table name of 64 bytes', { ['x'.repeat(64)]: { id } }, 'name_invalid', /64 bytes/],
  ['a field name of 64 bytes', { t: { id, ['😀'.repeat(16)]: 'text' } }, 'name_invalid', /64 bytes/],
  ['an empty name', { t: { id, '': 'text' } }, 'name_invalid', /empty/],
];

for (const [what, schema, code, says] of SCHEMAS) {
  test(
    `a schema file with ${what} is refused and no migration is written`,
    async () => {
      const shop = project({ main: 'postgresql://postgres@127.0.0.1:1/none' });
      if (typeof schema === 'string') shop.write('svc/database/schema.json', schema);
      else shop.schema(schema);
      assert.match(refusedText(await shop.svc('db', 'schema', 'generate'), 2, code), says);
      refusedJson(await shop.svc('db', 'schema', 'generate', '--json'), 2, code);
      assert.deepEqual(shop.files(), []);
    },
    LONG,
  );
}

test(
  'a link and SVC_ENV that disagree are refused until --env decides',
  async () => {
    const { url, drop } = await freshFolder();
    try {
      const shop = project({ main: url }, {}, { SVC_ENV: 'prd' });
      shop.write('svc/config.json', { product: 'shop', env: 'dev' });
      const text = refusedText(await shop.svc('db', 'migrate'), 2, 'env_conflict');
      assert.match(text, /--env dev or --env prd/);
      assert.match(ok(await shop.svc('db', 'migrate', 'status', '--env', 'dev')).stdout, /^OK {2}main \(dev\)/);
    } finally {
      await drop();
    }
  },
  LONG,
);
