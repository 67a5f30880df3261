import * as assert from 'node:assert/strict';
import type { DeliveryRoute } from '../core/approval/announce.ts';
import { type Channel, type Delivery, DeliveryFailed, storableReceipt } from '../core/approval/channel.ts';
import type { ApprovalRequest } from '../core/approval/request.ts';
import type { Json } from '../core/json.ts';
import { definePlugin } from '../core/plugin.ts';
import { MemoryStore } from '../plugins/stores/memory.ts';
import { test } from './kit/test.ts';
import {
  type ApprovalProcess,
  approve,
  Bank,
  compileTestTools,
  createGate,
  openApprovalProcess,
  refund,
  reject,
  startCall,
} from './suites/approval-setup.ts';
import { withGate } from './suites/gate-client.ts';
import { waitUntil } from './suites/wait-until.ts';

// What a channel returns from `deliver` comes back to it in `onDecided`, so that it can edit the message away.

const MAX_BYTES = 4096;

interface Recorded {
  readonly delivered: boolean;
  readonly error: string | null;
}

async function attemptsOf({ service }: ApprovalProcess, requestId: string): Promise<readonly Recorded[]> {
  const { records } = await service.deliveries.page('byRequest', { equals: { requestId }, limit: 100 });
  return records.map(({ record: { delivered, error } }) => ({ delivered, error }));
}

/** A route that delivers with `deliver`, and a promise of the receipts that it gets back. */
function reporting(deliver: () => Promise<unknown>) {
  let resolve: (receipts: readonly Json[]) => void = () => {};
  const given = new Promise<readonly Json[]>((found) => {
    resolve = found;
  });
  const route: DeliveryRoute = {
    channel: 'chat',
    deliver,
    onDecided: async (_record, _signal, receipts) => resolve(receipts),
  };
  return { route, given };
}

test('a receipt is JSON of at most 4 KiB, and a message that was sent is not sent again because of it', async () => {
  const circular: Record<string, unknown> = {};
  circular.self = circular;
  const largest = 'x'.repeat(MAX_BYTES - 2);
  for (const [returned, given, why] of [
    [undefined, [], null],
    [null, [], null],
    [0, [0], null],
    [{ id: 7, thread: undefined }, [{ id: 7 }], null],
    [largest, [largest], null],
    [`secret${largest}`, [], 'it is 4102 bytes of JSON, more than 4096'],
    [{ response: new Response('secret') }, [], 'response is not JSON'],
    [{ ids: [1, 7n] }, [], 'ids[1] is not JSON'],
    [circular, [], 'self.self.self is nested deeper than 64 levels'],
    [{ token: 'secret\0' }, [], 'token contains a character that databases reject'],
  ] as const) {
    const app = await openApprovalProcess(new MemoryStore());
    let sent = 0;
    const channel = reporting(async () => {
      sent += 1;
      return returned;
    });
    const gate = createGate(app, compileTestTools(new Bank().tool()), { routes: [channel.route] });
    const { request, outcome } = await startCall(gate, refund());
    await waitUntil(async () => (await attemptsOf(app, request.requestId)).length > 0, 'Nothing was recorded.');
    await approve(app, request);
    assert.equal((await outcome).status, 'completed');
    assert.deepEqual(await channel.given, given);
    const error = why === null ? null : `Its receipt cannot be stored: ${why}.`;
    assert.deepEqual(await attemptsOf(app, request.requestId), [{ delivered: true, error }]);
    assert.deepEqual(app.warnings, error === null ? [] : [`The channel chat delivered ${request.requestId}. ${error}`]);
    assert.equal(sent, 1);
    await app.service.close();
  }
});

test('a client that closes after the outcome reports the decision first, and waits for no channel that hangs', async () => {
  for (const status of ['rejected', 'approved'] as const) {
    const app = await openApprovalProcess(new MemoryStore());
    const reported: string[] = [];
    const slow: DeliveryRoute = {
      channel: 'slow',
      deliver: async () => undefined,
      async onDecided(record) {
        await new Promise((resolve) => setTimeout(resolve, 100));
        reported.push(record.status);
      },
    };
    const hanging: DeliveryRoute = { ...slow, channel: 'hanging', onDecided: () => new Promise(() => {}) };
    const gate = createGate(app, compileTestTools(new Bank().tool()), { routes: [slow, hanging] });
    const { request, outcome } = await startCall(gate, refund());
    await (status === 'approved' ? approve(app, request) : reject(app, request));
    await outcome;
    await app.service.close();
    assert.deepEqual(reported, [status]);
    assert.match(app.warnings.join(), /hanging did not receive the decision .*the client was closed/);
    const failed = (await attemptsOf(app, request.requestId)).filter(({ delivered }) => !delivered);
    assert.deepEqual(failed, [{ delivered: false, error: 'The decision was not reported: the client was closed' }]);
  }
});

test('the reason why a receipt cannot be stored does not quote it', () => {
  for (const value of ['secret'.repeat(1_000), { secret: 1n }, ['secret\0']]) {
    const stored = storableReceipt(value);
    assert.ok('why' in stored && !stored.why.replace(/^secret/, '').includes('secret'), JSON.stringify(stored));
  }
});

test('a request that was delivered twice returns both receipts, oldest first', async () => {
  const app = await openApprovalProcess(new MemoryStore());
  const channel = reporting(async () => 'second');
  const gate = createGate(app, compileTestTools(new Bank().tool()), { routes: [channel.route] });
  const call = refund();
  const { request, outcome } = await startCall(gate, call);
  const { requestId } = request;
  // By a process that delivered at the same time, and of another channel.
  const common = { requestId, delivered: true, error: null };
  await app.service.deliveries.insert({ ...common, id: 'd1', channel: 'chat', at: new Date(1), receipt: { value: 1 } });
  await app.service.deliveries.insert({ ...common, id: 'd2', channel: 'mail', at: new Date(2), receipt: { value: 2 } });
  await waitUntil(async () => (await attemptsOf(app, requestId)).length === 3, 'Nothing was delivered.');
  await approve(app, request);
  await outcome;
  assert.deepEqual(await channel.given, [1, 'second']);
  await app.service.close();
});

test('a decision waits for the receipt of a delivery in progress, and delays neither the tool nor another channel', async () => {
  const app = await openApprovalProcess(new MemoryStore());
  const bank = new Bank();
  let send: (receipt: string) => void = () => {};
  let isSending = false;
  const slow = reporting(() => {
    isSending = true;
    return new Promise((resolve) => {
      send = resolve;
    });
  });
  const fast = reporting(async () => 'sent');
  const routes = [slow.route, { ...fast.route, channel: 'fast' }];
  const { request, outcome } = await startCall(createGate(app, compileTestTools(bank.tool()), { routes }), refund());
  await waitUntil(() => isSending, 'The delivery never began.');
  await approve(app, request);
  assert.equal((await outcome).status, 'completed');
  assert.deepEqual(await fast.given, ['sent']);
  let isReported = false;
  void slow.given.then(() => {
    isReported = true;
  });
  await new Promise(setImmediate);
  assert.ok(!isReported, 'the decision was reported before the message was sent');
  send('late');
  assert.deepEqual(await slow.given, ['late']);
  await app.service.close();
});

for (const [what, impair] of [
  ['that could not be recorded', ({ service }) => (service.deliveries.insert = async () => assert.fail('disk full'))],
  ['that the index does not list yet', ({ service }) => (service.deliveries.page = async () => ({ records: [] }))],
] as const satisfies readonly [string, (app: ApprovalProcess) => unknown][]) {
  test(`the process that delivered a request has the receipt of a delivery ${what}`, async () => {
    const app = await openApprovalProcess(new MemoryStore());
    impair(app);
    let isSent = false;
    const channel = reporting(async () => {
      isSent = true;
      return 'sent';
    });
    const gate = createGate(app, compileTestTools(new Bank().tool()), { routes: [channel.route] });
    const { request, outcome } = await startCall(gate, refund());
    await waitUntil(() => isSent, 'The delivery never began.');
    await approve(app, request);
    assert.equal((await outcome).status, 'completed');
    assert.deepEqual(await channel.given, ['sent']);
    await app.service.close();
  });
}

test('a decided request is not delivered again while its tool runs', async () => {
  const app = await openApprovalProcess(new MemoryStore());
  let attempts = 0;
  let finish = () => {};
  const tool = new Bank().tool({
    handler: () =>
      new Promise((resolve) => {
        finish = () => resolve('paid');
      }),
  });
  const channel = reporting(async () => {
    attempts += 1;
    throw new DeliveryFailed('down');
  });
  const gate = createGate(app, compileTestTools(tool), { routes: [channel.route] });
  const { request, outcome } = await startCall(gate, refund());
  await waitUntil(async () => (await attemptsOf(app, request.requestId)).length === 1, 'The channel was not tried.');
  await approve(app, request);
  assert.deepEqual(await channel.given, []);
  // The announcement ends with the decision, before its next attempt, which is due within a second.
  const { deliveries } = app.service.announcements.get(request.requestId)!;
  await Promise.all(deliveries.values());
  assert.equal(attempts, 1);
  finish();
  assert.equal((await outcome).result, 'paid');
  assert.equal(attempts, 1);
  await app.service.close();
});

test('a channel of a plugin: its delivery names the call and the schema, and its receipt is in no list or export', async () => {
  const deliveries: Delivery[] = [];
  const requested: ApprovalRequest[] = [];
  const decided: unknown[] = [];
  const telegram: Channel<{ readonly messageId: number; readonly token: string }> = {
    name: 'telegram',
    async deliver(delivery) {
      deliveries.push(delivery);
      return { messageId: 7, token: 'bot:secret' };
    },
    async onDecided({ requestId, toolCallId }, _signal, receipts) {
      for (const { messageId } of receipts) decided.push([requestId, toolCallId, messageId]);
    },
  };
  const plugin = definePlugin({
    name: 'telegram',
    apply(kernel) {
      kernel.channels.register('telegram', () => telegram);
      kernel.hooks.approvalRequested.tap('telegram', (request) => void requested.push(request));
    },
  });
  const approvals = { channels: { ops: { type: 'telegram' } } };
  await withGate({ config: { plugins: [plugin] }, approvals }, async ({ svc, gate }) => {
    const parameters = { orderId: '1', amount: 2, card: '4111' };
    const outcome = gate.run(
      { tool: 'refund', parameters, toolCallId: 'call_1' },
      { onRequested: (request) => void requested.push(request) },
    );
    await waitUntil(() => deliveries.length === 1 && requested.length === 2, 'It was never delivered.');
    const [{ toolCallId, schema, description, requestId }] = deliveries as [Delivery];
    assert.deepEqual([toolCallId, description], ['call_1', 'Pays money back.']);
    assert.deepEqual(schema, {
      type: 'object',
      properties: { orderId: { type: 'string' }, amount: { type: 'number', minimum: 0 }, card: { type: 'string' } },
      required: ['orderId', 'amount'],
      additionalProperties: false,
    });
    for (const request of requested) assert.equal(request.toolCallId, 'call_1');
    const recorded = async () => (await svc.approvals.get(requestId)).deliveries.length;
    await waitUntil(async () => (await recorded()) === 1, 'The delivery was never recorded.');
    const { reviewToken } = await svc.approvals.get(requestId, { reveal: true });
    await svc.agents.signal({ signal: 'approve', payload: { requestId } }, { reviewToken: reviewToken! });
    assert.equal((await outcome).status, 'completed');
    await waitUntil(() => decided.length === 1, 'The decision was never reported.');
    assert.deepEqual(decided, [[requestId, 'call_1', 7]]);
    const shown: unknown[] = [await svc.approvals.get(requestId, { reveal: true }), await svc.approvals.list()];
    for await (const entry of svc.approvals.export()) shown.push(entry);
    assert.ok(!JSON.stringify(shown).includes('bot:secret'), 'the receipt was shown');
    assert.ok(JSON.stringify(shown).includes('"as":"ops"'), 'the export has no deliveries');
  });
});
