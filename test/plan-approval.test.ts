import * as assert from 'node:assert/strict';
import type { Config } from '../config/define.ts';
import { Svc } from '../config/sdk/index.ts';
import { migration } from '../core/migration/builder.ts';
import { withLockedHistory } from '../core/migration/lock-session.ts';
import { migrate, type RunReport, rollback } from '../core/migration/migrate.ts';
import { MigrationEngine } from '../core/migration/migration-engine.ts';
import { planMigration } from '../core/migration/plan.ts';
import type { PlanReview } from '../core/migration/plan-approver.ts';
import { readHistory } from '../core/migration/preview.ts';
import { resolveMigration } from '../core/migration/resolve.ts';
import { runMigration } from '../core/migration/runner.ts';
import type { Target } from '../core/migration/target.ts';
import { definePlugin } from '../core/plugin.ts';
import { MutableSchema } from '../core/schema/mutable-schema.ts';
import { withClockAhead } from './kit/clock-ahead.ts';
import { definedInCode } from './kit/migrations.ts';
import { freshFolder } from './kit/pglite.ts';
import { approvalConfig, approve, dba, drops, ground, requestOf, withClient } from './kit/plan-approval.ts';
import { type Engine, sixEngines } from './kit/six-engines.ts';
import { connectTarget, tablesOf } from './kit/target.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

const engines: readonly Pick<Engine, 'name' | 'dialect' | 'missing' | 'createDatabase'>[] = [
  ...sixEngines,
  ...sixEngines
    .slice(0, 1)
    .map((one) => ({ ...one, name: 'pglite' as never, missing: undefined, createDatabase: freshFolder })),
];
const all = [ground, ...drops].map(definedInCode);
const LONG = { timeoutMs: 180_000 };

/** Runs `body` with a client and a connection in an environment that requires approval, on a new database. */
async function withApproval(
  { dialect, createDatabase }: (typeof engines)[number],
  body: (svc: Svc, target: Target, url: string) => Promise<void>,
  more: Parameters<typeof approvalConfig>[2] = {},
): Promise<void> {
  const { url, drop } = await createDatabase();
  try {
    await withClient(approvalConfig(dialect.name, url, more), (svc, target) => body(svc, target, url));
  } finally {
    await drop();
  }
}

for (const engine of engines) {
  if (engine.missing !== undefined) {
    test.skip(`${engine.name}: plans wait for approval`, engine.missing);
    continue;
  }
  test(
    `${engine.name}: a plan that destroys data waits for a person, and runs once it is approved`,
    () =>
      withApproval(engine, async (svc, target) => {
        await migrate(target, all, { to: ground.tag });
        const requestId = await requestOf(migrate(target, all, { allowDestructive: true }));
        assert.deepEqual(await tablesOf(target), ['one', 'two']);
        assert.equal(await requestOf(migrate(target, all)), requestId, 'the same plan has one request');

        const unverified = svc.approvals.signal({ signal: 'approve', payload: { requestId } });
        await expectError(unverified, 'decision_refused');
        const stranger = { principal: { id: 'bo@acme.example', groups: ['sales'] } };
        await expectError(
          svc.approvals.signal({ signal: 'approve', payload: { requestId } }, stranger),
          'decision_refused',
        );
        const changed = { requestId, modifiedParams: { losses: [] } };
        const change = svc.approvals.signal({ signal: 'approve', payload: changed }, { principal: dba });
        assert.match(String((await expectError(change, 'decision_refused')).why), /approved as it is/);

        await approve(svc, requestId);
        const { migrations } = await migrate(target, all);
        assert.deepEqual(
          migrations.map(({ tag }) => tag),
          drops.map(({ tag }) => tag),
        );
        assert.deepEqual(await tablesOf(target), ['first', 'second']);
        const { status, run, decidedBy, parameters } = await svc.approvals.get(requestId);
        assert.deepEqual([status, run, decidedBy], ['approved', 'done', dba.id]);
        assert.deepEqual([parameters.environment, parameters.database, parameters.action], ['prd', 'main', 'migrate']);

        // Rolled back and pending again, it is another plan: the approval was used.
        const back = await requestOf(rollback(target, { count: 2 }));
        await approve(svc, back);
        await rollback(target, { count: 2 });
        assert.notEqual(await requestOf(migrate(target, all)), requestId);
      }),
    LONG,
  );

  test(
    `${engine.name}: the API, the engine and decisions about half-done migrations wait too`,
    () =>
      withApproval(engine, async (svc, target) => {
        const db = await svc.database.connect({ database: 'main' });
        await db.schema.create('notes', { id: { type: 'integer', primaryKey: true }, text: 'string' });
        const dropped = await requestOf(db.schema.drop('notes'));
        const { next, details } = await expectError(db.schema.drop('notes'), 'approval_pending');
        assert.equal(details.requestId, dropped);
        assert.equal(next.at(-1), 'Make the same change again once it is approved.');
        await approve(svc, dropped);
        await db.schema.drop('notes');
        assert.deepEqual(await tablesOf(target), []);

        const runner = new MigrationEngine(target);
        await runner.up(ground);
        const [drop] = drops;
        assert.ok(drop);
        const up = await requestOf(runner.up(drop));
        await approve(svc, up);
        assert.equal((await runner.up(drop)).status, 'completed');
        const down = await requestOf(runner.down(drop));
        await approve(svc, down);
        assert.equal((await runner.down(drop)).status, 'rolled_back');

        const forget = () => resolveMigration(target, drop.tag, 'forget');
        const forgotten = await requestOf(forget());
        await expectError(
          svc.approvals
            .signal({ signal: 'reject', payload: { requestId: forgotten, reason: 'not now' } }, { principal: dba })
            .then(forget),
          'approval_rejected',
        );
        const again = await requestOf(resolveMigration(target, drop.tag, 'forget', { ask: { askAgain: true } }));
        await approve(svc, again);
        await forget();
        assert.ok(!(await readHistory(target, {})).records.has(drop.tag));
      }),
    LONG,
  );
}

const [postgresql] = engines;
/** Declares a test on PostgreSQL. */
function onPostgresql(name: string, body: (svc: Svc, target: Target, url: string) => Promise<void>): void {
  if (!postgresql || postgresql.missing !== undefined) test.skip(name, postgresql?.missing ?? '');
  else test(name, () => withApproval(postgresql, body), LONG);
}

function deferred(): { readonly promise: Promise<void>; resolve(): void } {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

/** A plan that was approved and has not run. Returns its request. */
async function approvedPlan(svc: Svc, target: Target): Promise<string> {
  await migrate(target, all, { to: ground.tag });
  const requestId = await requestOf(migrate(target, all));
  await approve(svc, requestId);
  return requestId;
}

onPostgresql('a program whose change was rejected asks again after another migration', async (svc, target) => {
  await migrate(target, all, { to: ground.tag });
  const db = await svc.database.connect({ database: 'main' });
  const drop = () => db.schema.drop('one');
  const requestId = await requestOf(drop());
  const payload = { requestId, reason: 'not this one' };
  await svc.approvals.signal({ signal: 'reject', payload }, { principal: dba });
  const { why, next } = await expectError(drop(), 'approval_rejected');
  assert.equal(why, 'not this one');
  assert.match(next.join(), /the same change is requested again only after another migration/);
  await db.schema.create('more', { id: { type: 'integer', primaryKey: true } });
  await approve(svc, await requestOf(drop()));
  await drop();
  assert.deepEqual(await tablesOf(target), ['more', 'two']);
});

onPostgresql('a file that is added or edited after the approval makes another plan', async (svc, target) => {
  const approved = await approvedPlan(svc, target);
  const added = migration('20260102_120000_merged')
    .dropField('two', 'note', { was: { type: 'string' } })
    .build();
  const merged = await requestOf(migrate(target, [...all, definedInCode(added)]));
  assert.notEqual(merged, approved);
  const [first, second] = drops;
  assert.ok(first && second);
  const third = {
    type: 'createCollection',
    name: 'third',
    fields: [{ name: 'id', type: 'integer', primaryKey: true }],
  } as const;
  const edited = { ...first, up: [...first.up, third] };
  assert.notEqual(await requestOf(migrate(target, [ground, edited, second].map(definedInCode))), approved);
  assert.deepEqual(await tablesOf(target), ['one', 'two']);
});

onPostgresql('two runs at once use an approval once', async (svc, target, url) => {
  await approvedPlan(svc, target);
  const others = [1, 2, 3].map(() => new Svc({ config: approvalConfig('postgresql', url) }));
  try {
    const targets = await Promise.all(
      others.map(async (one) => (await one.database.connect({ database: 'main' })).getAdapter()),
    );
    const ran = await Promise.allSettled(targets.map((one) => migrate(one, all)));
    const applied = ran.flatMap((one) => (one.status === 'fulfilled' ? one.value.migrations : []));
    assert.deepEqual(
      applied.map(({ tag }) => tag),
      drops.map(({ tag }) => tag),
    );
    for (const one of ran) if (one.status === 'rejected') throw one.reason;
  } finally {
    for (const one of others) await one.close();
  }
});

onPostgresql('a run whose plan another one has applied by then has nothing left to do', async (svc, target, url) => {
  await approvedPlan(svc, target);
  const other = new Svc({ config: approvalConfig('postgresql', url) });
  let ran: RunReport | undefined;
  const runOther = async () => {
    const connection = await other.database.connect({ database: 'main' });
    ran ??= await migrate(connection.getAdapter(), all);
  };
  const tap = definePlugin({
    name: 'other-run',
    apply: (kernel) => kernel.hooks['migration:plan'].tapPromise('other-run', runOther),
  });
  try {
    await withClient(approvalConfig('postgresql', url, { plugins: [tap] }), async (_svc, late) => {
      assert.deepEqual((await migrate(late, all)).migrations, []);
    });
    assert.deepEqual(
      ran?.migrations.map(({ tag }) => tag),
      drops.map(({ tag }) => tag),
    );
  } finally {
    await other.close();
  }
});

onPostgresql('a plan that changes while a run waits for the lock does not run', async (svc, target, url) => {
  assert.ok(postgresql);
  const approved = await approvedPlan(svc, target);
  const other = await connectTarget(postgresql.dialect, url, { env: 'prd' });
  const { approver } = target;
  assert.ok(approver);
  try {
    const isLocked = deferred();
    const isWaiting = deferred();
    const change = withLockedHistory({ ...other, approver }, {}, async (locked) => {
      isLocked.resolve();
      await isWaiting.promise;
      const extra = migration('20260101_120000_extra')
        .createCollection('extra', [{ name: 'id', type: 'integer', primaryKey: true }])
        .build();
      await runMigration(locked, await planMigration(other, extra, 'up', 'engine', new MutableSchema()));
    });
    await Promise.race([isLocked.promise, change]);
    const run = migrate(target, all, { onEvent: ({ type }) => type === 'waiting' && isWaiting.resolve() });
    run.catch(() => isWaiting.resolve());
    await change;
    const error = await expectError(run, 'approval_stale');
    assert.match(String(error.state), /Nothing was changed/);
    assert.match(String(error.why), /Another migration was applied/);
    assert.deepEqual(await tablesOf(target), ['extra', 'one', 'two']);
    const { status, outcome } = await svc.approvals.get(approved);
    assert.deepEqual([status, outcome?.status], ['approved', 'stale']);
    const requested = await requestOf(migrate(target, all));
    assert.equal(error.details.requestId, requested, 'the plan as it is now was requested');
    await approve(svc, requested);
    await migrate(target, all);
  } finally {
    await other.connection.close();
  }
});

onPostgresql('an approval ends on the clock of the database, whatever this machine says', async (svc, target) => {
  await approvedPlan(svc, target);
  await withClockAhead(9 * 3_600_000, async () => {
    await migrate(target, all);
  });
  assert.deepEqual(await tablesOf(target), ['first', 'second']);
});

test('what was approved in one environment waits in another', async () => {
  if (!postgresql || postgresql.missing !== undefined) return;
  const environments = { stg: { approval: { role: 'dba' } }, prd: { approval: { role: 'dba' } } };
  const asked: string[] = [];
  for (const env of ['stg', 'prd']) {
    await withApproval(
      postgresql,
      async (svc, target) => {
        await migrate(target, all, { to: ground.tag });
        const requestId = await requestOf(migrate(target, all));
        asked.push(String((await svc.approvals.get(requestId)).parameters.plan));
        if (env === 'stg') await approve(svc, requestId);
      },
      { env, environments },
    );
  }
  assert.equal(new Set(asked).size, 2);
});

test('who decides reads what is lost in the reason, and which statements block a large table', async () => {
  if (!postgresql || postgresql.missing !== undefined) return;
  await withApproval(postgresql, async (svc, target) => {
    await migrate(target, all, { to: ground.tag });
    await target.connection.query('INSERT INTO one SELECT n FROM generate_series(1, 10001) n');
    await target.connection.query('ANALYZE one');
    const db = await svc.database.connect({ database: 'main' });
    const requestId = await requestOf(db.schema.dropField('one', 'note'));
    const { parameters, reason } = await svc.approvals.get(requestId);
    assert.match(
      reason,
      /^dropField main \(prd\): ALTER TABLE "one" DROP COLUMN "note" \(one has more than 10,000 rows, about 10,001\)/,
    );
    const blocked = /"one" \(about 10,001 rows\): blocks reads and writes for a moment: ALTER TABLE "one" DROP COLUMN/;
    assert.match(String(parameters.warnings), blocked);
  });
});

/** A client with one tap on `migration:plan`. */
const withTap = (tap: (review: PlanReview) => void): Partial<Config> => ({
  plugins: [definePlugin({ name: 'policy', apply: (kernel) => kernel.hooks['migration:plan'].tap('policy', tap) })],
});

test('a tap of migration:plan sees a plan before it runs, and can deny it or require approval', async () => {
  if (!postgresql || postgresql.missing !== undefined) return;
  const plans: PlanReview['plan'][] = [];
  const tap = (review: PlanReview) => {
    plans.push(review.plan);
    const { migrations, losses } = review.plan;
    if (losses.length > 0) review.deny('No losses on a Friday.');
    else if (migrations.some(({ tag }) => tag === ground.tag)) review.requireApproval();
  };
  await withApproval(
    postgresql,
    async (svc, target) => {
      const requestId = await requestOf(migrate(target, all, { to: ground.tag }));
      await approve(svc, requestId);
      await migrate(target, all, { to: ground.tag });
      const denied = await expectError(migrate(target, all), 'hook_refused');
      assert.equal(denied.why, 'No losses on a Friday.');
      assert.deepEqual(await tablesOf(target), ['one', 'two']);
      const plan = plans.at(-1);
      assert.deepEqual(
        [plan?.environment, plan?.action, plan?.migrations.map(({ tag }) => tag)],
        ['prd', 'migrate', drops.map(({ tag }) => tag)],
      );
      assert.match(String(plan?.losses[0]), /DROP TABLE .*one.* \(one has 0 rows\)/);
      const db = await svc.database.connect({ database: 'main' });
      await expectError(db.schema.drop('one'), 'hook_refused');
    },
    withTap(tap),
  );
  const broken = withTap(() => {
    throw new Error('out of order');
  });
  await withApproval(
    postgresql,
    async (_svc, target) => {
      assert.equal((await expectError(migrate(target, all), 'hook_refused')).why, 'out of order');
      assert.deepEqual(await tablesOf(target), []);
    },
    { ...broken, environments: {} },
  );
  await withApproval(
    postgresql,
    async (_svc, target) => {
      await expectError(migrate(target, all, { to: ground.tag }), 'config_invalid');
      assert.deepEqual(await tablesOf(target), []);
    },
    { ...withTap((review) => review.requireApproval()), environments: {} },
  );
});
