import * as assert from 'node:assert/strict';
import type { Config } from '../config/define.ts';
import { Svc } from '../config/sdk/index.ts';
import type { Channel } from '../core/approval/channel.ts';
import { statusText } from '../core/approval/record-text.ts';
import type { ApprovalRecord } from '../core/approval/request.ts';
import { migrate, rollback } from '../core/migration/migrate.ts';
import type { Migration } from '../core/migration/migration.ts';
import type { PlanDescription } from '../core/migration/plan-approver.ts';
import type { Target } from '../core/migration/target.ts';
import { definePlugin } from '../core/plugin.ts';
import { definedInCode } from './kit/migrations.ts';
import { freshFolder } from './kit/pglite.ts';
import { approvalConfig, approve, drops, ground, requestOf, withClient } from './kit/plan-approval.ts';
import { sixEngines } from './kit/six-engines.ts';
import { tablesOf } from './kit/target.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';
import { waitUntil } from './suites/wait-until.ts';

const LONG = { timeoutMs: 180_000 };
const [first, second] = drops as readonly [Migration, Migration];
const all = [ground, first, second].map(definedInCode);
/** The same tags: the first makes another table. */
const edited = [
  ground,
  {
    ...first,
    up: [
      ...first.up,
      { type: 'createCollection', name: 'third', fields: [{ name: 'id', type: 'integer', primaryKey: true }] },
    ],
  },
  second,
].map((one) => definedInCode(one as Migration));

const [postgresql, ...others] = sixEngines;
assert.ok(postgresql);
const pglite = { ...postgresql, title: 'PGlite', missing: undefined, createDatabase: freshFolder };
const engines = [postgresql, ...others].map((engine) => ({ ...engine, title: engine.name })).concat(pglite as never);

/** Runs `body` in a new database to which `ground` is applied. */
async function onGround(
  { dialect, createDatabase }: Pick<(typeof engines)[number], 'dialect' | 'createDatabase'>,
  body: (svc: Svc, target: Target, url: string) => Promise<void>,
  more: Partial<Config> = {},
): Promise<void> {
  const { url, drop } = await createDatabase();
  try {
    await withClient(approvalConfig(dialect.name, url, more), async (svc, target) => {
      await migrate(target, all, { to: ground.tag });
      await body(svc, target, url);
    });
  } finally {
    await drop();
  }
}

function onPostgresql(name: string, body: Parameters<typeof onGround>[1], more?: Partial<Config>): void {
  if (postgresql?.missing !== undefined) test.skip(name, postgresql.missing);
  else test(name, () => onGround(pglite, body, more), LONG);
}

const isStale = ({ status, outcome }: ApprovalRecord): boolean => status === 'approved' && outcome?.status === 'stale';

for (const engine of engines) {
  const name = `${engine.title}: a plan that has changed is requested in place of the earlier one, which ends`;
  if (engine.missing !== undefined) test.skip(name, engine.missing);
  else
    test(
      name,
      () =>
        onGround(engine, async (svc, target) => {
          const before = await requestOf(migrate(target, all));
          const after = await requestOf(migrate(target, edited));
          assert.notEqual(after, before);
          const ended = await svc.approvals.get(before);
          assert.equal(ended.status, 'cancelled');
          assert.equal(ended.decisionReason, `Replaced by ${after}: the plan has changed.`);
          assert.deepEqual(
            ended.events.map(({ type }) => type),
            ['requested', 'cancelled'],
          );
          const { records } = await svc.approvals.list();
          assert.deepEqual(
            records.map(({ requestId }) => requestId),
            [after],
          );
          await expectError(approve(svc, before), 'approval_decided');

          await approve(svc, after);
          const again = await requestOf(migrate(target, all));
          const stale = await svc.approvals.get(after);
          assert.ok(isStale(stale), JSON.stringify(stale.outcome));
          assert.equal(
            statusText(stale),
            `approved by ann@acme.example, stale: Replaced by ${again}: the plan has changed.`,
          );
          assert.notEqual(await requestOf(migrate(target, edited)), after, 'an approval that ended is not used');
          await approve(svc, await requestOf(migrate(target, all)));
          await migrate(target, all);
          assert.deepEqual(await tablesOf(target), ['first', 'second']);
        }),
      LONG,
    );
}

onPostgresql('an approved part of a plan remains, and runs', async (svc, target) => {
  const part = await requestOf(migrate(target, all, { to: first.tag }));
  await approve(svc, part);
  const whole = await requestOf(migrate(target, all));
  assert.equal((await svc.approvals.get(part)).outcome, undefined);
  await migrate(target, all, { to: first.tag });
  assert.deepEqual(await tablesOf(target), ['first', 'two']);
  const { status, decisionReason } = await svc.approvals.get(whole);
  assert.equal(status, 'cancelled', 'the run has changed the history');
  assert.match(String(decisionReason), /history of the database has changed/);
});

onPostgresql('a change of the history ends the requests of other actions, approved or not', async (svc, target) => {
  const db = await svc.database.connect({ database: 'main' });
  const waiting = await requestOf(rollback(target));
  const approved = await requestOf(db.schema.drop('two'));
  await approve(svc, approved);
  await db.schema.create('notes', { id: { type: 'integer', primaryKey: true } });
  assert.equal((await svc.approvals.get(waiting)).status, 'waiting');
  await requestOf(migrate(target, all));
  assert.equal((await svc.approvals.get(waiting)).status, 'cancelled');
  assert.ok(isStale(await svc.approvals.get(approved)));
});

onPostgresql('requests of different changes by a program do not end each other', async (svc) => {
  const db = await svc.database.connect({ database: 'main' });
  const asked = [await requestOf(db.schema.drop('one')), await requestOf(db.schema.dropField('two', 'note'))];
  for (const requestId of asked) assert.equal((await svc.approvals.get(requestId)).status, 'waiting');
});

const heard: ApprovalRecord[] = [];
const channel: Channel = {
  name: 'recording',
  deliver: async () => undefined,
  async onDecided(record) {
    heard.push(record);
  },
};
const plugin = definePlugin({
  name: 'recording',
  apply: (kernel) => kernel.channels.register('recording', () => channel),
});

onPostgresql(
  'the channels receive the end of a request',
  async (_svc, target) => {
    const before = await requestOf(migrate(target, all));
    const after = await requestOf(migrate(target, edited));
    await waitUntil(() => heard.length > 0, 'The channel heard of no decision.');
    assert.deepEqual(
      heard.map(({ requestId, status, decisionReason }) => [requestId, status, decisionReason]),
      [[before, 'cancelled', `Replaced by ${after}: the plan has changed.`]],
    );
  },
  {
    plugins: [plugin],
    approvals: { store: { database: 'main' }, roles: { dba: ['group:dba'] }, channels: { log: { type: 'recording' } } },
  },
);

onPostgresql('a run that waits for a request that ends does not request its plan again', async (svc, target) => {
  const waiting: string[] = [];
  const ask = { waitMs: 60_000, onWaiting: ({ requestId }: { requestId: string }) => void waiting.push(requestId) };
  const refused = expectError(migrate(target, all, { ask }), 'approval_stale');
  await waitUntil(() => waiting.length > 0, 'It waits for nothing.');
  const after = await requestOf(migrate(target, edited));
  assert.equal((await refused).why, `Replaced by ${after}: the plan has changed.`);
  assert.equal((await svc.approvals.get(after)).status, 'waiting');
});

onPostgresql('a runner requests its plan again once the one in its place has ended', async (svc, target) => {
  const ask = { asRunner: true };
  const before = await requestOf(migrate(target, all, { ask }));
  const after = await requestOf(migrate(target, edited));
  const error = await expectError(migrate(target, all, { ask }), 'approval_stale');
  assert.equal(error.details.requestId, after);
  await svc.approvals.signal(
    { signal: 'reject', payload: { requestId: after } },
    { principal: { id: 'ann@acme.example', groups: ['dba'] } },
  );
  assert.notEqual(await requestOf(migrate(target, all, { ask })), before);
});

onPostgresql('a request that is out of date when it is stored ends itself, and no other', async (svc, target) => {
  const current = await requestOf(migrate(target, all));
  const { parameters } = await svc.approvals.get(current);
  const plan = { ...(parameters as unknown as PlanDescription), plan: 'another', history: 'of yesterday' };
  assert.ok(target.approver);
  const request = { plan, reason: 'late', readHistory: async () => String(parameters.history) };
  await expectError(target.approver.ask(request, {}), 'approval_stale');
  assert.equal((await svc.approvals.get(current)).status, 'waiting');
  assert.equal((await svc.approvals.list()).records.length, 1);
});

const racing = 'a decision at the moment in which its request is replaced counts, or is refused';
if (postgresql.missing !== undefined) test.skip(racing, postgresql.missing);
else
  test(
    racing,
    () =>
      onGround(postgresql, async (svc, target, url) => {
        const other = new Svc({ config: approvalConfig('postgresql', url) });
        const seen = new Set<string>();
        try {
          for (let round = 0; round < 40; round++) {
            const before = await requestOf(migrate(target, round % 2 ? edited : all));
            const [decided, replaced] = await Promise.allSettled([
              approve(other, before),
              requestOf(migrate(target, round % 2 ? all : edited)),
            ]);
            assert.equal(replaced.status, 'fulfilled');
            const record = await svc.approvals.get(before);
            if (decided.status === 'fulfilled') assert.ok(isStale(record), JSON.stringify(record));
            else assert.equal(record.status, 'cancelled', String(decided.reason));
            assert.equal(record.run, 'none');
            seen.add(record.status);
          }
          assert.deepEqual(await tablesOf(target), ['one', 'two']);
          assert.ok(seen.size > 0);
        } finally {
          await other.close();
        }
      }),
    LONG,
  );
