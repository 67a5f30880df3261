import * as assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Svc } from '../config/sdk/index.ts';
import { migrate } from '../core/migration/migrate.ts';
import type { Migration } from '../core/migration/migration.ts';
import type { Target } from '../core/migration/target.ts';
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

/** The first of two migrations, as it was before it was edited: it makes one table less. */
const [first, ...later] = drops;
const before = [ground, { ...first, up: first?.up.slice(1), down: first?.down.slice(0, -1) }, ...later].map((one) =>
  definedInCode(one as Migration),
);
const all = [ground, ...drops];

for (const { name, title: engine, step, missing, createDatabase } of engines) {
  /** Kills runs of a plan at its calls. `prepare` makes what the run finds; `finish` is called after it. */
  const killAtCalls = <Found>(
    every: number,
    prepare: (svc: Svc, target: Target) => Promise<Found>,
    finish: (svc: Svc, target: Target, found: Found) => Promise<void>,
  ) => {
    return async () => {
      const script = await bundleScript('plan-process.ts');
      let isFinished = false;
      const kills = await mapConcurrently(
        callsToInterrupt(every, () => isFinished),
        async (at) => {
          const { url, drop } = await createDatabase();
          try {
            const found = await withClient(approvalConfig(name, url), async (svc, target) => {
              await migrate(target, [ground].map(definedInCode));
              return prepare(svc, target);
            });
            const wasKilled = await killRun(script, name, url, at);
            isFinished ||= !wasKilled;
            await withClient(approvalConfig(name, url), (svc, target) => finish(svc, target, found));
            return wasKilled;
          } catch (error) {
            throw new Error(`killed at ${at}: ${error}`, { cause: error });
          } finally {
            await drop();
          }
        },
      );
      assert.ok(kills.filter(Boolean).length >= 2, `only ${kills.filter(Boolean).length} calls`);
    };
  };

  /** Applies all, and compares the requests, the newest last. */
  const assertFinished = async (svc: Svc, target: Target, expected: readonly (readonly [string, string])[]) => {
    await migrate(target, all.map(definedInCode));
    await assertFullyMigrated(target, all);
    const { records } = await svc.approvals.list({ executionId: 'migrations of main' });
    assert.deepEqual(
      records.map((one) => [one.requestId, one.status]),
      expected,
    );
  };

  const cases: readonly (readonly [string, () => Promise<void>])[] = [
    [
      'an approved plan is finished under its one approval',
      killAtCalls(
        step,
        async (svc, target) => {
          const asked = await requestOf(migrate(target, all.map(definedInCode)));
          await approve(svc, asked);
          return asked;
        },
        (svc, target, requestId) => assertFinished(svc, target, [[requestId, 'approved']]),
      ),
    ],
    [
      'a plan has one request, and the one that it replaces has ended, once it was requested again',
      killAtCalls(
        Math.max(step, EVERY),
        (_svc, target) => requestOf(migrate(target, before)),
        async (svc, target, replaced) => {
          const requestId = await requestOf(migrate(target, all.map(definedInCode)));
          assert.notEqual(requestId, replaced);
          assert.equal((await svc.approvals.get(replaced)).status, 'cancelled');
          await approve(svc, requestId);
          await assertFinished(svc, target, [
            [replaced, 'cancelled'],
            [requestId, 'approved'],
          ]);
        },
      ),
    ],
  ];
  for (const [what, run] of cases) {
    const title = `${engine}: after a kill before any call, ${what}`;
    if (missing === undefined) test(title, run, SLOW);
    else test.skip(title, missing);
  }
}
