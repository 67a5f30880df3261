import * as assert from 'node:assert/strict';
import { loadRuntime } from '../config/load/runtime.ts';
import { lint, withRowCounts } from '../core/lint/lint.ts';
import { rulesFor } from '../core/lint/rule-sets.ts';
import { sqlStatements } from '../core/lint/sql-text.ts';
import type { Migration } from '../core/migration/migration.ts';
import { migrationProblems } from '../core/migration/validate-migration.ts';
import type { MigrationOperation } from '../core/schema/operation.ts';
import { EXISTING, EXISTING_ORDERS, LINT_CASES, type LintCase } from './kit/lint-cases.ts';
import { test } from './kit/test.ts';

const DIALECTS = ['postgresql', 'mysql', 'mariadb', 'mongodb', 'dynamodb', 'cassandra'] as const;

const runtime = await loadRuntime(
  {
    config: {
      product: 'shop',
      env: 'dev',
      databases: Object.fromEntries(DIALECTS.map((dialect) => [dialect, { dialect, url: `${dialect}://host/db` }])),
    },
  },
  () => import('../config/sdk/index.ts'),
);
const dialects = new Map(
  await Promise.all(
    DIALECTS.map(async (name) => {
      const dialect = await runtime.dialectOf(name);
      return [name as string, { dialect, rules: await rulesFor((await runtime.kernel()).lintRules, name) }] as const;
    }),
  ),
);

const named = (tag: string, up: readonly MigrationOperation[], more: Partial<Migration> = {}): Migration => ({
  tag,
  name: tag,
  up,
  down: [],
  ...more,
});

function check(name: string, up: readonly MigrationOperation[], more: Partial<Migration> = {}) {
  const { dialect, rules } = dialects.get(name) ?? assert.fail(name);
  const before = [...EXISTING, ...EXISTING_ORDERS];
  return lint([named('1_before', before), named('2_case', up, more)], {
    dialect: name,
    transactionalDdl: dialect.capabilities.transactionalDdl,
    rules,
    includes: ({ tag }) => tag === '2_case',
  });
}

const idsOf = (name: string, up: readonly MigrationOperation[]): readonly string[] =>
  check(name, up).findings.map(({ rule }) => rule);

const label = ({ rule, bad }: LintCase): string => `${rule} ${JSON.stringify(bad).slice(0, 120)}`;

test('every rule finds what it is about, and says nothing of the better form', () => {
  const missed: string[] = [];
  const invented: string[] = [];
  let pairs = 0;
  for (const one of LINT_CASES) {
    for (const dialect of one.dialects) {
      pairs += 1;
      // What svc does online by itself is not reported.
      if (!check(dialect, one.bad, { online: false }).findings.some(({ rule }) => rule === one.rule))
        missed.push(`${dialect} ${label(one)}`);
      for (const { rule, level, message } of check(dialect, one.good ?? []).findings)
        if (level !== 'note' || rule === one.rule) invented.push(`${dialect} ${label(one)}: ${rule} ${message}`);
    }
  }
  assert.ok(pairs > 150, `${pairs} pairs`);
  assert.deepEqual({ missed, invented }, { missed: [], invented: [] });
});

test('what PostgreSQL does without blocking is not reported, but for a table with partitions', () => {
  const index = { type: 'createIndex', collection: 'visits', index: 'visits_at', columns: [{ name: 'at' }] } as const;
  const visits = (native?: string) =>
    ({
      type: 'createCollection',
      name: 'visits',
      fields: [{ name: 'at', type: 'timestamp' }],
      ...(native !== undefined && { options: { sqlOptions: { native } } }),
    }) as const;
  const findingsOf = (native?: string, more: Partial<Migration> = {}) => {
    const { dialect, rules } = dialects.get('postgresql') ?? assert.fail();
    const migrations = [named('1_visits', [visits(native)]), named('2_index', [index], more)];
    const options = { dialect: 'postgresql', transactionalDdl: dialect.capabilities.transactionalDdl, rules };
    return lint(migrations, { ...options, includes: ({ tag }) => tag === '2_index' }).findings.map(({ rule }) => rule);
  };
  assert.deepEqual(findingsOf(), []);
  assert.deepEqual(findingsOf(undefined, { online: false }), ['SVC101']);
  assert.deepEqual(findingsOf('PARTITION BY RANGE (at)'), ['SVC101']);
});

test('every rule of every dialect has a case', () => {
  const tried = new Set(LINT_CASES.map(({ rule }) => rule));
  const untried = new Set([...dialects.values()].flatMap(({ rules }) => rules.map(({ id }) => id)));
  // Tested below.
  for (const id of [...tried, 'SVC509', 'SVC132', 'SVC133', 'SVC134']) untried.delete(id);
  assert.deepEqual([...untried], []);
});

test('a table of the same migration is not in use yet', () => {
  const fresh: readonly MigrationOperation[] = [
    {
      type: 'createCollection',
      name: 'invoices',
      fields: [
        { name: 'id', type: 'bigint', primaryKey: true },
        { name: 'n', type: 'integer' },
        { name: 'userId', type: 'bigint' },
      ],
    },
    { type: 'createIndex', collection: 'invoices', index: 'i', columns: [{ name: 'n' }] },
    { type: 'createIndex', collection: 'invoices', index: 'u', columns: [{ name: 'userId' }] },
    { type: 'modifyField', collection: 'invoices', field: 'n', changes: { required: true } },
    {
      type: 'addConstraint',
      collection: 'invoices',
      constraint: {
        name: 'f',
        type: 'foreignKey',
        columns: ['userId'],
        references: { table: 'users', columns: ['id'] },
      },
    },
    { type: 'dropField', collection: 'invoices', field: 'n' },
  ];
  assert.deepEqual(idsOf('postgresql', fresh.slice(0, 5)), []);
});

test('raw statements of MySQL', () => {
  const mysql = (statement: string): readonly string[] =>
    idsOf('mysql', [{ type: 'raw', dialect: 'mysql', statement, makes: [], check: 'SELECT 1' }]);
  assert.deepEqual(mysql('ALTER TABLE users ADD COLUMN x int'), ['SVC132']);
  assert.deepEqual(mysql('ALTER TABLE users ADD COLUMN x int, ALGORITHM=INSTANT'), []);
  assert.deepEqual(mysql('OPTIMIZE TABLE users'), ['SVC133']);
  assert.deepEqual(mysql('RENAME TABLE users TO people'), ['SVC201']);
  assert.deepEqual(mysql('ALTER TABLE users CHANGE note notes text, ALGORITHM=INPLACE'), ['SVC202']);
  assert.deepEqual(mysql('SET FOREIGN_KEY_CHECKS = 0'), ['SVC507']);
  assert.deepEqual(
    idsOf('mysql', [
      { type: 'addField', collection: 'users', field: { name: 'at', type: 'timestamp', native: 'timestamp(3)' } },
    ]),
    ['SVC134'],
  );
  // Of another dialect: it does not run.
  assert.deepEqual(idsOf('mysql', [{ type: 'raw', dialect: 'postgresql', statement: 'DROP TABLE users CASCADE' }]), []);
});

test('words in comments, literals, bodies and names are not statements', () => {
  const texts = [
    "INSERT INTO users (note) VALUES ('DROP TABLE users; TRUNCATE users')",
    '-- DROP TABLE users\nSELECT 1',
    '/* TRUNCATE users; */ SELECT 1',
    'CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN UPDATE users SET age = 1; RETURN new; END $f$',
    'COMMENT ON TABLE users IS \'LOCK TABLE "users"\'',
    'SELECT 1 AS "; DROP TABLE users"',
  ];
  for (const statement of texts) {
    const found = idsOf('postgresql', [{ type: 'raw', dialect: 'postgresql', statement, makes: [] }]);
    assert.deepEqual(found, [], statement);
  }
  assert.deepEqual(
    sqlStatements('a \'x;y\' ; b "p;q" -- c\n; /* d */ e').map(({ text }) => text),
    ["a ''", 'b "p;q"', 'e'],
  );
});

test('a migration accepts findings, with a reason', () => {
  const up: readonly MigrationOperation[] = [
    { type: 'dropField', collection: 'users', field: 'note' },
    { type: 'dropField', collection: 'users', field: 'age' },
  ];
  const byRule = check('postgresql', up, { lintIgnore: [{ rule: 'SVC204', reason: 'read by nobody' }] });
  assert.deepEqual([byRule.findings, byRule.ignored.length, byRule.ignored[0]?.reason], [[], 2, 'read by nobody']);
  const byName = check('postgresql', up, {
    lintIgnore: [{ rule: 'field-dropped', operation: 1, reason: 'read by nobody' }],
  });
  assert.deepEqual(
    byName.findings.map(({ rule, operation }) => [rule, operation]),
    [['SVC204', 0]],
  );
  const unused = check('postgresql', [], { lintIgnore: [{ rule: 'SVC101', reason: 'gone' }] });
  assert.deepEqual(
    unused.findings.map(({ rule, level }) => [rule, level]),
    [['SVC001', 'warning']],
  );
  const problems = (lintIgnore: unknown) => migrationProblems({ ...named('2_case', up), lintIgnore });
  assert.deepEqual(problems([{ rule: 'SVC204', reason: 'x', operation: 0 }]), []);
  assert.deepEqual(problems([{ rule: 'SVC204', reason: ' ' }]), ['lintIgnore[0]: needs a "reason".']);
  assert.equal(problems({}).length + problems([1]).length + problems([{ rule: 'a', reason: 'b', c: 1 }]).length, 3);
  assert.deepEqual(problems([{ rule: 'a', reason: 'b', operation: -1 }]).length, 1);
});

test('permission to destroy data, and what cannot be rolled back', () => {
  const drop: readonly MigrationOperation[] = [{ type: 'dropCollection', collection: 'orders' }];
  assert.deepEqual(check('postgresql', drop, { allow: ['destructive'] }).findings, []);
  const irreversible = check('postgresql', drop, { allow: ['destructive'], irreversible: 'The rows are gone.' });
  assert.deepEqual(
    irreversible.findings.map(({ rule, level }) => [rule, level]),
    [['SVC509', 'warning']],
  );
  const elsewhere = { allow: ['destructive'], irreversible: 'x', irreversibleOn: ['mysql'] } as const;
  assert.deepEqual(check('postgresql', drop, elsewhere).findings, []);
});

test('the rows of a table that is renamed before are counted under its old name', async () => {
  const { findings } = check(
    'postgresql',
    [
      { type: 'renameCollection', collection: 'users', to: 'people' },
      { type: 'renameCollection', collection: 'people', to: 'persons' },
      { type: 'createIndex', collection: 'persons', index: 'i', columns: [{ name: 'age' }] },
    ],
    { online: false },
  );
  const asked: string[] = [];
  const counted = await withRowCounts(findings, async (table) => {
    asked.push(table);
    return 10_000;
  });
  assert.deepEqual(asked, ['users']);
  assert.deepEqual(
    counted.map(({ rule, level, table }) => [rule, level, table]),
    [
      ['SVC201', 'error', 'users'],
      ['SVC201', 'error', 'people'],
      ['SVC101', 'error', 'persons'],
    ],
  );
});

test('levels are set by id or name, and small tables lower them', async () => {
  const { rules } = dialects.get('postgresql') ?? assert.fail();
  const run = (levels: Record<string, 'error' | 'warning' | 'note' | 'off'>) =>
    lint([named('1', EXISTING), named('2', [index], { online: false })], {
      dialect: 'postgresql',
      transactionalDdl: true,
      rules,
      levels,
      includes: ({ tag }) => tag === '2',
    }).findings;
  const index: MigrationOperation = {
    type: 'createIndex',
    collection: 'users',
    index: 'i',
    columns: [{ name: 'age' }],
  };
  assert.deepEqual(
    run({}).map(({ level }) => level),
    ['error'],
  );
  assert.deepEqual(
    run({ SVC101: 'note' }).map(({ level }) => level),
    ['note'],
  );
  assert.deepEqual(run({ 'index-blocks-writes': 'off' }), []);
  const counted = async (rows: number | undefined) =>
    (await withRowCounts(run({}), async () => rows)).map(({ level, rows }) => [level, rows]);
  assert.deepEqual(await counted(9_999), [['note', 9_999]]);
  assert.deepEqual(await counted(10_000), [['error', 10_000]]);
  assert.deepEqual(await counted(undefined), [['note', 0]]);
});
