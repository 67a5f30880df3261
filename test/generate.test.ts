import * as assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { type GeneratedMigration, type GenerateOptions, generate, replayFiles } from '../config/project/generate.ts';
import { formatMigration, type MigrationFile } from '../config/project/migration-files.ts';
import { nextTag } from '../config/project/migration-name.ts';
import { schemaEntry } from '../config/project/schema-file.ts';
import { writeNewFiles } from '../config/project/write-files.ts';
import { SvcError } from '../core/errors.ts';
import type { Migration } from '../core/migration/migration.ts';
import { isTag } from '../core/migration/tag.ts';
import { applyAll } from '../core/schema/apply.ts';
import { objectModel } from '../core/schema/database-object.ts';
import type { Declaration } from '../core/schema/declaration/declaration.ts';
import type { ModelOperation, Operation } from '../core/schema/operation.ts';
import { cassandra } from '../plugins/dialects/cassandra/dialect.ts';
import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { folder } from './kit/folder.ts';
import { readMigrations } from './kit/load.ts';
import { definedInCode } from './kit/migrations.ts';
import { test } from './kit/test.ts';

const FOLDER = 'svc/database/migrations/main';
const AT = new Date('2026-11-20T10:30:00Z');
const id = { type: 'Integer', primaryKey: true, autoGenerate: true } as const;

type Options = Partial<Omit<GenerateOptions, 'entry'>>;

function generateFrom(
  tables: Declaration['tables'],
  options: Options & { more?: Partial<Declaration> } = {},
): Promise<GeneratedMigration[]> {
  const { more, ...rest } = options;
  const entry = schemaEntry('main', { tables, ...more });
  return generate({ dialect: postgresql, files: [], entry, now: AT, rename: [], drop: [], ...rest });
}

/** Generated migrations as migration files. */
const filesOf = (generated: readonly GeneratedMigration[]): MigrationFile[] =>
  generated.map(({ file, migration }) => ({ file, ...definedInCode(migration) }));

async function rejectionOf(work: Promise<unknown>): Promise<SvcError> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof SvcError, `no refusal: ${error}`);
  return error;
}

test('names that must be unique in a PostgreSQL database are rejected before a migration is written', async () => {
  const table = { id, n: 'integer', email: { type: 'String', unique: true } } as const;
  const clashes: Partial<Declaration>[] = [
    { indexes: { a: [{ name: 'same', columns: ['n'] }], b: [{ name: 'same', columns: ['n'] }] } },
    { indexes: { a: [{ name: 'b', columns: ['n'] }] } },
    { indexes: { a: [{ name: 'b_email_key', columns: ['n'] }] } },
    { constraints: { a: [{ name: 'b_pkey', type: 'unique', columns: ['n'] }] } },
  ];
  for (const more of clashes) {
    const refusal = await rejectionOf(generateFrom({ a: table, b: table }, { more }));
    assert.equal(refusal.code, 'name_invalid');
    assert.match(refusal.message, /used twice: by "a" and "b"/);
  }
  const check = { name: 'same', type: 'check', columns: ['n'], expression: 'n > 0' } as const;
  await generateFrom({ a: table, b: table }, { more: { constraints: { a: [check], b: [check] } } });
});

test('a new table: its migration with up, down, tag and statements', async () => {
  const [one, ...others] = await generateFrom({ users: { id, email: { type: 'String', length: 200, unique: true } } });
  assert.equal(others.length, 0);
  assert.equal(one?.file, `${FOLDER}/20261120_103000_create_users.json`);
  assert.equal(one?.migration.tag, '20261120_103000_create_users');
  assert.equal(one?.migration.name, 'create_users');
  assert.deepEqual(one?.migration.up, [
    {
      type: 'createCollection',
      name: 'users',
      fields: [
        { name: 'id', type: 'integer', primaryKey: true, autoGenerate: true },
        { name: 'email', type: 'string', unique: true, length: 200 },
      ],
    },
  ]);
  assert.deepEqual(one?.migration.down, [{ type: 'dropCollection', collection: 'users' }]);
  assert.match(one?.statements[0]?.text ?? '', /CREATE TABLE/);
});

test('after reading the generated migrations back there is nothing to generate', async () => {
  const tables = {
    teams: { id, name: { type: 'string', required: true } },
    users: {
      id,
      team: { type: 'integer', references: { table: 'teams', column: 'id', onDelete: 'CASCADE' } },
      at: { type: 'timestamp', default: 'now' },
    },
  } as const;
  const more = {
    indexes: { users: [{ columns: ['team', { name: 'at', order: 'desc' }] }] },
    constraints: { users: [{ type: 'check' as const, expression: 'id > 0' }] },
  };
  const first = await generateFrom(tables, { more });
  const root = folder();
  writeNewFiles(
    root,
    first.map(({ file, migration }) => ({ file, text: formatMigration(root, migration) })),
  );
  const files = await readMigrations(root, 'main');
  assert.deepEqual(
    files.map(({ migration: { $schema: _, ...migration } }) => migration),
    first.map(({ migration }) => JSON.parse(JSON.stringify(migration))),
  );
  assert.deepEqual(await generateFrom(tables, { more, files }), []);
});

test('a migration references the JSON Schema of the package, which is in a parent folder in a workspace', async () => {
  const [{ migration } = assert.fail()] = await generateFrom({ t: { id: { type: 'integer', primaryKey: true } } });
  const schemaOf = (root: string): string => JSON.parse(formatMigration(root, migration)).$schema;
  assert.equal(schemaOf(folder()), '../../../../node_modules/@svc/sdk/dist/schema.json');
  const workspace = folder({ 'node_modules/@svc/sdk/dist/schema.json': '{}', 'packages/db/package.json': '{}' });
  const member = join(workspace, 'packages/db');
  assert.ok(existsSync(join(member, 'svc/database/migrations/main', schemaOf(member))));
});

test('down of every generated migration restores the previous schema', async () => {
  const first = filesOf(await generateFrom({ users: { id, name: 'string' }, logs: { id, line: 'text' } }));
  const before = replayFiles(first, 'postgresql').model;
  const second = await generateFrom(
    { users: { id, nick: 'string', age: 'smallint' } },
    { files: first, rename: ['users.name:nick'] },
  );
  const after = replayFiles([...first, ...filesOf(second)], 'postgresql').model;
  assert.notDeepEqual(after, before);
  let model = applyAll([], after);
  for (const { migration } of [...second].reverse()) model = applyAll(migration.down, model);
  assert.deepEqual(model, applyAll([], before));
});

test('a drop warns that a rollback does not restore the rows', async () => {
  const files = filesOf(await generateFrom({ users: { id, name: 'string' }, logs: { id } }));
  const [one] = await generateFrom({ users: { id } }, { files });
  assert.deepEqual(one?.migration.lossy?.length, 2);
  assert.ok(one?.statements.some(({ destructive }) => destructive));
  assert.ok(one?.migration.down.some(({ type }) => type === 'createCollection'));
});

test('data-dependent risks are reported, only for tables that may have rows', async () => {
  const files = filesOf(await generateFrom({ users: { id, name: 'string', age: 'integer' } }));
  const [one] = await generateFrom(
    {
      users: {
        id,
        name: { type: 'string', unique: true },
        age: { type: 'integer', required: true },
        city: { type: 'string', required: true },
        plan: { type: 'string', required: true, default: 'free' },
      },
      orders: { id, total: { type: 'integer', required: true, unique: true } },
    },
    { files },
  );
  assert.deepEqual(
    one?.risks.map((why) => why.split(/[: ]/)[0]),
    ['users.city', 'users.name', 'users.age'],
  );
});

test('generating the drop of a required field warns that rows prevent its rollback', async () => {
  const users = { id, age: 'integer', city: { type: 'string', required: true } } as const;
  const files = filesOf(await generateFrom({ users }));
  const [dropped] = await generateFrom({ users: { id } }, { files });
  assert.deepEqual(dropped?.rollbackRisks, [
    'users.city is required and has no default: existing rows have no value for it',
  ]);
});

test('generating a rename or a drop warns of objects that still name it', async () => {
  const users = { id, name: 'string', age: 'integer' } as const;
  const view = (columns: string) =>
    objectModel([{ kind: 'view', name: 'v', definition: `CREATE VIEW v AS SELECT ${columns} FROM users` }]);
  const files = filesOf(await generateFrom({ users }, { objects: view('name') }));
  const renamed = { id, title: 'string', age: 'integer' } as const;
  const rename = ['users.name:title'];
  const unedited = async (tables: Declaration['tables'], options: Options) =>
    (await generateFrom(tables, { files, ...options })).flatMap((one) => one.unedited);
  assert.deepEqual(await unedited({ users: renamed }, { rename, objects: view('name') }), [
    'view "v" names "users.name", which it renames; if it reads it: edit svc/database/objects/main/view/v.sql, delete this migration and generate again',
  ]);
  assert.deepEqual(await unedited({ users: renamed }, { rename, objects: view('title') }), []);
  assert.deepEqual(await unedited({ people: users }, { rename: ['users:people'], objects: view('age') }), [
    'view "v" names the table "users", which it renames; if it reads it: edit svc/database/objects/main/view/v.sql, delete this migration and generate again',
  ]);
  assert.deepEqual(
    await unedited({ users: { id, name: 'string' } }, { drop: ['users.age'], objects: view('name') }),
    [],
  );
  // The database may accept that.
  const above = { kind: 'view', name: 'w', definition: 'CREATE VIEW w AS SELECT id FROM v' };
  const both = filesOf(await generateFrom({ users }, { objects: objectModel([...view('name').values(), above]) }));
  assert.deepEqual(await unedited({ users }, { files: both, objects: objectModel([above]) }), [
    'view "w" names the view "v", which it drops; if it reads it: edit svc/database/objects/main/view/w.sql, delete this migration and generate again',
  ]);
  // Another field has the name then.
  const swapped = { ...renamed, name: 'integer' } as const;
  assert.deepEqual(await unedited({ users: swapped }, { rename, objects: view('name') }), []);
});

test('names of migrations follow the change', async () => {
  const users = { id, name: 'string' } as const;
  const base = filesOf(await generateFrom({ users }));
  const cases: [Declaration['tables'], string, Options?][] = [
    [{ users: { ...users, age: 'integer' } }, 'add_age_to_users'],
    [{ users: { id } }, 'drop_name_from_users'],
    [{ users: { id, nick: 'string' } }, 'rename_name_to_nick_in_users', { rename: ['users.name:nick'] }],
    [{ people: users }, 'rename_users_to_people', { rename: ['users:people'] }],
    [{ users: { ...users, a: 'text', b: 'text' } }, 'update_users'],
    [{ users, a: { id }, b: { id } }, 'create_a_and_b'],
    [{ users, a: { id }, b: { id }, c: { id } }, 'create_tables'],
    [{ users: { ...users, age: 'integer' }, a: { id } }, 'update_schema'],
    [{ users: { id, name: { type: 'string', length: 9 } } }, 'change_name_of_users'],
    [{ users: { ...users, age: 'integer' } }, 'a_b_c', { name: 'a b/c' }],
  ];
  for (const [tables, name, options] of cases) {
    const results = await generateFrom(tables, { files: base, ...options });
    assert.deepEqual(
      results.map(({ migration }) => migration.name),
      [name],
    );
  }
});

test('a pair of similar names is never dropped and added without a decision', async () => {
  const files = filesOf(await generateFrom({ users: { id, name: 'string', bio: 'string' } }));
  const tables = { users: { id, full_name: 'string', about: 'string' } };
  const error = await rejectionOf(generateFrom(tables, { files }));
  assert.equal(error.code, 'rename_undecided');
  assert.ok(error.next.includes('--rename users.name:full_name or --drop users.name'), error.next.join('\n'));
  const lines = filesOf(await generateFrom({ "It's Lines": { id, qty: 'integer' } }));
  const quoted = await rejectionOf(generateFrom({ "It's Lines": { id, quantity: 'integer' } }, { files: lines }));
  assert.deepEqual(quoted.next, [`--rename 'It'\\''s Lines.qty:quantity' or --drop 'It'\\''s Lines.qty'`]);
  const [one] = await generateFrom(tables, { files, rename: ['users.name:full_name'], drop: ['users.bio'] });
  assert.deepEqual(
    new Set(one?.migration.up.map(({ type }) => type)),
    new Set(['renameField', 'dropField', 'addField']),
  );
});

test('renamedFrom in the schema file also decides, permanently', async () => {
  const files = filesOf(await generateFrom({ users: { id, name: 'string' } }));
  const tables = { users: { id, nick: { type: 'string', renamedFrom: 'name' } } } as const;
  const second = await generateFrom(tables, { files });
  assert.deepEqual(second[0]?.migration.up, [{ type: 'renameField', collection: 'users', from: 'name', to: 'nick' }]);
  assert.deepEqual(await generateFrom(tables, { files: [...files, ...filesOf(second)] }), []);
});

const steps = (results: readonly GeneratedMigration[]): string[] =>
  results.flatMap(({ migration }) =>
    migration.up.map((one) => {
      if (one.type === 'renameField') return `${one.collection}.${one.from} to ${one.to}`;
      if (one.type === 'renameCollection') return `${one.collection} to ${one.to}`;
      if (one.type === 'dropField') return `drop ${one.collection}.${one.field}`;
      return one.type === 'dropCollection' ? `drop ${one.collection}` : one.type;
    }),
  );

test('a rename that the engine cannot do in place is generated as a copy, with the new type', async () => {
  const key = { type: 'text', primaryKey: true } as const;
  const from = { a: { k: key, n: 'text', m: 'text', i: 'text' } } as const;
  const files = filesOf(await generateFrom(from, { dialect: cassandra }));
  const to = {
    a: {
      k2: { ...key, renamedFrom: 'k' },
      n2: { type: 'text', renamedFrom: 'n' },
      m2: { type: 'integer', renamedFrom: 'm' },
      i: 'text',
    },
  } as const;
  const [generated] = await generateFrom(to, { dialect: cassandra, files });
  const rename = { type: 'renameField', collection: 'a' };
  const [up, down] = [
    [
      { ...rename, from: 'k', to: 'k2' },
      { ...rename, from: 'n', to: 'n2', strategy: 'copy' },
      { ...rename, from: 'm', to: 'm2', strategy: 'copy', changes: { type: 'integer' } },
    ],
    [
      { ...rename, from: 'm2', to: 'm', strategy: 'copy', changes: { type: 'text' } },
      { ...rename, from: 'n2', to: 'n', strategy: 'copy' },
      { ...rename, from: 'k2', to: 'k' },
    ],
  ];
  assert.deepEqual([generated?.migration.up, generated?.migration.down], [up, down]);
  assert.deepEqual(
    await generateFrom(to, { dialect: cassandra, files: [...files, ...filesOf(generated ? [generated] : [])] }),
    [],
  );
  const unknown = { a: { k: key, n: { type: 'text', strategy: 'copy' } } } as Declaration['tables'];
  assert.match((await rejectionOf(generateFrom(unknown))).why ?? '', /known are type, .*, references, renamedFrom\.$/);
});

test('a rename to an existing name drops its previous owner, and two names can be swapped', async () => {
  const table = { id, x: 'string', y: 'string' } as const;
  const files = filesOf(await generateFrom({ a: table, b: table }));
  const cases: [Declaration['tables'], string[], string[]][] = [
    [{ a: { id, y: 'string' }, b: table }, ['a.x:y'], ['drop a.y', 'a.x to y']],
    [{ b: table }, ['a:b'], ['drop b', 'a to b']],
    [{ a: table, b: table }, ['a.x:y', 'a.y:x'], ['a.x to svc_rename_1', 'a.y to x', 'a.svc_rename_1 to y']],
    [{ a: table, b: table }, ['a:b', 'b:a'], ['a to svc_rename_1', 'b to a', 'svc_rename_1 to b']],
  ];
  for (const [tables, rename, expected] of cases) {
    const results = await generateFrom(tables, { files, rename });
    assert.deepEqual(steps(results), expected);
    const after = replayFiles([...files, ...filesOf(results)], 'postgresql').model;
    assert.deepEqual([...after.keys()].sort(), Object.keys(tables));
    assert.deepEqual(
      applyAll(results[0]?.migration.down ?? [], after),
      new Map(replayFiles(files, 'postgresql').model),
    );
  }
});

test('a renamedFrom whose target existed before is a question, which the flags can answer', async () => {
  const files = filesOf(await generateFrom({ a: { id, x: 'string', y: 'string' } }));
  const tables = { a: { id, y: { type: 'string', renamedFrom: 'x' } } } as const;
  const removed = await rejectionOf(generateFrom(tables, { files }));
  assert.equal(removed.code, 'rename_undecided');
  assert.deepEqual(removed.next, ['--rename a.x:y (drops the previous a.y) or --drop a.x']);
  assert.deepEqual(steps(await generateFrom(tables, { files, rename: ['a.x:y'] })), ['drop a.y', 'a.x to y']);
  assert.deepEqual(steps(await generateFrom(tables, { files, drop: ['a.x'] })), ['drop a.x']);

  const both = { a: { id, x: 'string', y: 'string', z: { type: 'string', renamedFrom: 'x' } } } as const;
  const stays = await rejectionOf(generateFrom(both, { files }));
  assert.deepEqual(stays.next, ['--rename a.x:z or remove "renamedFrom" from a.z']);
  assert.deepEqual(steps(await generateFrom(both, { files, rename: ['a.x:z'] })), ['a.x to z', 'addField']);
  assert.deepEqual(steps(await generateFrom(both, { files, promptRename: async () => 'drop' })), ['addField']);
  const swapped = { a: { ...both.a, z: 'string' } } as const;
  assert.deepEqual(steps(await generateFrom(swapped, { files, rename: ['a.x:z'] })), ['a.x to z', 'addField']);
});

test('an explicit drop takes precedence over renamedFrom', async () => {
  const files = filesOf(await generateFrom({ a: { id, x: 'string' } }));
  const tables = { a: { id, y: { type: 'string', renamedFrom: 'x' } } } as const;
  assert.deepEqual(steps(await generateFrom(tables, { files, drop: ['a.x'] })), ['drop a.x', 'addField']);
});

test('flags that contradict each other or the schema file are rejected', async () => {
  const files = filesOf(await generateFrom({ a: { id, x: 'string', y: 'string' }, b: { id } }));
  const tables = { a: { id, z: 'string', y: 'string' }, b: { id } };
  const cases: Options[] = [
    { rename: ['a.x:z', 'a.x:y'] },
    { rename: ['a.x:z', 'a.y:z'] },
    { rename: ['a.x:z'], drop: ['a.x'] },
    { rename: ['a.y:y'] },
    { rename: ['b:b'] },
    { rename: ['a:b', 'a.x:z'] },
    { drop: ['a.y'] },
    { drop: ['b'] },
  ];
  for (const flags of cases) {
    assert.equal((await rejectionOf(generateFrom(tables, { files, ...flags }))).code, 'usage', JSON.stringify(flags));
  }
  const replaced = { files, rename: ['a.x:y', 'a.x:y'], drop: ['a.y'] };
  assert.deepEqual(steps(await generateFrom({ a: { id, y: 'string' }, b: { id } }, replaced)), [
    'drop a.y',
    'a.x to y',
  ]);
});

test('an interactive user is asked about each removed name', async () => {
  const files = filesOf(await generateFrom({ users: { id, name: 'string', bio: 'string' } }));
  const questions: string[] = [];
  const [one] = await generateFrom(
    { users: { id, a: 'string', b: 'string' } },
    {
      files,
      promptRename: async (pairs) => {
        questions.push(`${pairs[0]?.from}: ${pairs.map(({ to }) => to).join(' ')}`);
        return pairs[0]?.from === 'name' ? (pairs.find(({ to }) => to === 'b') ?? 'drop') : 'drop';
      },
    },
  );
  assert.deepEqual(questions, ['name: a b', 'bio: a']);
  assert.deepEqual(one?.migration.up.map(({ type }) => type).sort(), ['addField', 'dropField', 'renameField']);
});

test('a table and a field of it are renamed by flags, names with dots and colons included', async () => {
  const files = filesOf(await generateFrom({ 'a.b': { id, 'x:y': 'string' } }));
  const [one] = await generateFrom({ 'c:d': { id, 'z.z': 'string' } }, { files, rename: ['c:d.x:y:z.z', 'a.b:c:d'] });
  assert.deepEqual(one?.migration.up, [
    { type: 'renameCollection', collection: 'a.b', to: 'c:d' },
    { type: 'renameField', collection: 'c:d', from: 'x:y', to: 'z.z' },
  ]);
});

test('a flag that matches nothing is rejected, and so is the drop of a table that no file created', async () => {
  const files = filesOf(await generateFrom({ users: { id } }));
  const tables = { users: { id, nick: 'string' } };
  assert.equal((await rejectionOf(generateFrom(tables, { files, rename: ['users.nam:nick'] }))).code, 'usage');
  const table = await rejectionOf(generateFrom(tables, { files, drop: ['legacy'] }));
  assert.equal(table.code, 'collection_unknown');
  assert.ok(table.next.includes('svc db schema pull'));
  assert.equal((await rejectionOf(generateFrom(tables, { files, drop: ['users.legacy'] }))).code, 'field_unknown');
  const renamed = { files, rename: ['users:user'], drop: ['users.id'] };
  assert.ok((await rejectionOf(generateFrom({ user: { id } }, renamed))).next.includes('Did you mean --drop user.id?'));
});

test('unsupported operations are rejected before anything is written', async () => {
  const error = await rejectionOf(generateFrom({ ['n'.repeat(64)]: { id } }));
  assert.equal(error.code, 'name_invalid');
  assert.equal((await rejectionOf(generateFrom({ t: { id, cents: 'decimal' } }))).code, 'field_invalid');
});

test('a statement that cannot run in a transaction gets a separate migration', async () => {
  const files = filesOf(await generateFrom({ users: { id, name: 'string' } }));
  const results = await generateFrom(
    { users: { id, name: 'string', age: 'integer' }, logs: { id, line: 'text' } },
    { files, concurrently: true, more: { indexes: { users: [{ columns: ['name'] }], logs: [{ columns: ['line'] }] } } },
  );
  const nonTransactional = results.filter(({ statements }) => statements.some(({ transactional }) => !transactional));
  assert.equal(nonTransactional.length, 1);
  assert.deepEqual(
    nonTransactional[0]?.migration.up.map((operation) => operation.type === 'createIndex' && operation.collection),
    ['users'],
  );
  const tags = results.map(({ migration }) => migration.tag);
  assert.deepEqual(tags, [...new Set(tags)].sort());
});

test('a tag is never older than that of the newest file', async () => {
  const files: MigrationFile[] = [
    { file: 'f', ...definedInCode({ tag: '20991231_235959_far', name: 'far', up: [], down: [] }) },
  ];
  const [one] = await generateFrom({ users: { id } }, { files });
  assert.equal(one?.migration.tag, '21000101_000000_create_users');
  const last: MigrationFile[] = [{ file: 'f', ...definedInCode({ tag: 'zzz', name: 'zzz', up: [], down: [] }) }];
  assert.equal((await rejectionOf(generateFrom({ users: { id } }, { files: last }))).code, 'tag_invalid');
  fc.assert(
    fc.property(
      fc.string(),
      fc.date({ noInvalidDate: true, min: new Date(0), max: new Date('2100-01-01') }),
      fc.date({ noInvalidDate: true, min: new Date(0), max: new Date('2100-01-01') }),
      (name, a, b) => {
        const first = nextTag(name, a, undefined);
        const second = nextTag(name, b, first);
        assert.ok(isTag(first) && isTag(second) && second > first);
      },
    ),
  );
});

test('the error for a change of a table that no file created names the file', async () => {
  const migration: Migration = {
    tag: 'a',
    name: 'a',
    up: [{ type: 'dropField', collection: 'ghosts', field: 'x' }],
    down: [],
  };
  const error = await rejectionOf(
    generateFrom({}, { files: [{ file: `${FOLDER}/a.json`, ...definedInCode(migration) }] }),
  );
  assert.equal(error.code, 'collection_unknown');
  assert.equal(error.where, `${FOLDER}/a.json up[0]`);
  assert.ok(error.next.some((line) => line.includes('svc db schema pull')));
});

const good = { tag: 'a', name: 'a', up: [], down: [] };

const BAD_FILES: readonly [what: string, files: Record<string, string | object>, code: string, where: string][] = [
  ['invalid JSON', { 'a.json': '{\n  "tag": "a",\n}' }, 'migration_invalid', 'a.json:3:1'],
  [
    'a duplicate name',
    { 'a.json': '{ "tag": "a",\n"up": [], "down": [], "up": [] }' },
    'migration_invalid',
    'a.json:2:23',
  ],
  ['a tag that differs from the file name', { 'b.json': good }, 'migration_invalid', 'b.json:2:3'],
  ['an unknown operation', { 'a.json': { ...good, up: [{ type: 'explode' }] } }, 'migration_invalid', 'a.json:6:7'],
  [
    'a missing nested property',
    { 'a.json': { ...good, up: [{ type: 'createCollection', name: 'x', fields: [{ name: 'y' }] }] } },
    'migration_invalid',
    'a.json:9:9',
  ],
  ['an unknown property', { 'a.json': { ...good, ups: [] } }, 'migration_invalid', 'a.json:6:3'],
  ['two files with one tag', { 'a.json': good, 'a.mjs': '' }, 'tag_taken', 'a.mjs'],
  ['a file name that is not a valid tag', { 'a b.json': good }, 'tag_invalid', 'a b.json'],
  ['a module that throws', { 'a.mjs': 'throw new Error("no");' }, 'migration_invalid', 'a.mjs'],
  ['a module without a default export', { 'a.mjs': 'export const x = 1;' }, 'migration_invalid', 'a.mjs'],
];

for (const [what, files, code, where] of BAD_FILES) {
  test(`a migration file: ${what} is rejected with its position`, async () => {
    const root = folder(
      Object.fromEntries(Object.entries(files).map(([name, content]) => [`${FOLDER}/${name}`, content])),
    );
    const error = await rejectionOf(readMigrations(root, 'main'));
    assert.equal(error.code, code, `${error.message} ${error.why}`);
    assert.equal(error.where, `${FOLDER}/${where}`);
  });
}

test('migration files of every type are read in tag order, and no other files', async () => {
  const root = folder({
    [`${FOLDER}/b.json`]: { tag: 'b', up: [], down: [] },
    [`${FOLDER}/a.ts`]:
      "import { migration } from '@svc/sdk';\nconst tag: string = 'a';\nexport default migration(tag).createCollection('t', [{ name: 'id', type: 'integer' }]).build();\n",
    [`${FOLDER}/c.mjs`]: "export default { tag: 'c', name: 'c', up: [], down: [] };",
    [`${FOLDER}/README.md`]: 'about these',
    [`${FOLDER}/.1.d.json.draft`]: 'half',
    [`${FOLDER}/d.d.ts`]: 'export {};',
  });
  const files = await readMigrations(root, 'main');
  assert.deepEqual(
    files.map(({ migration }) => migration.tag),
    ['a', 'b', 'c'],
  );
  assert.deepEqual(files[0]?.migration.down, [{ type: 'dropCollection', collection: 't' }]);
  assert.equal(files[1]?.migration.name, 'b');
  assert.deepEqual(await readMigrations(root, 'other'), []);
});

test('all new files are written or none, and no existing file is overwritten', async () => {
  const root = folder({ 'b.json': 'mine' });
  const error = await rejectionOf(
    Promise.resolve().then(() =>
      writeNewFiles(root, [
        { file: 'a.json', text: '1' },
        { file: 'b.json', text: '2' },
      ]),
    ),
  );
  assert.equal(error.code, 'file_exists');
  assert.deepEqual(readdirSync(root), ['b.json']);
  writeFileSync(join(root, 'blocked'), '');
  assert.throws(() =>
    writeNewFiles(root, [
      { file: 'a.json', text: '1' },
      { file: 'blocked/c.json', text: '2' },
    ]),
  );
  assert.deepEqual(readdirSync(root).sort(), ['b.json', 'blocked']);
  symlinkSync('nowhere', join(root, 'late.json')); // looks free but is not, as after a concurrent write
  assert.throws(() =>
    writeNewFiles(root, [
      { file: 'a.json', text: '1' },
      { file: 'late.json', text: '2' },
    ]),
  );
  assert.deepEqual(readdirSync(root).sort(), ['b.json', 'blocked', 'late.json']);
  writeNewFiles(root, [{ file: 'x/y/a.json', text: 'whole' }]);
  assert.equal(readFileSync(join(root, 'x/y/a.json'), 'utf8'), 'whole');
  assert.deepEqual(readdirSync(join(root, 'x/y')), ['a.json']);
});

test('a file that changes what a raw statement made has a next step: makes', async () => {
  const statement = 'CREATE TABLE "logs" (id int PRIMARY KEY)';
  const made: ModelOperation = {
    type: 'createCollection',
    name: 'logs',
    fields: [{ name: 'id', type: 'integer', primaryKey: true }],
  };
  const raw = { type: 'raw', dialect: 'postgresql', statement } as const;
  const line = { type: 'addField', collection: 'logs', field: { name: 'line', type: 'text' } } as const;
  const filesWith = (first: Operation): MigrationFile[] =>
    ([first, line] as const).map((operation, index) => {
      const tag = `2026010${index + 1}_000000_x`;
      return { file: `${tag}.json`, ...definedInCode({ tag, name: 'x', up: [operation], down: [] }) };
    });
  const error = await rejectionOf(generateFrom({}, { files: filesWith(raw) }));
  assert.equal(error.code, 'collection_unknown');
  assert.match(error.next.join(), /^For a table that a raw statement of "20260101_000000_x" makes: .*"makes"/);
  const files = filesWith({ ...raw, makes: [made] });
  assert.deepEqual(steps(await generateFrom({}, { files, drop: ['logs'] })), ['drop logs']);
  assert.deepEqual([...replayFiles(files, 'mysql', true).model.keys()], []);
});

test('a folder named like a migration file is rejected by name, and an extension in upper case counts', async () => {
  const [generated] = await generateFrom({ users: { id } });
  assert.ok(generated);
  const { tag } = generated.migration;
  const upper = `${FOLDER}/${tag}.JSON`;
  const root = folder({ [upper]: generated.migration, [`${FOLDER}/20990101_000000_sub.json/note.txt`]: 'x' });
  const refusal = await rejectionOf(readMigrations(root, 'main'));
  assert.deepEqual([refusal.code, refusal.where], ['migration_invalid', `${FOLDER}/20990101_000000_sub.json`]);
  rmSync(join(root, FOLDER, '20990101_000000_sub.json'), { recursive: true });
  assert.deepEqual(
    (await readMigrations(root, 'main')).map((one) => [one.tag, one.file]),
    [[tag, upper]],
  );
});

test('everything of a schema that the engine lacks is named at once', async () => {
  const key = { type: 'UUID', primaryKey: true } as const;
  const tables = {
    a: { id: key, email: { type: 'Text', unique: true } },
    b: {
      id: key,
      a: { type: 'UUID', references: { table: 'a', column: 'id' } },
      n: { type: 'Integer', required: true },
    },
  } as const;
  const refusal = await rejectionOf(generateFrom(tables, { dialect: cassandra }));
  assert.equal(refusal.code, 'not_supported');
  for (const part of [/"a\.email"/, /"b_a_fkey" of "b"/]) assert.match(refusal.message, part);
});
