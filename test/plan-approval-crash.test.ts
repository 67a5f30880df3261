import * as assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { migrate } from '../core/migration/migrate.ts';
import { bundleScript } from './kit/bundle.ts';
import { callsToInterrupt } from './kit/every-call.ts';
import { mapConcurrently } from './kit/map-concurrently.ts';
import { assertFullyMigrated, definedInCode } from './kit/migrations.ts';
import { LIFTOFF_ONLY } from './kit/node-flags.ts';
import { freshFolder } from './kit/pglite.ts';
import { approvalConfig, approve, drops, ground, requestOf, withClient } from './kit/plan-approval.ts';
import { sixEngines } from './kit/six-engines.ts';
import { test } from './kit/test.ts';

const SLOW = { timeoutMs: 900_000 };
const EVERY = 11;

/** Kills a run of an approved plan before the n-th call. Returns whether it had that many. */
async function killRun(script: string, dialect: string, url: string, at: number): Promise<boolean> {
  const child = spawn(process.execPath, [LIFTOFF_ONLY, script, dialect, url, String(at)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (printed += chunk));
  const [code, signal] = await once(child, 'close');
  if (signal === 'SIGKILL') return true;
  assert.equal(code, 0, printed);
  return false;
}

/** The six servers, and the embedded database: one process at a time has it open. */
const engines = [
  ...sixEngines.map((engine) => ({ ...engine, title: engine.name, step: engine.name === 'postgresql' ? 5 : EVERY })),
  { name: 'postgresql', title: 'PGlite', step: 14, missing: undefined, createDatabase: freshFolder },
];

for (const { name, title: engine, step, missing, createDatabase } of engines) {
  const title = `${engine}: after a kill before any call, an approved plan is finished under its one approval`;
  if (missing !== undefined) {
    test.skip(title, missing);
    continue;
  }
  test(
    title,
    async () => {
      const script = await bundleScript('plan-process.ts');
      const all = [ground, ...drops];
      let isFinished = false;
      const kills = await mapConcurrently(
        callsToInterrupt(step, () => isFinished),
        async (at) => {
          const { url, drop } = await createDatabase();
          try {
            const requestId = await withClient(approvalConfig(name, url), async (svc, target) => {
              await migrate(target, [ground].map(definedInCode));
              const asked = await requestOf(migrate(target, all.map(definedInCode)));
              await approve(svc, asked);
              return asked;
            });
            const wasKilled = await killRun(script, name, url, at);
            isFinished ||= !wasKilled;
            await withClient(approvalConfig(name, url), async (svc, target) => {
              await migrate(target, all.map(definedInCode));
              await assertFullyMigrated(target, all);
              const { records } = await svc.approvals.list({ executionId: 'migrations of main' });
              assert.deepEqual(
                records.map((one) => [one.requestId, one.status]),
                [[requestId, 'approved']],
              );
            });
            return wasKilled;
          } catch (error) {
            throw new Error(`killed at ${at}: ${error}`, { cause: error });
          } finally {
            await drop();
          }
        },
      );
      assert.ok(kills.filter(Boolean).length >= 2, `only ${kills.filter(Boolean).length} calls`);
    },
    SLOW,
  );
}
