import * as assert from 'node:assert/strict';
import { Database } from '../core/database/database.ts';
import type { ConnectOptions } from '../core/dialect.ts';
import type { SvcError } from '../core/errors.ts';
import { engines, type TestEngine } from './kit/engines.ts';
import { connectedBy } from './kit/object-files.ts';
import { assertExit, json, LONG, type Project, project } from './kit/project.ts';
import { svcHere } from './kit/svc-here.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

/** More than one schema of a database: tables named `billing.invoices`. */

const ID = { type: 'integer', primaryKey: true, autoGenerate: true } as const;

const USERS = { id: ID, email: { type: 'string', unique: true } };
const INVOICES = {
  id: ID,
  user_id: { type: 'integer', required: true, references: { table: 'users', column: 'id' } },
  state: { type: 'enum', enumValues: ['open', 'paid'], required: true },
};
/** The same name in both schemas. */
const BILLING_USERS = { id: ID, note: { type: 'text' } };
const TABLES = { users: USERS, 'billing.invoices': INVOICES, 'billing.users': BILLING_USERS };
const INDEXES = { indexes: { 'billing.invoices': [{ columns: ['user_id'] }] } };

const OBJECTS = 'svc/database/objects/main';
const FILES = {
  [`${OBJECTS}/schema/billing.sql`]: 'CREATE SCHEMA "billing";',
  [`${OBJECTS}/view/billing.overdue.sql`]:
    "CREATE VIEW billing.overdue AS SELECT i.id, u.email FROM billing.invoices i JOIN users u ON u.id = i.user_id WHERE i.state = 'open';",
  [`${OBJECTS}/function/billing.touch.sql`]:
    'CREATE FUNCTION billing.touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;',
  [`${OBJECTS}/trigger/billing.invoices.touched.sql`]:
    'CREATE TRIGGER touched BEFORE UPDATE ON billing.invoices FOR EACH ROW EXECUTE FUNCTION billing.touch();',
};

interface Fixture extends Project {
  readonly run: (...args: readonly string[]) => ReturnType<typeof svcHere>;
  readonly query: (text: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;
  /** Generates and applies what changed. */
  readonly apply: (tables: object, ...args: readonly string[]) => Promise<void>;
}

function on(title: string, body: (fixture: Fixture, engine: TestEngine) => Promise<void>, list = engines): void {
  for (const engine of list) {
    const whole = `${engine.name}: ${title}`;
    if (engine.missing !== undefined) test.skip(whole, engine.missing);
    else
      test(
        whole,
        () =>
          engine.withUrl(async (url, connect) => {
            const schemas = ['public', 'billing'];
            const connected = connectedBy(() => connect(undefined, { schemas }));
            const files = project({ main: url }, {}, {}, { schemas });
            const run: Fixture['run'] = (...args) => svcHere(args, files.root);
            const apply: Fixture['apply'] = async (tables, ...args) => {
              files.write('svc/database/schema.json', [{ db: 'main', tables, ...INDEXES }]);
              assertExit(await run('db', 'schema', 'generate', ...args));
              assertExit(await run('db', 'migrate', '--allow-destructive'));
              assert.match(assertExit(await run('db', 'schema', 'generate')).stdout, /^Nothing to generate/);
              assert.match(assertExit(await run('db', 'schema', 'check', '--strict')).stdout, /^OK/);
            };
            const query: Fixture['query'] = (text) => connected((connection) => connection.query(text));
            await body({ ...files, run, apply, query }, engine);
          }),
        LONG,
      );
  }
}

const onServer = (title: string, body: Parameters<typeof on>[1]): void =>
  on(
    title,
    body,
    engines.filter(({ name }) => name === 'postgresql'),
  );

function listSchemas({ read, write }: Project, schemas: readonly string[]): void {
  const config = JSON.parse(read('svc.config.json'));
  config.databases.main.schemas = schemas;
  write('svc.config.json', config);
}

async function started({ write, apply }: Fixture): Promise<void> {
  for (const [file, text] of Object.entries(FILES)) write(file, text);
  await apply(TABLES);
}

on('tables and objects of two schemas are made, changed and rolled back', async (fixture) => {
  const { query, apply, run, write } = fixture;
  await started(fixture);
  await query(
    "INSERT INTO users (email) VALUES ('a@example.com'); INSERT INTO billing.invoices (user_id, state) VALUES (1, 'open')",
  );
  assert.deepEqual(await query('SELECT * FROM billing.overdue'), [{ id: 1, email: 'a@example.com' }]);

  write(`${OBJECTS}/schema/billing.sql`, "CREATE SCHEMA billing; COMMENT ON SCHEMA billing IS 'of money';");
  // The view and the trigger are moved aside for a change of the types that they read.
  write(
    `${OBJECTS}/trigger/billing.invoices.touched.sql`,
    "CREATE TRIGGER touched BEFORE UPDATE ON billing.invoices FOR EACH ROW WHEN (new.state = 'paid') EXECUTE FUNCTION billing.touch();",
  );
  const changed = {
    ...TABLES,
    users: { ...USERS, email: { type: 'string', length: 300, unique: true } },
    'billing.invoices': {
      ...INVOICES,
      state: { ...INVOICES.state, enumValues: ['open', 'paid', 'void'] },
      total: { type: 'bigint' },
    },
  };
  await apply(changed);
  const comment = "SELECT obj_description('billing'::regnamespace, 'pg_namespace') AS comment";
  assert.deepEqual(await query(comment), [{ comment: 'of money' }]);
  await query("UPDATE billing.invoices SET state = 'void', total = 5");
  assert.deepEqual(await query('SELECT * FROM billing.overdue'), []);
  await query("UPDATE billing.invoices SET state = 'open'");
  assertExit(await run('db', 'migrate', 'rollback', '--allow-destructive'));
  assert.deepEqual(await query(comment), [{ comment: null }]);
  assert.deepEqual(await query('SELECT * FROM billing.overdue'), [{ id: 1, email: 'a@example.com' }]);
  assertExit(await run('db', 'migrate', 'rollback', '--allow-destructive'));
  assert.deepEqual(await query("SELECT 1 FROM pg_namespace WHERE nspname = 'billing'"), []);
});

on('a table moves to another schema and back, with its rows, keys and sequence', async (fixture) => {
  const { query, apply, run, write, read } = fixture;
  await started(fixture);
  await query("INSERT INTO users (email) VALUES ('a@example.com'); INSERT INTO billing.users (note) VALUES ('x')");
  const { users, 'billing.users': billingUsers, 'billing.invoices': invoices, ...rest } = TABLES;
  const moved = {
    ...rest,
    'billing.invoices': {
      ...invoices,
      user_id: { ...invoices.user_id, references: { table: 'billing.people', column: 'id' } },
    },
    'billing.people': users,
    notes: billingUsers,
  };
  // The text follows the table.
  const view = `${OBJECTS}/view/billing.overdue.sql`;
  write(view, read(view).replace('JOIN users', 'JOIN billing.people'));
  await apply(moved, '--rename', 'users:billing.people', '--rename', 'billing.users:notes');
  await query("INSERT INTO billing.people (email) VALUES ('b@example.com'); INSERT INTO notes (note) VALUES ('y')");
  assert.deepEqual(await query('SELECT id, note FROM public.notes ORDER BY id'), [
    { id: 1, note: 'x' },
    { id: 2, note: 'y' },
  ]);
  const names = await query(
    "SELECT conname AS name FROM pg_constraint WHERE conrelid = 'billing.people'::regclass AND contype <> 'n' ORDER BY 1",
  );
  assert.deepEqual(
    names.map(({ name }) => name),
    ['people_email_key', 'people_pkey'],
  );
  assertExit(await run('db', 'migrate', 'rollback'));
  assert.deepEqual(await query('SELECT id FROM public.users ORDER BY id'), [{ id: 1 }, { id: 2 }]);
  assert.deepEqual(await query('SELECT id FROM billing.users ORDER BY id'), [{ id: 1 }, { id: 2 }]);
});

on('tables of two schemas swap both parts of their names', async (fixture) => {
  const { query, apply, run, write } = fixture;
  write(`${OBJECTS}/schema/billing.sql`, 'CREATE SCHEMA billing;');
  const table = (mark: string) => ({ id: ID, name: { type: 'string', unique: true }, [mark]: { type: 'integer' } });
  const all = { ...TABLES, b: table('two'), 'billing.a': table('three') };
  await apply({ ...all, a: table('one'), 'billing.b': table('four') });
  await query("INSERT INTO a (name) VALUES ('x'); INSERT INTO billing.b (name) VALUES ('y')");
  await apply(
    { ...all, a: table('four'), 'billing.b': table('one') },
    ...['--rename', 'a:billing.b', '--rename', 'billing.b:a'],
  );
  await query("INSERT INTO a (name) VALUES ('z')");
  assert.deepEqual(await query('SELECT id, name, four FROM a ORDER BY id'), [
    { id: 1, name: 'y', four: null },
    { id: 2, name: 'z', four: null },
  ]);
  assert.deepEqual(await query('SELECT name, one FROM billing.b'), [{ name: 'x', one: null }]);
  assertExit(await run('db', 'migrate', 'rollback'));
  assert.deepEqual(await query('SELECT name, one FROM a'), [{ name: 'x', one: null }]);
});

on('a difference of two URLs is one of the schemas that are named', async (fixture, engine) => {
  const { run, root } = fixture;
  await started(fixture);
  await engine.withUrl(async (other) => {
    const { url: configured } = JSON.parse(fixture.read('svc.config.json')).databases.main;
    const [url] = Object.values<string>(configured);
    assert.ok(url !== undefined);
    const diff = async (...args: readonly string[]): Promise<string> =>
      assertExit(await run('db', 'schema', 'diff', '--from', other, '--to', url, ...args)).stdout;
    const first = await diff();
    assert.match(first, /CREATE TABLE "users"/);
    assert.doesNotMatch(first, /billing/);
    for (const args of [
      ['--schemas', 'public, billing'],
      ['--db', 'main'],
    ])
      assert.match(await diff(...args), /CREATE TABLE "billing"."invoices"/);
    assert.doesNotMatch(await diff('--db', 'main', '--schemas', 'public'), /billing/);
    for (const [args, why] of [
      [['--to', 'files', '--schemas', 'billing'], /Neither side is one/],
      [['--to', url, '--schemas', 'public,'], /A name is missing/],
      [['--to', url, '--schemas', 'public,public'], /A name is in it twice/],
    ] as const) {
      const { stderr } = assertExit(await svcHere(['db', 'schema', 'diff', '--from', 'empty', ...args], root), 2);
      assert.match(stderr, why);
    }
  });
});

on('what uses a schema that is not listed is no drift', async (fixture) => {
  const { query, run } = fixture;
  await started(fixture);
  await query(
    'CREATE SCHEMA audit; CREATE TABLE audit.log (id int); CREATE VIEW billing.logged AS SELECT id FROM audit.log',
  );
  const { stdout, stderr } = assertExit(await run('db', 'schema', 'check', '--strict'));
  assert.match(stdout, /^OK/);
  assert.match(`${stdout}${stderr}`, /The view "billing\.logged" is left out: it uses table audit\.log/);
  await query('CREATE VIEW billing.made AS SELECT 1 AS one');
  assert.match(assertExit(await run('db', 'schema', 'check', '--strict'), 5).stdout, /view\/billing\.made/);
});

onServer('warnings name what is in another schema with it', async (fixture) => {
  const { query, run } = fixture;
  await query(
    "CREATE SCHEMA billing; CREATE CONVERSION billing.names FOR 'LATIN1' TO 'UTF8' FROM iso8859_1_to_utf8; CREATE OPERATOR CLASS billing.ops FOR TYPE int USING btree AS OPERATOR 1 <, FUNCTION 1 btint4cmp(int, int); CREATE CONVERSION texts FOR 'LATIN1' TO 'UTF8' FROM iso8859_1_to_utf8",
  );
  const warnings: readonly string[] = json(assertExit(await run('db', 'schema', 'pull', '--json'))).warnings;
  for (const name of ['conversion billing.names', 'operator class billing.ops', 'conversion texts'])
    assert.ok(
      warnings.some((warning) => warning.startsWith(`The database has the ${name}`)),
      warnings.join('\n'),
    );
});

on('what is dropped is kept, and comes back', async (fixture) => {
  const { query, run, write } = fixture;
  await started(fixture);
  await query("INSERT INTO billing.users (note) VALUES ('x')");
  const { 'billing.users': _, ...rest } = TABLES;
  write('svc/database/schema.json', [{ db: 'main', tables: rest, ...INDEXES }]);
  assertExit(await run('db', 'schema', 'generate', '--drop', 'billing.users'));
  assertExit(await run('db', 'migrate', '--keep', '1d', '--yes'));
  assert.match(assertExit(await run('db', 'schema', 'check', '--strict')).stdout, /^OK/);
  assertExit(await run('db', 'migrate', 'rollback'));
  assert.deepEqual(await query('SELECT note FROM billing.users'), [{ note: 'x' }]);
  assert.deepEqual(await query("SELECT pg_get_serial_sequence('billing.users', 'id') AS name"), [
    { name: 'billing.users_id_seq' },
  ]);
});

onServer('a table with many rows is changed online', async (fixture) => {
  const { query, write, run } = fixture;
  await started(fixture);
  await query(
    "INSERT INTO users (email) SELECT n FROM generate_series(1, 12000) n; INSERT INTO billing.invoices (user_id, state) SELECT n, 'open' FROM generate_series(1, 12000) n; ANALYZE",
  );
  const changed = {
    ...TABLES,
    'billing.invoices': {
      ...INVOICES,
      number: { type: 'string', required: true, default: 'none' },
      total: { type: 'bigint', unique: true },
    },
  };
  write('svc/database/schema.json', [
    {
      db: 'main',
      tables: changed,
      indexes: { 'billing.invoices': [{ columns: ['user_id'] }, { columns: ['state'] }] },
    },
  ]);
  assertExit(await run('db', 'schema', 'generate'));
  const plan = assertExit(await run('db', 'migrate', '--dry-run')).stdout;
  assert.match(plan, /CREATE INDEX CONCURRENTLY "invoices_state_idx" ON "billing"."invoices"/);
  assert.match(plan, /CREATE UNIQUE INDEX CONCURRENTLY "invoices_total_key" ON "billing"."invoices"/);
  assertExit(await run('db', 'migrate'));
  assert.match(assertExit(await run('db', 'schema', 'check', '--strict')).stdout, /^OK/);
  assertExit(await run('db', 'migrate', 'rollback', '--allow-destructive'));
});

on('a program changes tables of another schema', async (fixture, engine) => {
  await started(fixture);
  await engine.withUrl(async (_url, connect) => {
    const target = await connect(undefined, { schemas: ['public', 'billing'] });
    await target.connection.query('CREATE SCHEMA billing');
    const db = new Database(target);
    await db.schema.create('billing.plans', { id: ID, name: { type: 'string' } });
    await target.connection.query("INSERT INTO billing.plans (name) VALUES ('free'), ('paid')");
    await db.schema.createIndex('billing.plans', ['name']);
    assert.deepEqual(
      [...((await target.connection.introspect()).get('billing.plans')?.indexes.keys() ?? [])],
      ['plans_name_idx'],
    );
    assert.equal((await db.update({ table: 'billing.plans', data: { name: 'x' }, where: { id: 1 } })).modified, 1);
    assert.equal(await target.connection.count('billing.plans', 10), 2);
    assert.deepEqual(await target.connection.query('SELECT name FROM billing.plans ORDER BY id'), [
      { name: 'x' },
      { name: 'paid' },
    ]);
  });
});

on(
  'a schema without a file, one that is not listed and one that is not needed are refused by generate',
  async (fixture) => {
    const { run, write, query } = fixture;
    const refused = async (table: string) => {
      write('svc/database/schema.json', [{ db: 'main', tables: { [table]: BILLING_USERS } }]);
      return json(assertExit(await run('db', 'schema', 'generate', '--json'), 2));
    };
    const missing = await refused('billing.users');
    assert.equal(missing.code, 'schema_invalid');
    assert.deepEqual(missing.nextActions, [
      'Write svc/database/objects/main/schema/billing.sql: CREATE SCHEMA IF NOT EXISTS "billing";',
    ]);
    const needless = await refused('public.users');
    assert.equal(needless.code, 'name_invalid');
    assert.deepEqual(needless.nextActions, ['Name it "users".']);
    const unlisted = await refused('crm.users');
    assert.equal(unlisted.code, 'config_invalid');
    assert.deepEqual(unlisted.nextActions, [
      "List it next to the URL in svc.config: schemas: ['public', 'billing', 'crm']",
    ]);
    listSchemas(fixture, ['public', 'billing', 'crm']);
    write(`${OBJECTS}/schema/crm.sql`, 'CREATE SCHEMA crm;');
    assertExit(await run('db', 'schema', 'generate'));
    assertExit(await run('db', 'migrate'));
    assert.match(assertExit(await run('db', 'schema', 'check', '--strict')).stdout, /^OK/);
    // No longer listed.
    listSchemas(fixture, ['public', 'billing']);
    const unread = json(assertExit(await run('db', 'migrate', 'rollback', '--allow-destructive', '--json'), 2));
    assert.equal(unread.code, 'config_invalid');
    assert.deepEqual(await query('SELECT note FROM crm.users'), []);
  },
);

on('a program is refused a table in a schema that is not listed', async (_, engine) => {
  await engine.withUrl(async (_url, connect) => {
    const target = await connect(undefined, { schemas: ['public', 'billing'] });
    await target.connection.query('CREATE SCHEMA crm');
    const db = new Database(target);
    for (const [name, code] of [
      ['crm.users', 'config_invalid'],
      ['public.users', 'name_invalid'],
    ] as const)
      assert.equal((await expectError(db.schema.create(name, { id: ID }), code)).state, 'Nothing was changed.');
  });
});

on('a table may have the name of a schema', async (fixture) => {
  const { write, apply, run } = fixture;
  write(`${OBJECTS}/schema/billing.sql`, 'CREATE SCHEMA billing;');
  await apply({ billing: BILLING_USERS, 'billing.lines': BILLING_USERS, users: USERS, 'billing.invoices': INVOICES });
  assertExit(await run('db', 'migrate', 'rollback', '--allow-destructive'));
});

on('schemas that are listed later bring the keys between them', async (fixture) => {
  const { query, run } = fixture;
  await query(
    'CREATE TABLE users (id int PRIMARY KEY, team int); CREATE SCHEMA crm; CREATE TABLE crm.teams (id int PRIMARY KEY, owner int REFERENCES users); ALTER TABLE users ADD CONSTRAINT users_team FOREIGN KEY (team) REFERENCES crm.teams',
  );
  listSchemas(fixture, ['public']);
  const pulled = async (): Promise<void> => {
    assertExit(await run('db', 'schema', 'pull'));
    assertExit(await run('db', 'migrate', 'baseline'));
    assert.match(assertExit(await run('db', 'schema', 'check')).stdout, /^OK/);
  };
  await pulled();
  listSchemas(fixture, ['public', 'crm']);
  await pulled();
  assert.match(assertExit(await run('db', 'schema', 'check', '--strict')).stdout, /^OK/);
});

on('a history in another listed schema, and a schema that does not exist, are noticed', async (fixture) => {
  const { query, run } = fixture;
  await started(fixture);
  listSchemas(fixture, ['billing', 'public']);
  const moved = json(assertExit(await run('db', 'migrate', '--json'), 2));
  assert.match(moved.message, /in the schema "public", but new tables would be created in "billing"/);
  assert.deepEqual(
    await query("SELECT 1 FROM pg_class WHERE relname = '_svc_meta' AND relnamespace = 'billing'::regnamespace"),
    [],
  );
  listSchemas(fixture, ['public', 'billing', 'Billing']);
  const { warnings } = json(assertExit(await run('db', 'schema', 'pull', '--json')));
  assert.match(warnings.join('\n'), /has no schema "Billing", which schemas in the configuration lists/);
});

on('what another schema has is read only where it is listed', async (fixture) => {
  const { query, run } = fixture;
  await query('CREATE SCHEMA "Old Things"; CREATE TABLE "Old Things"."Users" ("Id" int PRIMARY KEY)');
  const warned = json(assertExit(await run('db', 'schema', 'pull', '--json')));
  assert.match(warned.warnings.join('\n'), /has the schema "Old Things", of which svc reads nothing/);
  listSchemas(fixture, ['public', 'Old Things']);
  const { warnings, tables } = json(assertExit(await run('db', 'schema', 'pull', '--json')));
  assert.deepEqual(warnings, []);
  assert.deepEqual(tables, ['Old Things.Users']);
  assertExit(await run('db', 'migrate', 'baseline'));
  assert.match(assertExit(await run('db', 'schema', 'check', '--strict')).stdout, /^OK/);
});

on('a list of schemas is checked', async (_, engine) => {
  await engine.withUrl(async (url) => {
    const problem = async (options: ConnectOptions): Promise<string> => {
      const error: SvcError = await engine.dialect.connect(url, options).then(
        () => assert.fail('it connects'),
        (thrown) => thrown,
      );
      assert.equal(error.code, 'config_invalid');
      return `${error.message} ${error.why}`;
    };
    assert.match(
      await problem({ schemas: [] }),
      /must be a list of one or more different names, such as \['public', 'billing'\]/,
    );
    assert.match(
      await problem({ schemas: ['public', 'public'] }),
      /is \["public","public"\] and must be a list of one or more different names/,
    );
    assert.match(await problem({ schemas: ['public', 'a.b'] }), /"a\.b" has a dot/);
    assert.match(await problem({ schemas: ['public', 'pg_catalog'] }), /"pg_catalog" is a schema of the server/);
    assert.match(await problem({ schema: 'crm', schemas: ['public'] }), /"crm" is the schema, and is not one of them/);
    assert.match(await problem({ schemas: ['crm', 'public'] }), /The schema "crm" does not exist/);
  });
});
