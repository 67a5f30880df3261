import * as assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Connection } from '../core/dialect.ts';
import { committingEngines } from './kit/engines.ts';
import { assertExit, json, LONG, project } from './kit/project.ts';
import { svcHere } from './kit/svc-here.ts';
import { test } from './kit/test.ts';

/** The partitions of a table with rows are a file: added, dropped, split and changed as a whole. */

const FILE = 'svc/database/objects/main/partitions/logs.sql';
const SETUP = [
  "create table logs (id int not null, at date not null, text varchar(20), primary key (id, at)) partition by range columns (at) (partition p2020 values less than ('2021-01-01'), partition rest values less than maxvalue)",
  "insert into logs values (1, '2020-05-05', 'a'), (2, '2021-05-05', 'b'), (3, '2022-05-05', 'c')",
];

for (const engine of committingEngines) {
  const title = `${engine.name}: partitions follow their file, and keep the rows`;
  if (engine.missing !== undefined) test.skip(title, engine.missing);
  else test(title, () => engine.withUrl((url, connect) => follow(url, async () => (await connect()).connection)), LONG);
}

async function follow(url: string, connect: () => Promise<Connection>): Promise<void> {
  const connection = await connect();
  for (const text of SETUP) await connection.query(text);
  const { root, read, write, files } = project({ main: url });
  const run = (...args: readonly string[]) => svcHere(args, root);
  const rowsOf = async (partition: string): Promise<number> =>
    (await connection.query(`SELECT 1 FROM logs PARTITION (${partition})`)).length;
  const change = async (text: string, ...args: readonly string[]): Promise<string> => {
    write(FILE, text);
    assertExit(await run('db', 'schema', 'generate'));
    const { stdout } = assertExit(await run('db', 'migrate', '--dry-run'));
    assertExit(await run('db', 'migrate', ...args));
    assert.match(assertExit(await run('db', 'schema', 'check', '--strict')).stdout, /^OK/);
    return stdout;
  };
  assertExit(await run('db', 'schema', 'pull'));
  assertExit(await run('db', 'migrate', 'baseline'));
  const before = read(FILE);
  assert.match(before, /^ALTER TABLE `logs` PARTITION BY RANGE/);

  const split = before.replace(
    /PARTITION `?rest`?/,
    "PARTITION p2021 VALUES LESS THAN ('2022-01-01'),\n PARTITION rest",
  );
  assert.match(await change(split), /REORGANIZE PARTITION `rest` INTO/);
  assert.deepEqual([await rowsOf('p2020'), await rowsOf('p2021'), await rowsOf('rest')], [1, 1, 1]);

  // Rolled back, the rows are again where they were.
  assertExit(await run('db', 'migrate', 'rollback'));
  assert.deepEqual([await rowsOf('p2020'), await rowsOf('rest')], [1, 2]);
  assertExit(await run('db', 'migrate'));
  assert.equal(await rowsOf('p2021'), 1);

  const without = split.replace(/PARTITION `?p2020`?[^,]*,/, '');
  write(FILE, without);
  assertExit(await run('db', 'schema', 'generate'));
  const refused = await run('db', 'migrate', '--json');
  assert.equal(json(refused).code, 'destructive');
  assertExit(await run('db', 'migrate', '--allow-destructive'));
  assert.equal((await connection.query('SELECT 1 FROM logs')).length, 2);
  assertExit(await run('db', 'migrate', 'rollback'));
  assert.equal(await rowsOf('p2020'), 0);
  rmSync(join(root, `svc/database/migrations/main/${files().at(-1)}`));

  assert.match(
    await change(
      "alter table logs partition by range (to_days(at)) (partition early values less than (to_days('2022-01-01')), partition late values less than maxvalue);",
    ),
    /partition by range \(to_days/,
  );
  assert.deepEqual([await rowsOf('early'), await rowsOf('late')], [1, 1]);
  rmSync(join(root, FILE));
  assertExit(await run('db', 'schema', 'generate'));
  assertExit(await run('db', 'migrate'));
  assert.match(assertExit(await run('db', 'schema', 'check', '--strict')).stdout, /^OK/);
  assertExit(await run('db', 'migrate', 'rollback', '-n', '2'));
  assert.equal(await rowsOf('p2021'), 1);

  write(FILE, 'DROP TABLE logs;');
  assert.equal(json(await run('db', 'schema', 'generate', '--json')).code, 'schema_invalid');
}
