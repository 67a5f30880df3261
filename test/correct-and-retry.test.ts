import * as assert from 'node:assert/strict';
import { committingEngines } from './kit/engines.ts';
import { assertExit, json, LONG, project } from './kit/project.ts';
import { test } from './kit/test.ts';

const TAG = '20260101_000000_half';
const FILE = `svc/database/migrations/main/${TAG}.json`;

for (const engine of committingEngines) {
  const dialect = engine.dialect.name;
  const table = (name: string) => ({
    type: 'createCollection',
    name,
    fields: [
      { name: 'id', type: 'integer', primaryKey: true },
      { name: 'n', type: 'integer' },
    ],
  });
  const raw = (statement: string, makes?: readonly object[]) => ({
    type: 'raw',
    dialect,
    statement,
    ...(makes && { makes }),
  });
  const migrationOf = (...up: readonly object[]) => ({ tag: TAG, up, down: [] });
  const on = (what: string, body: (url: string) => Promise<void>): void => {
    if (engine.missing !== undefined) test.skip(`${engine.name}: ${what}`, engine.missing);
    else test(`${engine.name}: ${what}`, () => engine.withUrl(body), LONG);
  };

  on('a typo in the middle of a migration is corrected and retried', async (url) => {
    const { svc, write } = project({ main: url });
    write(FILE, migrationOf(table('a'), raw('SELEC 1'), table('b')));
    const failed = json(assertExit(await svc('db', 'migrate', '--json'), 6));
    assert.doesNotMatch(JSON.stringify(failed), /COMMIT|svc_done|svc_at/);
    assert.match(failed.why, /1064: .*near 'SELEC 1' at line 1/);
    const [advised] = failed.nextActions;
    assert.match(advised, /^svc db migrate resolve \S+ --retry .*correct in the file/);
    const retry = () => svc(...advised.split(/ {2,}/)[0].split(' ').slice(1), '--json');

    write(FILE, migrationOf(table('a'), raw('SELECT 1'), { type: 'dropField', collection: 'a', field: 'n' }));
    assert.equal(json(assertExit(await retry(), 8)).code, 'destructive');
    write(FILE, migrationOf(table('other'), raw('SELECT 1'), table('b')));
    assert.equal(json(assertExit(await retry(), 5)).code, 'migration_edited');
    write(FILE, migrationOf(table('a')));
    const shorter = json(assertExit(await retry()));
    assert.equal(shorter.status, 'completed');
    assertExit(await svc('db', 'migrate', 'status', '--check'));
    assertExit(await svc('db', 'schema', 'check', '--strict'));
  });

  on('a wrong makes is corrected and retried, and its statement does not run again', async (url) => {
    const { svc, write } = project({ main: url });
    const create = 'CREATE TABLE made (id int PRIMARY KEY, n int)';
    write(FILE, migrationOf(raw(create, [table('wrong')]), table('b')));
    const failed = json(assertExit(await svc('db', 'migrate', '--json'), 6));
    assert.match(failed.why, /makes.*table wrong is missing/);
    write(FILE, migrationOf(raw(create, [table('made')]), table('b')));
    assertExit(await svc('db', 'migrate', 'resolve', TAG, '--retry'));
    assertExit(await svc('db', 'migrate', 'status', '--check'));
    assertExit(await svc('db', 'schema', 'check', '--strict'));
  });
}
