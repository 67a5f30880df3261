import * as assert from 'node:assert/strict';
import { baseline } from '../core/migration/baseline.ts';
import { migration } from '../core/migration/builder.ts';
import { migrate, rollback } from '../core/migration/migrate.ts';
import { previewMigrate } from '../core/migration/preview.ts';
import { resolveMigration } from '../core/migration/resolve.ts';
import type { Target } from '../core/migration/target.ts';
import { definedInCode } from './kit/migrations.ts';
import { freshFolder } from './kit/pglite.ts';
import { approvalConfig, approve, drops, ground, requestOf, withClient } from './kit/plan-approval.ts';
import { sixEngines } from './kit/six-engines.ts';
import { tablesOf } from './kit/target.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

const [, later] = drops;
assert.ok(later);

/** Its first step is a statement of its own on every engine, so that a run can stop before the second. */
const twoSteps = (tag: string, engine: string, table = 'two') =>
  migration(tag).createIndex(table, `ix_${table}_note`, [{ name: 'note' }], {
    ...(engine === 'postgresql' && { sqlOptions: { concurrently: true } }),
  });
const key = { name: 'id', type: 'integer', primaryKey: true } as const;
const was = { fields: [key, { name: 'note', type: 'string' }] } as const;

/** Applies all migrations, and stops the last one between its two steps. */
async function stopHalfway(target: Target, migrations: readonly ReturnType<typeof definedInCode>[]): Promise<void> {
  // In a run of its own: what a run creates and drops destroys nothing.
  await migrate(target, migrations.slice(0, -1));
  const stop = new AbortController();
  const run = migrate(target, migrations, {
    allowDestructive: true,
    signal: stop.signal,
    onEvent: (event) => event.type === 'started' && stop.abort(),
  });
  await expectError(run, 'interrupted');
}

/** The same database, and a signal that stops a run as soon as it has used its approval. */
function stoppingOnceApproved(target: Target): { readonly stopping: Target; readonly signal: AbortSignal } {
  const { approver } = target;
  assert.ok(approver);
  const stop = new AbortController();
  const use: typeof approver.use = (...args) => {
    stop.abort();
    return approver.use(...args);
  };
  return { stopping: { ...target, approver: { ...approver, use } }, signal: stop.signal };
}

for (const { name, dialect, missing, createDatabase } of sixEngines) {
  const title = `${name}: what began without approval is not finished without one`;
  if (missing !== undefined) {
    test.skip(title, missing);
    continue;
  }
  const stops = twoSteps('20260102_000000_stops', name).dropCollection('one', { was }).build();
  const all = [ground, stops, later].map(definedInCode);
  test(
    title,
    async () => {
      const { url, drop } = await createDatabase();
      try {
        const open = approvalConfig(dialect.name, url, { environments: {} });
        await withClient(open, async (_svc, target) => stopHalfway(target, all.slice(0, 2)));
        await withClient(approvalConfig(dialect.name, url), async (svc, target) => {
          const db = await svc.database.connect({ database: 'main' });
          const [left] = await previewMigrate(target, all);
          assert.equal(left?.isInterrupted, true);
          for (const change of [
            () => migrate(target, all),
            () => migrate(target, all.slice(0, 2), { allowDestructive: true }),
            () => db.schema.create('notes', { id: { type: 'integer', primaryKey: true } }),
            () => baseline(target, [ground].map(definedInCode)),
            () => rollback(target),
          ])
            assert.equal((await expectError(change(), 'migration_half_done')).details.tag, stops.tag);
          assert.deepEqual(await tablesOf(target), ['one', 'two']);

          await approve(svc, await requestOf(resolveMigration(target, stops.tag, 'retry', { defined: all })));
          assert.deepEqual(await tablesOf(target), ['one', 'two']);
          const { signal, stopping } = stoppingOnceApproved(target);
          await expectError(resolveMigration(stopping, stops.tag, 'retry', { defined: all, signal }), 'interrupted');
          assert.deepEqual(await tablesOf(target), ['one', 'two']);
          // The approval is in the journal, and covers the rest: only the next migration is another plan.
          const next = await requestOf(migrate(target, all));
          await approve(svc, next);
          await migrate(target, all);
          assert.deepEqual(await tablesOf(target), ['second']);
        });
      } finally {
        await drop();
      }
    },
    { timeoutMs: 180_000 },
  );
}

test('an applied migration is forgotten once that is approved', async () => {
  const { url, drop } = await freshFolder();
  try {
    await withClient(approvalConfig('postgresql', url), async (svc, target) => {
      await migrate(target, [ground].map(definedInCode));
      const forget = () => resolveMigration(target, ground.tag, 'forget');
      await approve(svc, await requestOf(forget()));
      assert.equal((await forget()).status, 'forgotten');
      assert.deepEqual(await tablesOf(target), ['one', 'two']);
    });
  } finally {
    await drop();
  }
});

for (const { name, dialect, missing, createDatabase } of sixEngines) {
  const title = `${name}: what began under an approval is finished under it, and what needs none without one`;
  if (missing !== undefined) {
    test.skip(title, missing);
    continue;
  }
  const harmless = [ground, twoSteps('20260102_000000_harmless', name).createCollection('first', [key]).build()];
  const dropping = [...harmless, twoSteps('20260103_000000_drops', name, 'one').dropCollection('two', { was }).build()];
  test(
    title,
    async () => {
      const { url, drop } = await createDatabase();
      try {
        await withClient(approvalConfig(dialect.name, url, { environments: {} }), (_svc, target) =>
          stopHalfway(target, harmless.map(definedInCode)),
        );
        await withClient(approvalConfig(dialect.name, url), async (svc, target) => {
          const requestId = await requestOf(migrate(target, dropping.map(definedInCode)));
          await approve(svc, requestId);
          await stopHalfway(target, dropping.map(definedInCode));
          assert.deepEqual(await tablesOf(target), ['first', 'one', 'two']);
          await migrate(target, dropping.map(definedInCode));
          assert.deepEqual(await tablesOf(target), ['first', 'one']);
          assert.equal((await svc.approvals.list({ executionId: 'migrations of main' })).records.length, 1);
        });
      } finally {
        await drop();
      }
    },
    { timeoutMs: 180_000 },
  );
}
