import * as assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { planText } from '../cli/db/plan-text.ts';
import { isSvcError, type SvcError } from '../core/errors.ts';
import { migration } from '../core/migration/builder.ts';
import { migrate } from '../core/migration/migrate.ts';
import { MigrationEngine } from '../core/migration/migration-engine.ts';
import type { Target } from '../core/migration/target.ts';
import type { NamedFieldDefinition, Operation } from '../core/schema/operation.ts';
import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { engines } from './kit/engines.ts';
import { definedInCode } from './kit/migrations.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

const compiled = (operation: Operation) => postgresql.compile(operation, new Map());
const rawText = (statement: string, more = {}) => compiled({ type: 'raw', dialect: 'postgresql', statement, ...more });
const createWith = (field: NamedFieldDefinition) => compiled({ type: 'createCollection', name: 't', fields: [field] });

function throwsRefusal(work: () => unknown, code: string, what: string): void {
  assert.throws(work, (error) => isSvcError(error) && error.code === code, what);
}

const CONTROL_IN_DISGUISE = [
  // An E string continues on a new line in its own mode.
  "SELECT E'a'\n'b\\''; COMMIT; SELECT 1 --'",
  "SELECT E'a' -- more\n -- and more\n 'b\\''; COMMIT; SELECT 1 --'",
  // These two words open a body only in the head of a routine.
  'SELECT begin, atomic FROM (SELECT 1, 2) x(begin, atomic); COMMIT; SELECT 1',
  'SELECT begin atomic FROM (SELECT 1) x(begin); COMMIT; SELECT 1',
  "CREATE FUNCTION f(begin atomic) RETURNS int LANGUAGE sql AS 'SELECT 1'; END; SELECT 1",
  'CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1 AS case; END; COMMIT; SELECT 1 AS end',
  'CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; END; END',
  'CREATE PROCEDURE f() BEGIN ATOMIC END; END',
  // A carriage return ends a comment; characters beyond ASCII are letters; a number ends with its digits.
  'SELECT 1 -- a\r; COMMIT',
  'SELECT 1 AS €$a$; COMMIT; SELECT 1 AS €$a$',
  "SELECT 1e'\\''; COMMIT; SELECT 1 --'",
  "SELECT 1$a$'$a$; COMMIT; SELECT 1 --'",
];

test('transaction control in raw text is detected in any disguise', () => {
  for (const text of CONTROL_IN_DISGUISE) {
    throwsRefusal(() => rawText(text), 'migration_invalid', text);
    throwsRefusal(() => rawText('SELECT 1', { check: text, transaction: false }), 'migration_invalid', text);
  }
});

test('unclosed quotes, parentheses and bodies are rejected', () => {
  for (const text of ["SELECT E'a\\'", 'CREATE PROCEDURE f() BEGIN ATOMIC SELECT 1;', 'SELECT (1; SELECT 1']) {
    throwsRefusal(() => rawText(text), 'migration_invalid', text);
  }
});

test('copies from and to the client, and DISCARD ALL, are rejected', () => {
  for (const text of [
    'COPY t FROM STDIN',
    'copy t (a, b) from /* x */ stdin with csv',
    'COPY (SELECT 1) TO STDOUT',
    'SELECT 1; COPY t TO STDOUT',
    'COPY t FROM STDOUT',
    'DISCARD ALL',
  ]) {
    throwsRefusal(() => rawText(text), 'migration_invalid', text);
  }
  for (const text of ["COPY t FROM '/a'", 'COPY (SELECT * FROM stdin) TO PROGRAM $$cat$$', 'DISCARD PLANS']) {
    assert.equal(rawText(text).length, 1, text);
  }
});

const MORE_THAN_AN_EXPRESSION = [
  '1); DROP TABLE x; --',
  '1); CREATE TABLE p (a int); SELECT (1',
  '1) , (1',
  '(1',
  '1;',
  '1 -- a',
  '1 /* a */',
  "'a",
  '"a',
  '$a$ b',
  "E'a'\n'\\''); DROP TABLE x; --'",
];

test('an expression is one expression', () => {
  for (const expression of MORE_THAN_AN_EXPRESSION) {
    const field: NamedFieldDefinition = { name: 'n', type: 'integer', default: { $expression: expression } };
    throwsRefusal(() => createWith(field), 'field_invalid', expression);
    const table = { name: 't', fields: new Map(), indexes: new Map(), constraints: new Map(), options: {} };
    const check = { name: 'c', type: 'check' as const, expression };
    const add: Operation = { type: 'addConstraint', collection: 't', constraint: check };
    throwsRefusal(() => postgresql.compile(add, new Map([['t', table]])), 'constraint_invalid', expression);
  }
  for (const expression of ["coalesce('a;b)--', E'\\'')", '(1 + 2) * 3', '$$;)$$', '"a;)" > 0', '1 - -1']) {
    assert.equal(createWith({ name: 'n', type: 'text', default: { $expression: expression } }).length, 1, expression);
  }
});

test('system columns are rejected as field names', () => {
  for (const name of ['ctid', 'xmin', 'xmax', 'cmin', 'cmax', 'tableoid']) {
    throwsRefusal(() => createWith({ name, type: 'integer' }), 'name_invalid', name);
  }
  assert.equal(createWith({ name: 'CTID', type: 'integer' }).length, 1);
});

test('a terminal shows control characters escaped; a pipe gets them unchanged', () => {
  const steps = [
    {
      dialect: postgresql,
      migration: migration('20260101_000000_a').createCollection('a', []).build(),
      statements: compiled({
        type: 'createCollection',
        name: 'evil\u001b[2J\r',
        fields: [{ name: 'id', type: 'integer' }],
      }),
    },
  ];
  const shown = planText('main', steps, { isTTY: true });
  assert.match(shown, /evil\\u\{1b\}\[2J\\u\{d\}/);
  assert.ok(![...shown].some((character) => character < ' ' && character !== '\n'));
  assert.ok(planText('main', steps, {}).includes('"evil\u001b[2J\r"'));
});

const things = migration('20260101_000000_things')
  .createCollection('things', [
    { name: 'id', type: 'integer', primaryKey: true },
    { name: 'note', type: 'string', default: 'a\\b' },
  ])
  .build();
const text = (number: number, name: string, ...statements: string[]) => {
  let builder = migration(`2026010${number}_000000_${name}`);
  for (const statement of statements) builder = builder.raw('postgresql', statement, { down: 'SELECT 1' });
  return builder.build();
};

for (const engine of engines) {
  if (engine.missing !== undefined) {
    test.skip(`${engine.name}: hostile texts`, engine.missing);
    continue;
  }
  const on = (name: string, body: (adapter: Target, again: () => Promise<Target>) => Promise<void>) =>
    test(`${engine.name}: ${name}`, () => engine.withDatabase(body), { timeoutMs: 60_000 });

  on('a segment that commits by itself and then fails does not count as committed', async ({ connection }) => {
    await connection.withLock(async (epoch) => {
      const marked = (run: string) => ({
        text: run,
        run: { kind: 'raw', sql: run },
        transactional: true,
        destructive: false,
      });
      const outcome = await connection.run(
        [
          {
            transactional: true,
            statements: [marked('CREATE TABLE half (i int); COMMIT; SELECT 1 / 0')],
            writes: [],
          },
        ],
        epoch,
      );
      assert.equal(outcome.committed, 0);
      assert.ok(outcome.failure);
    });
  });

  on('completion is only reported if the history confirms it', async (adapter) => {
    const { connection } = adapter;
    const lying: Target = {
      ...adapter,
      connection: { ...connection, run: async () => ({ committed: 0, written: [] }) },
    };
    await assert.rejects(new MigrationEngine(lying).up(things));
    await assert.rejects(
      new MigrationEngine({
        ...adapter,
        connection: {
          ...connection,
          run: async () => ({ committed: 1, written: [[{}]], failure: { statement: 0, error: new Error('failed') } }),
        },
      }).up(things),
      /failed/,
    );
    assert.equal((await new MigrationEngine(adapter).up(things)).status, 'completed');
  });

  on('a migration that fails after a hidden commit is never completed', async (adapter) => {
    for (const [index, hidden] of CONTROL_IN_DISGUISE.entries()) {
      await expectError(new MigrationEngine(adapter).up(text(2, `hidden_${index}`, hidden)), 'migration_invalid');
    }
    assert.deepEqual(await new MigrationEngine(adapter).getHistory({ all: true }), []);
  });

  on('an expression with further statements has no effect', async (adapter) => {
    const runner = new MigrationEngine(adapter);
    await runner.up(things);
    const check = { name: 'c', type: 'check' as const, expression: 'id > 0); DROP TABLE things; --' };
    await expectError(
      runner.up(migration('20260102_000000_c').addConstraint('things', check).build()),
      'constraint_invalid',
    );
    const field: NamedFieldDefinition = {
      name: 'x',
      type: 'integer',
      default: { $expression: '1); CREATE TABLE p (a int); SELECT (1' },
    };
    await expectError(runner.up(migration('20260103_000000_x').addField('things', field).build()), 'field_invalid');
    assert.deepEqual([...(await adapter.connection.introspect()).keys()], ['things']);
  });

  on('settings of raw text do not outlive its migration', async (adapter) => {
    const { connection } = adapter;
    const settings = [
      'search_path',
      'statement_timeout',
      'standard_conforming_strings',
      'datestyle',
      'timezone',
      'lock_timeout',
      'client_min_messages',
      'client_connection_check_interval',
    ];
    const asked = `SELECT ${settings.map((name) => `current_setting('${name}', true) AS ${name}`).join(', ')}, current_user AS me`;
    const [before] = await connection.query(asked);
    await connection.query('CREATE ROLE svc_hostile').catch(() => undefined);
    const sets = [
      "SELECT pg_catalog.set_config('search_path', '', false)",
      "SET statement_timeout = '20s'; SET lock_timeout = '7s'",
      "SET standard_conforming_strings = off; SET datestyle = 'German'; SET timezone = 'Asia/Tokyo'",
      'RESET ALL',
      'SET ROLE svc_hostile',
    ];
    for (const [index, set] of sets.entries()) {
      const report = await migrate(
        adapter,
        sets
          .slice(0, index + 1)
          .map((one, at) => text(at + 1, `sets_${at}`, one))
          .map(definedInCode),
      );
      assert.equal(report.migrations.length, 1, set);
      assert.ok((report.migrations[0]?.durationMs ?? -1) >= 0);
      assert.deepEqual(await connection.query(asked), [before], set);
    }
    const all = [
      ...sets.map((one, at) => text(at + 1, `sets_${at}`, one)),
      { ...things, tag: '20260109_000000_things' },
    ];
    await migrate(adapter, all.map(definedInCode));
    const found = (await connection.introspect()).get('things');
    assert.equal(found?.fields.get('note')?.default, 'a\\b');
    await connection.query('DROP ROLE svc_hostile').catch(() => undefined);
  });

  on('settings of raw text outside a transaction do not outlive it either', async (adapter) => {
    const asked = "SELECT current_setting('search_path') AS path, current_setting('lock_timeout') AS wait";
    const [before] = await adapter.connection.query(asked);
    const outsideTransaction = migration('20260101_000000_apart')
      .raw('postgresql', "SELECT set_config('search_path', '', false), set_config('lock_timeout', '9s', false)", {
        transaction: false,
        down: 'SELECT 1',
      })
      .build();
    assert.equal((await new MigrationEngine(adapter).up(outsideTransaction)).status, 'completed');
    const [after] = await adapter.connection.query(asked);
    assert.equal(after?.path, before?.path);
    if (engine.name === 'postgresql') assert.equal(after?.wait, before?.wait);
  });

  on('raw text that releases the lock fails with lock_lost', async (adapter) => {
    const runner = new MigrationEngine(adapter);
    const error = await expectError(
      runner.up(text(1, 'unlock', 'CREATE TABLE a (i int)', 'SELECT pg_advisory_unlock_all()')),
      'lock_lost',
    );
    assert.match(error.why ?? '', /raw statement/);
    assert.deepEqual([...(await adapter.connection.introspect()).keys()], []);
    assert.deepEqual(await runner.getHistory({ all: true }), []);
    assert.equal((await runner.up(things)).status, 'completed');
  });

  on('errors do not show row values', async (adapter) => {
    const runner = new MigrationEngine(adapter);
    await runner.up(things);
    await adapter.connection.query("INSERT INTO things (id, note) VALUES (1, 'PII-123'), (2, 'PII-123'), (3, NULL)");
    const silent = (error: SvcError) => assert.doesNotMatch(`${inspect(error)}${error.stack}`, /PII-123/);
    const change = (changes: object) =>
      migration('20260102_000000_change')
        .modifyField('things', 'note', changes, { was: { type: 'string' } })
        .build();
    const unique = await expectError(runner.up(change({ unique: true })), 'data_violates');
    silent(unique);
    assert.match(unique.why ?? '', /note/);
    assert.match(unique.why ?? '', /things_note_key/);
    const required = await expectError(runner.up(change({ required: true })), 'data_violates');
    silent(required);
    assert.match(required.why ?? '', /column note/);
    const check = { name: 'short', type: 'check' as const, expression: 'length(note) < 3' };
    const checked = migration('20260102_000000_check').addConstraint('things', check).build();
    const broken = await expectError(runner.up(checked), 'data_violates');
    silent(broken);
    assert.match(broken.why ?? '', /constraint short/);
    silent(
      await expectError(
        runner.up(text(4, 'again', 'INSERT INTO things SELECT 1, note FROM things WHERE id = 1')),
        'data_violates',
      ),
    );
  });
}
