import * as assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import type { Config } from '../config/define.ts';
import { Svc } from '../config/sdk/index.ts';
import type { Channel } from '../core/approval/channel.ts';
import type { ApprovalRecord } from '../core/approval/request.ts';
import { migrate } from '../core/migration/migrate.ts';
import type { PlanDescription } from '../core/migration/plan-approver.ts';
import type { Target } from '../core/migration/target.ts';
import { definePlugin } from '../core/plugin.ts';
import { folder } from './kit/folder.ts';
import { definedInCode } from './kit/migrations.ts';
import { freshFolder } from './kit/pglite.ts';
import { approvalConfig, dba, drops, ground, requestOf, withClient } from './kit/plan-approval.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';
import { WEBHOOK_SECRET } from './suites/gate-client.ts';
import { waitUntil } from './suites/wait-until.ts';
import { startWebhookReceiver } from './suites/webhook-receiver.ts';

// What channels receive of plans, on PGlite.

const LONG = { timeoutMs: 180_000 };
const all = [ground, ...drops].map(definedInCode);

const approvalsWith = (channels: NonNullable<Config['approvals']>['channels']): Partial<Config> => ({
  approvals: { store: { database: 'main' }, roles: { dba: ['group:dba'] }, ...(channels && { channels }) },
});

type Heard = Pick<ApprovalRecord, 'requestId' | 'status' | 'cause' | 'decisionReason'>;

/** Declares a test with a channel that records the decisions that are reported to it. */
function withChannel(
  name: string,
  body: (svc: Svc, target: Target, heard: readonly Heard[]) => Promise<void>,
  approval: NonNullable<NonNullable<Config['environments']>[string]['approval']> = { role: 'dba' },
): void {
  test(
    name,
    async () => {
      const heard: Heard[] = [];
      const channel: Channel = {
        name: 'recording',
        deliver: async () => undefined,
        async onDecided({ requestId, status, cause, decisionReason }) {
          heard.push({ requestId, status, ...(cause && { cause }), ...(decisionReason && { decisionReason }) });
        },
      };
      const plugin = definePlugin({
        name: 'recording',
        apply: (kernel) => kernel.channels.register('recording', () => channel),
      });
      const { url, drop } = await freshFolder();
      const more = { plugins: [plugin], environments: { prd: { approval } } };
      const config = approvalConfig('postgresql', url, { ...approvalsWith({ log: { type: 'recording' } }), ...more });
      try {
        await withClient(config, async (svc, target) => {
          await migrate(target, all, { to: ground.tag });
          await body(svc, target, heard);
        });
      } finally {
        await drop();
      }
    },
    LONG,
  );
}

const reject = (svc: Svc, requestId: string) =>
  svc.approvals.signal({ signal: 'reject', payload: { requestId, reason: 'not on a Friday' } }, { principal: dba });

const rejection = (requestId: string): Heard => ({
  requestId,
  status: 'rejected',
  cause: 'human',
  decisionReason: 'not on a Friday',
});

withChannel('a rejection of a plan is reported to the channels although no run waits', async (svc, target, heard) => {
  const requestId = await requestOf(migrate(target, all));
  await reject(svc, requestId);
  await waitUntil(() => heard.length > 0, 'The channel heard of no decision.');
  await expectError(migrate(target, all), 'approval_rejected');
  await svc.close();
  assert.deepEqual(heard, [rejection(requestId)]);
});

withChannel('a rejection of a plan for which a run waits is reported once', async (svc, target, heard) => {
  const waiting: string[] = [];
  const ask = { waitMs: 60_000, onWaiting: ({ requestId }: { requestId: string }) => void waiting.push(requestId) };
  const refused = expectError(migrate(target, all, { ask }), 'approval_rejected');
  await waitUntil(() => waiting.length > 0, 'It waits for nothing.');
  const [requestId = ''] = waiting;
  await reject(svc, requestId);
  await refused;
  await svc.close();
  assert.deepEqual(heard, [rejection(requestId)]);
});

withChannel(
  'the end of the time to decide about a plan is reported to the channels',
  async (svc, target, heard) => {
    const requestId = await requestOf(migrate(target, all));
    await waitUntil(async () => (await svc.approvals.get(requestId)).status !== 'waiting', 'It never expired.');
    assert.notEqual(await requestOf(migrate(target, all)), requestId);
    await waitUntil(() => heard.length > 0, 'The channel heard of no decision.');
    assert.deepEqual(heard, [{ requestId, status: 'rejected', cause: 'timeout' }]);
  },
  { role: 'dba', timeout: '2s' },
);

test(
  'a webhook of the configuration receives everything about a plan',
  async () => {
    const root = folder();
    const git = (...args: readonly string[]) =>
      execFileSync('git', ['-c', 'user.name=Ann', '-c', 'user.email=ann@acme.example', ...args], { cwd: root });
    git('init', '--quiet');
    git('commit', '--quiet', '--allow-empty', '--message', 'first');
    const commit = git('rev-parse', '--short=12', 'HEAD').toString().trim();
    const receiver = await startWebhookReceiver(200);
    const { url, drop } = await freshFolder();
    const hook = { type: 'webhook', url: receiver.url, secrets: [WEBHOOK_SECRET], context: true };
    const svc = new Svc({ cwd: root, config: approvalConfig('postgresql', url, approvalsWith({ ops: hook })) });
    try {
      const target = (await svc.database.connect({ database: 'main' })).getAdapter();
      await migrate(target, all, { to: ground.tag });
      await target.connection.query('INSERT INTO "one" VALUES (1)');
      const requestId = await requestOf(migrate(target, all));
      const [first] = receiver.received;
      assert.ok(first);
      const sent = new Webhook(WEBHOOK_SECRET).verify(first.body, first.headers as Record<string, string>);
      const { parameters, context, ...rest } = sent as Record<string, unknown>;
      assert.deepEqual([rest.type, rest.requestId, rest.tool], ['approval_request', requestId, 'svc_db_migrate']);
      const { reason, product, env } = context as Record<string, string>;
      assert.match(String(reason), /^migrate main \(prd\): DROP TABLE "one" \(one has 1 row\), and 1 more$/);
      assert.deepEqual([product, env], ['shop', 'prd']);
      const plan = parameters as PlanDescription;
      assert.deepEqual([plan.environment, plan.database, plan.action, plan.commit], ['prd', 'main', 'migrate', commit]);
      assert.match(plan.requestedBy, /@/);
      const [tags, rollbacks] = [
        plan.migrations.map(({ tag }) => tag),
        plan.migrations.map(({ rollback }) => rollback),
      ];
      assert.deepEqual(
        tags,
        drops.map(({ tag }) => tag),
      );
      assert.deepEqual(new Set(rollbacks), new Set(['the schema comes back, the data does not']));
      assert.ok(plan.migrations.every(({ statements }) => statements.length > 0));
      assert.match(String(plan.losses[0]), /DROP TABLE "one" \(one has 1 row\)/);
      assert.ok(plan.warnings.length > 0);

      mkdirSync(join(root, 'svc', 'database'), { recursive: true });
      writeFileSync(join(root, 'svc', 'database', 'schema.json'), '[]');
      await requestOf(migrate(target, all, { to: drops[0]?.tag ?? '' }));
      const { records } = await svc.approvals.list();
      assert.deepEqual(
        records.map((record) => record.parameters.commit),
        [`${commit}, with changes that are not committed`],
      );
    } finally {
      await svc.close();
      await drop();
      receiver.close();
    }
  },
  LONG,
);

test('a webhook without secrets, or with a wrong context, is refused before a plan is requested', async () => {
  const { url, drop } = await freshFolder();
  try {
    for (const [options, why] of [
      [{ url: 'https://ops.example/plans' }, /secrets/],
      [{ url: 'http://ops.example/plans', secrets: [WEBHOOK_SECRET] }, /https/],
      [{ url: 'https://ops.example/plans', secrets: [WEBHOOK_SECRET], context: 'yes' }, /context/],
    ] as const) {
      const channels = { ops: { type: 'webhook', ...options } };
      await withClient(approvalConfig('postgresql', url, approvalsWith(channels)), async (_svc, target) => {
        await migrate(target, all, { to: ground.tag });
        const refused = await expectError(migrate(target, all), 'config_invalid');
        assert.match(String(refused.why), why);
        assert.equal(refused.where, 'approvals.channels.ops');
      });
    }
  } finally {
    await drop();
  }
});
