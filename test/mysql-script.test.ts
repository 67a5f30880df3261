import * as assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { mysql } from '../plugins/dialects/mysql/dialect.ts';
import { committingEngines } from './kit/engines.ts';
import { assertExit, LONG, project } from './kit/project.ts';
import { test } from './kit/test.ts';

// What --dry-run and `schema diff` print is run by the client program of the engine.

const TAG = '20260101_000000_audit';
const trigger = `CREATE TRIGGER logged AFTER INSERT ON users FOR EACH ROW
BEGIN
  -- one; two
  INSERT INTO log VALUES (NEW.id, 'a;b');
  INSERT INTO log VALUES (NEW.id, '$$');
END;`;
const id = { name: 'id', type: 'integer', primaryKey: true };
const up = (dialect: string) => [
  { type: 'createCollection', name: 'users', fields: [id] },
  { type: 'raw', dialect, statement: 'CREATE TABLE log (id int, note varchar(9))' },
  { type: 'raw', dialect, statement: trigger },
  { type: 'raw', dialect, statement: 'CREATE PROCEDURE one() BEGIN SELECT 1; END -- the end' },
  { type: 'raw', dialect, statement: 'INSERT INTO users VALUES (1)' },
];

/** Runs a script as somebody who pastes it into the client. */
function runInClient(url: string, script: string): Promise<string> {
  const { hostname, port, username, password, pathname } = new URL(url);
  const login = ['--no-defaults', '-h', hostname, '-P', port, '-u', decodeURIComponent(username), pathname.slice(1)];
  return new Promise((resolve, reject) => {
    const running = execFile(
      'mysql',
      login,
      { env: { ...process.env, MYSQL_PWD: decodeURIComponent(password) } },
      (error, stdout, stderr) => (error ? reject(new Error(`${stderr}\n${script}`)) : resolve(stdout)),
    );
    running.stdin?.end(script);
  });
}

const client = spawnSync('mysql', ['--version']).error;

for (const engine of committingEngines) {
  const name = `${engine.name}: the plan of a dry run can be pasted into the client, also with routines and triggers`;
  const missing = engine.missing ?? client?.message;
  if (missing !== undefined) {
    test.skip(name, missing);
    continue;
  }
  test(
    name,
    () =>
      engine.withUrl(async (url, connect) => {
        const dialect = engine.name;
        const { write, svc } = project({ main: url });
        write(`svc/database/migrations/main/${TAG}.json`, { tag: TAG, up: up(dialect), down: [] });
        const { stdout } = assertExit(await svc('db', 'migrate', '--dry-run'));
        await runInClient(url, stdout);
        const { connection } = await connect();
        const rows = await connection.query('SELECT id, note FROM log');
        assert.deepEqual(rows, [
          { id: 1, note: 'a;b' },
          { id: 1, note: '$$' },
        ]);
        assert.match(stdout, /\nDELIMITER \$\$\$\n/);
        assert.match(stdout, /^CREATE TABLE log \(id int, note varchar\(9\)\);$/m);
      }),
    LONG,
  );
}

test('only a text with a semicolon in a body changes the delimiter', () => {
  const script = (text: string) => mysql.scriptStatement?.(text);
  for (const text of ['SELECT 1', 'SELECT 1;', "SELECT ';' -- a;b", 'SELECT `;`; /* ; */ # ;'])
    assert.equal(script(text), undefined);
  assert.equal(script('CREATE X BEGIN a; END;'), 'DELIMITER $$\nCREATE X BEGIN a; END\n$$\nDELIMITER ;');
});
