import * as assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { migration } from '../core/migration/builder.ts';
import { migrate } from '../core/migration/migrate.ts';
import { status } from '../core/migration/status.ts';
import { bundleScript } from './kit/bundle.ts';
import { committingEngines } from './kit/engines.ts';
import { folder } from './kit/folder.ts';
import { definedInCode } from './kit/migrations.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';
import { waitUntil } from './suites/wait-until.ts';

// A suspended migrator keeps its lock. After its session is killed another migrator finishes, and the first one writes
// nothing when it is resumed.

const script = await bundleScript('migrator.ts');

for (const engine of committingEngines) {
  const title = `${engine.name}: a suspended migrator keeps the lock until its session is killed, and writes nothing when resumed`;
  if (engine.missing !== undefined) {
    test.skip(title, engine.missing);
    continue;
  }
  test(
    title,
    () =>
      engine.withUrl(async (url, connect) => {
        const { name } = engine.dialect;
        const gate = `gate_${process.pid}_${name}`;
        const migrations = [
          migration('20260101_000000_effects')
            .createCollection('effects', [{ name: 'what', type: 'string', primaryKey: true }])
            .build(),
          migration('20260102_000000_gate')
            .raw(
              name,
              `INSERT INTO effects SELECT 'once' FROM (SELECT 1 AS one) AS one WHERE GET_LOCK('${gate}', 100) = 1`,
            )
            .build(),
        ];
        const defined = migrations.map(definedInCode);
        const [lockOwner, other] = [await connect(), await connect()];
        await lockOwner.connection.query(`SELECT GET_LOCK('${gate}', 0)`);
        const file = join(folder({}), 'migrations.json');
        writeFileSync(file, JSON.stringify(migrations));
        const child = spawn(process.execPath, [script, name, url, file], {
          stdio: ['ignore', 'ignore', 'pipe'],
        });
        let output = '';
        child.stderr.on('data', (chunk) => {
          output += chunk;
        });
        const closed = once(child, 'close');
        let session = 0;
        await waitUntil(async () => {
          const [row] = await lockOwner.connection.query(
            `SELECT id AS id FROM information_schema.processlist WHERE info LIKE '%${gate}%' AND state LIKE '%lock%' AND id <> connection_id()`,
          );
          session = Number(row?.id ?? 0);
          return session > 0;
        }, 'the migrator does not reach the gate');
        child.kill('SIGSTOP');
        await expectError(migrate(other, defined, { lockTimeoutMs: 100 }), 'lock_timeout');
        await lockOwner.connection.query(`KILL ${session}`);
        await lockOwner.connection.query(`SELECT RELEASE_LOCK('${gate}')`);
        await migrate(other, defined, { lockTimeoutMs: 20_000 });
        child.kill('SIGCONT');
        const [code] = await closed;
        assert.equal(code, 1);
        assert.match(output, /^connection_lost/);
        assert.equal((await status(other, defined)).state, 'OK');
        assert.deepEqual(await other.connection.query('SELECT what FROM effects'), [{ what: 'once' }]);
      }),
    { timeoutMs: 120_000 },
  );
}
