import * as assert from 'node:assert/strict';
import { withSemicolon } from '../cli/db/plan-text.ts';
import { migration } from '../core/migration/builder.ts';
import { migrate, rollback } from '../core/migration/migrate.ts';
import type { Migration } from '../core/migration/migration.ts';
import type { Target } from '../core/migration/target.ts';
import { definedInCode } from './kit/migrations.ts';
import { sixEngines } from './kit/six-engines.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';

/** How people end a statement. */
const ENDS = ['', ';', ' ; ', ';;', '; -- done', ' -- done; really', ';\n-- done;', '; /* done; */ ;', ';\n'];

/** A migration per end, with statements in a transaction and outside one. */
function migrations(engine: string): Migration[] {
  return ENDS.map((end, at) => {
    const name = `ends_${at}`;
    const check =
      engine === 'cassandra'
        ? `SELECT key FROM system.local WHERE key = 'other'${end}`
        : `SELECT 1 FROM (SELECT 1 AS a) AS one WHERE a = 2${end}`;
    const m = migration(`2026010${at + 1}_000000_${name}`)
      .raw(engine, `CREATE TABLE ${name} (id int PRIMARY KEY)${end}`, { check, down: `DROP TABLE ${name}${end}` })
      .raw(engine, `INSERT INTO ${name} (id) VALUES (1)${end}`, {
        check,
        down: `DELETE FROM ${name} WHERE id = 1${end}`,
      })
      .build();
    return m;
  });
}

async function withTarget(engine: (typeof sixEngines)[number], body: (target: Target) => Promise<void>): Promise<void> {
  const { url, drop } = await engine.createDatabase();
  const target = await connectTarget(engine.dialect, url);
  try {
    await body(target);
  } finally {
    await target.connection.close();
    await drop();
  }
}

for (const engine of sixEngines.filter(({ name }) => name !== 'mongodb' && name !== 'dynamodb')) {
  const name = `${engine.name}: a raw statement may end in a semicolon and in a comment`;
  if (engine.missing !== undefined) test.skip(name, engine.missing);
  else
    test(
      name,
      () =>
        withTarget(engine, async (target) => {
          const defined = migrations(engine.name).map(definedInCode);
          const applied = await migrate(target, defined);
          assert.equal(applied.migrations.length, ENDS.length);
          const rolledBack = await rollback(target, { count: ENDS.length });
          assert.equal(rolledBack.migrations.length, ENDS.length);
        }),
      { timeoutMs: 120_000 },
    );
}

test('what is printed for a shell ends in a semicolon that no comment hides', () => {
  assert.equal(withSemicolon('SELECT 1'), 'SELECT 1;');
  assert.equal(withSemicolon('SELECT 1;\n'), 'SELECT 1;');
  for (const text of ['SELECT 1 -- one', 'SELECT 1 -- one;', 'SELECT 1 # one', 'SELECT 1 # one;', 'SELECT 1 // one;']) {
    assert.equal(withSemicolon(text), `${text}\n;`);
  }
});
