import * as assert from 'node:assert/strict';
import type { Migration } from '../core/migration/migration.ts';
import { freshDatabase, unavailable } from './kit/postgresql.ts';
import { assertExit, json, LONG, project } from './kit/project.ts';
import { test as declare } from './kit/test.ts';

const missing = await unavailable();

function test(name: string, body: () => Promise<void>): void {
  if (missing === undefined) declare(name, body, LONG);
  else declare.skip(name, missing);
}

const FIRST: Migration = {
  tag: '20260101_000000_first',
  name: 'first',
  up: [
    {
      type: 'createCollection',
      name: 'users',
      fields: [
        { name: 'id', type: 'bigint', primaryKey: true, autoGenerate: true },
        { name: 'age', type: 'integer' },
        { name: 'note', type: 'text' },
      ],
    },
  ],
  down: [{ type: 'dropCollection', collection: 'users' }],
};
const SECOND: Migration = {
  tag: '20260102_000000_second',
  name: 'second',
  online: false,
  up: [
    { type: 'createIndex', collection: 'users', index: 'users_age', columns: [{ name: 'age' }] },
    { type: 'renameField', collection: 'users', from: 'note', to: 'notes' },
  ],
  down: [
    { type: 'renameField', collection: 'users', from: 'notes', to: 'note' },
    { type: 'dropIndex', collection: 'users', index: 'users_age' },
  ],
};
const pathOf = ({ tag }: Migration): string => `svc/database/migrations/main/${tag}.json`;

type Finding = { rule: string; level: string; line: number; rows?: number };
const found = (output: { findings: Finding[] }): readonly string[] =>
  output.findings.map(({ rule, level, rows }) => `${rule} ${level}${rows === undefined ? '' : ` ${rows}`}`);

test('files are checked without a database, in every format', async () => {
  const { svc, write, read } = project({ main: 'postgresql://nobody@127.0.0.1:1/none' });
  assert.deepEqual(json(assertExit(await svc('db', 'migrate', 'lint', '--json'))).findings, []);
  write(pathOf(FIRST), FIRST);
  write(pathOf(SECOND), SECOND);
  const text = assertExit(await svc('db', 'migrate', 'lint'), 1);
  assert.match(text.stdout, /20260102_000000_second\.json\n {2}error {3}SVC101 index-blocks-writes {2}line \d+\n/);
  assert.match(
    text.stdout,
    /The index "users_age" is built[^\n]*\n[^\n]*wait[^\n]*\n {10}fix Leave out "online": false/,
  );
  assert.match(text.stderr, /2 errors, 0 warnings, 0 notes in 2 migrations/);
  const { code, findings, checked } = json(assertExit(await svc('db', 'migrate', 'lint', '--json'), 1));
  assert.deepEqual([code, checked, found({ findings })], ['lint_failed', 2, ['SVC101 error', 'SVC202 error']]);
  const lines = read(pathOf(SECOND)).split('\n');
  assert.match(lines.slice(findings[0].line - 1, findings[0].line + 1).join(''), /"createIndex"/);

  const github = assertExit(await svc('db', 'migrate', 'lint', '--format', 'github'), 1)
    .stdout.trim()
    .split('\n');
  assert.match(
    github[0] ?? '',
    /^::error file=svc\/database\/migrations\/main\/20260102_000000_second\.json,line=\d+,title=SVC101 index-blocks-writes::The index/,
  );
  const gitlab = JSON.parse(assertExit(await svc('db', 'migrate', 'lint', '--format', 'gitlab'), 1).stdout);
  assert.deepEqual(
    gitlab.map((one: Record<string, unknown>) => [one.check_name, one.severity]),
    [
      ['SVC101 index-blocks-writes', 'major'],
      ['SVC202 field-renamed', 'major'],
    ],
  );
  const sarif = JSON.parse(assertExit(await svc('db', 'migrate', 'lint', '--format', 'sarif'), 1).stdout);
  const [run] = sarif.runs;
  assert.equal(sarif.version, '2.1.0');
  assert.deepEqual(
    run.results.map((one: Record<string, unknown>) => [one.ruleId, one.level]),
    [
      ['SVC101', 'error'],
      ['SVC202', 'error'],
    ],
  );
  assert.deepEqual(
    run.tool.driver.rules.map((one: Record<string, unknown>) => one.id),
    ['SVC101', 'SVC202'],
  );

  assert.equal(json(assertExit(await svc('db', 'migrate', 'lint', '--since', SECOND.tag, '--json'))).checked, 0);
  assert.equal(json(assertExit(await svc('db', 'migrate', 'lint', '--latest', '1', '--json'), 1)).checked, 1);
  const unknown = json(assertExit(await svc('db', 'migrate', 'lint', '--since', 'nothing', '--json'), 2));
  assert.equal(unknown.code, 'migration_unknown');
  assert.equal(json(assertExit(await svc('db', 'migrate', 'lint', '--format', 'xml', '--json'), 2)).code, 'usage');
});

test('levels of the configuration and of its environment, findings that a file accepts, rules of a plugin', async () => {
  const plugin = `export default { name: 'acme', api: 1, apply(kernel) {
    kernel.lintRules.register('acme', { load: async () => [{
      id: 'ACME1', name: 'no-users', level: 'warning', summary: 'A table is named users.', impact: 'None.', fix: 'None.',
      check: ({ operation }) => operation.type === 'createCollection' && operation.name === 'users'
        ? [{ table: 'users', message: 'A table is named users.' }] : [],
    }] });
  } };`;
  const { svc, write } = project(
    { main: 'postgresql://nobody@127.0.0.1:1/none' },
    {
      plugins: ['./acme.mjs'],
      lint: { SVC101: 'note', 'field-renamed': 'off' },
      environments: { prd: { lint: { SVC101: 'error' } } },
    },
  );
  write('acme.mjs', plugin);
  write(pathOf(FIRST), FIRST);
  write(pathOf(SECOND), SECOND);
  const lint = async (status: number, ...args: string[]) =>
    json(assertExit(await svc('db', 'migrate', 'lint', '--json', ...args), status));
  assert.deepEqual(found(await lint(0)), ['ACME1 warning', 'SVC101 note']);
  assert.equal((await lint(1, '--strict')).code, 'lint_failed');
  assert.deepEqual(found(await lint(1, '--env', 'prd')), ['ACME1 warning', 'SVC101 error']);
  write(pathOf(SECOND), { ...SECOND, lintIgnore: [{ rule: 'SVC101', reason: 'few rows' }] });
  const accepted = await lint(0, '--env', 'prd');
  assert.deepEqual([found(accepted), accepted.ignored[0].reason], [['ACME1 warning'], 'few rows']);
  write(pathOf(SECOND), { ...SECOND, lintIgnore: [{ rule: 'SVC101' }] });
  assert.equal((await lint(2)).code, 'migration_invalid');
});

test('a level for a rule that does not exist is refused', async () => {
  const { svc } = project({ main: 'postgresql://nobody@127.0.0.1:1/none' }, { lint: { SVC10: 'off' } });
  const { code, message } = json(assertExit(await svc('db', 'migrate', 'lint', '--json'), 2));
  assert.equal(code, 'config_invalid');
  assert.match(message, /"SVC10", which does not exist/);
  const wrong = project({ main: 'postgresql://nobody@127.0.0.1:1/none' }, { lint: { SVC101: 'fatal' } });
  assert.equal(json(assertExit(await wrong.svc('db', 'migrate', 'lint', '--json'), 2)).code, 'config_invalid');
});

test('with a database, rows decide how bad it is; generate and a dry run say it too', async () => {
  const { url, query, drop } = await freshDatabase();
  try {
    const { svc, write } = project({ main: url });
    write(pathOf(FIRST), FIRST);
    write(pathOf(SECOND), SECOND);
    // Its table is not there yet.
    const before = json(assertExit(await svc('db', 'migrate', 'lint', '--pending', '--json'), 1));
    assert.deepEqual(found(before), ['SVC101 note 0', 'SVC202 error']);
    assertExit(await svc('db', 'migrate', '--to', FIRST.tag));
    await query('INSERT INTO users (age) SELECT 1 FROM generate_series(1, 20)');
    const few = json(assertExit(await svc('db', 'migrate', 'lint', '--pending', '--json'), 1));
    assert.deepEqual([few.checked, found(few)], [1, ['SVC101 note 20', 'SVC202 error']]);
    assert.doesNotMatch(assertExit(await svc('db', 'migrate', '--dry-run')).stdout, /SVC101/);
    await query('INSERT INTO users (age) SELECT 1 FROM generate_series(1, 12000); ANALYZE users');
    const many = assertExit(await svc('db', 'migrate', 'lint', '--pending'), 1);
    assert.match(many.stdout, /error {3}SVC101.*\n.*wait\. \(10,000 rows or more\)/);
    assert.match(
      assertExit(await svc('db', 'migrate', '--dry-run')).stdout,
      /-- 20260102_000000_second\n-- lint error SVC101: The index "users_age"[^\n]*\n-- lint error SVC202: [^\n]*\n-- "users" [^\n]*: blocks writes while its rows are read, about 1 s:\nCREATE INDEX/,
    );
    assertExit(await svc('db', 'migrate'));
    assert.equal(json(assertExit(await svc('db', 'migrate', 'lint', '--pending', '--json'))).checked, 0);

    write('svc/database/schema.json', [
      {
        db: 'main',
        tables: {
          users: {
            id: { type: 'bigint', primaryKey: true, autoGenerate: true },
            age: { type: 'bigint' },
            notes: { type: 'text' },
          },
        },
        indexes: { users: [{ name: 'users_age', columns: ['age'] }] },
      },
    ]);
    const generated = assertExit(await svc('db', 'schema', 'generate', '--name', 'wider'));
    assert.match(generated.stderr, /^lint error SVC106: "users" is rewritten for the type of "age"\./m);
  } finally {
    await drop();
  }
});
