import * as assert from 'node:assert/strict';
import { isSvcError } from '../core/errors.ts';
import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { test } from './kit/test.ts';

const compiled = (statement: string, more = {}) =>
  postgresql.compile({ type: 'raw', dialect: 'postgresql', statement, ...more }, new Map());

test('transaction control in raw text is rejected, however it is hidden', () => {
  for (const text of [
    'BEGIN',
    'commit;',
    'SELECT 1; /* a /* nested */ comment */ COMMIT',
    '-- BEGIN\nROLLBACK TO SAVEPOINT a',
    "SELECT ';'; SAVEPOINT a",
    'SELECT $$;$$; END',
    "SELECT E'it\\'s'; ABORT",
    'START /* x */ TRANSACTION',
    'RELEASE a',
    "PREPARE TRANSACTION 'a'",
    'CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; END; COMMIT',
  ]) {
    assert.throws(
      () => compiled(text),
      (error) => isSvcError(error) && error.code === 'migration_invalid',
      text,
    );
  }
});

test('transaction keywords inside literals, comments and bodies are allowed', () => {
  for (const text of [
    "SELECT 'a'; SELECT '; COMMIT'",
    'SELECT 1 -- ; COMMIT',
    'SELECT "; COMMIT"',
    'DO $x$ BEGIN PERFORM 1; END $x$',
    'CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$',
    'CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 2; END',
    'PREPARE plan AS SELECT 1',
    'SELECT commit FROM t',
  ]) {
    assert.equal(compiled(text).length, 1, text);
  }
  assert.deepEqual(compiled(' ; -- nothing'), []);
});

test('text that would swallow the text after it is rejected', () => {
  for (const text of ["SELECT 'a", 'SELECT "a', 'SELECT /* a', 'SELECT $a$ b', 'SELECT \0']) {
    assert.throws(
      () => compiled(text),
      (error) => isSvcError(error) && error.code === 'migration_invalid',
      text,
    );
  }
});

test('raw text of another dialect compiles to nothing', () => {
  assert.deepEqual(postgresql.compile({ type: 'raw', dialect: 'mysql', statement: 'COMMIT' }, new Map()), []);
});

test('text outside a transaction keeps its check', () => {
  const [statement] = compiled('VACUUM', { transaction: false, check: 'SELECT 1' });
  assert.equal(statement?.transactional, false);
  assert.equal(statement?.check, 'SELECT 1');
});
