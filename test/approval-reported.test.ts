import * as assert from 'node:assert/strict';
import { Svc } from '../config/sdk/index.ts';
import type { Channel } from '../core/approval/channel.ts';
import type { ApprovalRecord } from '../core/approval/request.ts';
import { definePlugin } from '../core/plugin.ts';
import { startGateProcess } from './kit/gate-processes.ts';
import { freshDatabase, type PostgresqlTestDatabase, unavailable } from './kit/postgresql.ts';
import { test } from './kit/test.ts';
import { waitUntil } from './suites/wait-until.ts';

// Who reports a decision to the channels: the process that waits for it, or the one that stores it if none does.

interface Heard extends Pick<ApprovalRecord, 'requestId' | 'status'> {
  readonly by: string;
  readonly isUnattended: boolean;
  readonly receipts: unknown;
}

const missing = await unavailable();

type Store = Pick<PostgresqlTestDatabase, 'url' | 'query'>;
type Body = (open: (name: string) => Svc, heard: readonly Heard[], store: Store) => Promise<void>;

/** Declares a test with clients as of two processes on one store, and a channel that records what is reported to it. */
function on(title: string, body: Body): void {
  if (missing === undefined) test(title, () => withClients(body));
  else test.skip(title, missing);
}

async function withClients(body: Body) {
  const { url, query, drop } = await freshDatabase();
  const heard: Heard[] = [];
  const clients: Svc[] = [];
  const open = (name: string) => {
    const channel: Channel = {
      name: 'recording',
      deliver: async ({ requestId }) => `message of ${requestId}`,
      async onDecided({ requestId, status, unattendedSince }, _signal, receipts) {
        heard.push({ requestId, status, by: name, isUnattended: unattendedSince !== undefined, receipts });
      },
    };
    const plugin = definePlugin({
      name: 'recording',
      apply: (kernel) => kernel.channels.register('recording', () => channel),
    });
    const svc = new Svc({
      product: 'shop',
      env: 'dev',
      config: {
        plugins: [plugin],
        databases: { main: { dialect: 'postgresql', url } },
        approvals: { store: { database: 'main' }, channels: { chat: { type: 'recording' } } },
      },
    });
    clients.push(svc);
    return svc;
  };
  try {
    await body(open, heard, { url, query });
  } finally {
    for (const svc of clients) await svc.close();
    await drop();
  }
}

/** Makes a call, and leaves it as soon as its message is delivered. */
async function ask(svc: Svc, toolCallId: string, waitMs: number) {
  const gate = svc.gate({ agentTag: 'payouts', humanInLoop: { enabled: true } });
  const refund = gate.guard('refund', { inputSchema: { type: 'object' } }, () => 'paid');
  const { requestId = '' } = await refund.run({ parameters: {}, executionId: 'exe_1', toolCallId }, { waitMs });
  return requestId;
}

const decide = (svc: Svc, requestId: string, signal: 'approve' | 'reject') =>
  svc.approvals.signal({ signal, payload: { requestId } });

on('a decision that no process waits for is reported by the process that stores it', async (open, heard) => {
  const agent = open('agent');
  const ids = [await ask(agent, 'c1', 1), await ask(agent, 'c2', 1)] as const;
  await agent.close();
  const other = open('other');
  await decide(other, ids[0], 'approve');
  await decide(other, ids[1], 'reject');
  await waitUntil(() => heard.length === 2, 'the decisions were not reported');
  const [approved, rejected] = heard.toSorted((one, two) => one.status.localeCompare(two.status));
  const reported = (requestId: string) => ({ requestId, by: 'other', receipts: [`message of ${requestId}`] });
  assert.deepEqual(approved, { ...reported(ids[0]), status: 'approved', isUnattended: true });
  assert.deepEqual(rejected, { ...reported(ids[1]), status: 'rejected', isUnattended: false });
});

on('a decision that a process waits for is reported by that process, once', async (open, heard) => {
  const [agent, other] = [open('agent'), open('other')];
  const calls = ['c1', 'c2'].map((id) => ask(agent, id, 60_000));
  const waiting = async () => (await other.approvals.list({ status: 'waiting' })).records;
  await waitUntil(async () => (await waiting()).length === 2, 'the calls do not wait');
  const [first, second] = (await waiting()).map(({ requestId }) => requestId) as [string, string];
  await decide(other, first, 'approve');
  await decide(other, second, 'reject');
  await Promise.all(calls);
  await waitUntil(() => heard.length === 2, 'the decisions were not reported');
  await other.close();
  assert.deepEqual(
    heard.map(({ by, isUnattended }) => [by, isUnattended]),
    [
      ['agent', false],
      ['agent', false],
    ],
  );
});

on(
  'an approval is reported once the process that seemed to wait for it is known to be gone',
  async (open, heard, store) => {
    const agent = await startGateProcess(store.url);
    const call = { tool: 'refund', parameters: { order: '1234', amount: 20 }, executionId: 'exe_1', toolCallId: 'c1' };
    void agent.send({ do: 'call', call }).catch(() => undefined);
    const other = open('other');
    const waiting = async () => (await other.approvals.list({ status: 'waiting' })).records[0]?.requestId;
    await waitUntil(async () => (await waiting()) !== undefined, 'the call does not wait');
    agent.child.kill('SIGKILL');
    await agent.ended;
    await store.query('UPDATE _svc_approval_waiters SET "leaseMs" = "leaseMs" - 80000');
    await decide(other, (await waiting()) ?? '', 'approve');
    assert.equal(heard.length, 0, 'reported while the process may still do it');
    await waitUntil(() => heard.length > 0, 'the decision was not reported');
    assert.deepEqual([heard.length, heard[0]?.status, heard[0]?.isUnattended], [1, 'approved', true]);
  },
);
