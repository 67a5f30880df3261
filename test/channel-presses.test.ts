import * as assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { callbackHandler } from '../config/sdk/callback/handler.ts';
import type { Channel, Delivery } from '../core/approval/channel.ts';
import { type Presses, pressHandler } from '../core/approval/presses.ts';
import type { ApprovalService } from '../core/approval/service.ts';
import { SvcError } from '../core/errors.ts';
import type { Plugin } from '../core/kernel.ts';
import { definePlugin } from '../core/plugin.ts';
import { startCli } from './kit/cli.ts';
import { SERVER } from './kit/people-api.ts';
import { freshDatabase, unavailable } from './kit/postgresql.ts';
import { LONG, project } from './kit/project.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';
import { freePort } from './suites/free-port.ts';
import { CALLBACK_KEY, type GateUnderTest, withGate } from './suites/gate-client.ts';
import { waitUntil } from './suites/wait-until.ts';
import { startWebhookReceiver } from './suites/webhook-receiver.ts';

/** Pressed buttons of channels, as `svc approvals serve` and the handlers of a client receive them. The channel suite tests what a press does. */

const BASE = 'https://shop.example/svc';
const trusting: Presses = {
  verify: () => true,
  read: (body) => JSON.parse(Buffer.from(body).toString()),
  show: ({ text }) => new Response(text),
};

/** A client with channels that all have these presses, and what was delivered to them. */
async function withPresses(
  presses: Presses | undefined,
  body: (
    gate: GateUnderTest,
    press: (path: string, body: unknown, method?: string) => Promise<Response>,
    delivered: Delivery[],
  ) => Promise<void>,
  approvals: object = {},
): Promise<void> {
  const delivered: Delivery[] = [];
  const channel: Channel = {
    name: 'pager',
    deliver: async (delivery) => void delivered.push(delivery),
    ...(presses && { presses }),
  };
  const pager = definePlugin({ name: 'pager', apply: (kernel) => kernel.channels.register('pager', () => channel) });
  const channels = { ops: { type: 'pager' }, 'on-call.2': { type: 'pager' }, inbox: { type: 'pager' } };
  await withGate({ config: { plugins: [pager] }, approvals: { channels, ...approvals } }, async (gate) => {
    const handler = gate.svc.approvals.handler();
    const press = (path: string, content: unknown, method = 'POST') =>
      handler(new Request(`${BASE}${path}`, { method, ...(method === 'POST' && { body: JSON.stringify(content) }) }));
    await body(gate, press, delivered);
  });
}

test('a press at the URL of a channel decides; its event has the channel and the person', () =>
  withPresses(trusting, async ({ refund, svc }, press, delivered) => {
    for (const [name, path] of [
      ['ops', '/channels/ops'],
      ['on-call.2', '/channels/on-call.2'],
      ['inbox', '/channels/inbox/'],
    ] as const) {
      const { request, outcome } = await refund();
      const { requestId } = request;
      const response = await press(path, { button: 'approve', requestId, actor: 'pager:ada' });
      assert.deepEqual([response.status, await response.text()], [200, `${requestId} is approved by pager:ada.`]);
      assert.equal((await outcome).status, 'completed');
      const decided = (await svc.approvals.get(requestId)).events.find(({ type }) => type === 'approved');
      assert.deepEqual([decided?.by, decided?.from], ['pager:ada', `channel:${name}`]);
      const urls = () => delivered.filter((one) => one.requestId === requestId).map(({ pressUrl }) => pressUrl);
      await waitUntil(
        () => urls().includes(`${BASE}${path.replace(/\/$/, '')}`),
        `the press URL of ${name} is missing`,
      );
    }
  }));

const finance = { role: 'finance', count: 2 };

test('by a rule, the answer to a press says that it is a vote, or why it was refused', () =>
  withPresses(
    trusting,
    async ({ refund, svc }, press) => {
      const { request, outcome } = await refund();
      const { requestId } = request;
      const answer = async (button: string) =>
        (await press('/channels/ops', { button, requestId, actor: 'pager:ada' })).text();
      const noReason = 'The decision was not accepted. The rule of the request requires a reason.';
      assert.equal(await answer('reject'), noReason);
      const stored = `The vote of pager:ada on ${requestId} was stored. Missing: 1 of finance.`;
      assert.equal(await answer('approve'), stored);
      assert.equal(await answer('approve'), stored, 'all whom nobody verified are one person');
      const signal = { signal: 'approve', payload: { requestId } } as const;
      await svc.approvals.signal(signal, { principal: { id: 'bo', groups: ['finance'] } });
      await outcome;
      assert.equal(await answer('approve'), `${requestId} is approved by pager:ada, bo.`);
    },
    {
      roles: { finance: ['group:finance'] },
      rules: [{ approve: [finance], unverified: true, reason: 'reject' }],
    },
  ));

test('by a rule that counts only people who were verified, a press is refused, and its answer says why', () =>
  withPresses(
    trusting,
    async ({ refund }, press) => {
      const { request } = await refund();
      const { requestId } = request;
      const response = await press('/channels/ops', { button: 'approve', requestId, actor: 'pager:ada' });
      assert.equal(
        await response.text(),
        'The decision was not accepted. Its rule counts only people who were verified, and nobody verified who decides.',
      );
    },
    { roles: { finance: ['group:finance'] }, rules: [{ approve: [finance] }] },
  ));

test('a channel without presses has no press URL; its route, an unknown one and other methods are rejected', async () => {
  const found = { error: 'name_unknown', message: 'No channel with this name receives pressed buttons.' };
  await withPresses(undefined, async ({ refund }, press, delivered) => {
    await refund();
    await waitUntil(() => delivered.length > 0, 'nothing was delivered');
    assert.equal(delivered[0]?.pressUrl, undefined);
    const response = await press('/channels/ops', {});
    assert.deepEqual([response.status, await response.json()], [404, found]);
  });
  await withPresses(
    trusting,
    async (_gate, press) => {
      for (const path of ['/channels/other', '/channels/__proto__']) {
        const response = await press(path, {});
        assert.deepEqual([response.status, await response.json()], [404, found], path);
      }
      for (const path of ['/channels/%E2', '/channels/', '/channels/ops/more']) {
        assert.equal((await press(path, {})).status, 404, path);
      }
      const read = await press('/channels/ops', {}, 'GET');
      assert.deepEqual([read.status, read.headers.get('allow')], [405, 'POST']);
    },
    SERVER,
  );
  const below = { ...SERVER, callbackBase: `${BASE}/channels`, channels: { ops: { type: 'pager' } } };
  await withPresses(
    trusting,
    async (_gate, press) => {
      const inbox = await press('/channels/inbox', {}, 'GET');
      assert.match(await inbox.text(), /<!doctype html>/i, 'the inbox of such a base is a channel');
    },
    below,
  );
});

test('nothing is read of the store before a press is verified', async () => {
  const touched: string[] = [];
  const approvals = new Proxy({} as ApprovalService, {
    get: (_service, name) => {
      touched.push(String(name));
      throw new SvcError('connection_lost', 'The store was read.');
    },
  });
  const read = (isVerified: boolean) => {
    const presses = new Map([['ops', { ...trusting, verify: () => isVerified }]]);
    const handle = callbackHandler({ approvals, product: 'shop', env: 'dev', key: CALLBACK_KEY, presses });
    const body = JSON.stringify({ button: 'approve', requestId: 'apr_1', actor: 'ada' });
    return handle(new Request(`${BASE}/channels/ops`, { method: 'POST', body }));
  };
  assert.equal((await read(false)).status, 401);
  assert.deepEqual(touched, []);
  assert.notEqual((await (await read(true)).text()).length, 0);
  assert.notEqual(touched.length, 0, 'a press that is verified did not read the store');
});

test('an error of a channel is a response without details, and a warning that names the channel', async () => {
  const warnings: string[] = [];
  const onWarning = ({ message }: Error) => void warnings.push(message);
  process.on('warning', onWarning);
  const fails = () => {
    throw new TypeError('a secret detail');
  };
  try {
    for (const [part, expected] of [
      ['verify', /^The channel ops: internal error [0-9a-f-]{36}: a secret detail$/],
      ['read', /^The channel ops: read threw on a verified request: a secret detail$/],
      ['show', /^The channel ops: internal error [0-9a-f-]{36}: a secret detail$/],
    ] as const) {
      await withPresses({ ...trusting, [part]: fails }, async ({ refund }, press) => {
        const { requestId } = (await refund()).request;
        const response = await press('/channels/ops', { button: 'reject', requestId, actor: 'ada' });
        assert.equal(response.status, 500, part);
        assert.doesNotMatch(await response.text(), /secret/);
        await waitUntil(() => warnings.some((text) => expected.test(text)), `${part}: ${warnings}`);
      });
    }
    await withPresses(trusting, async (_gate, press) => {
      assert.equal((await press('/channels/ops', 'x'.repeat(1024 * 1024))).status, 413);
    });
  } finally {
    process.off('warning', onWarning);
  }
});

test('presses that nobody has signed are limited for each channel before they are read; those that are signed are not', async () => {
  let isSigned = true;
  let verified = 0;
  const presses: Presses = {
    ...trusting,
    verify() {
      verified += 1;
      return isSigned;
    },
    read: () => undefined,
  };
  await withPresses(presses, async (_gate, press) => {
    const statusesOf = async (times: number) => {
      const statuses = new Set<number>();
      for (let count = 0; count < times; count++) statuses.add((await press('/channels/ops', {})).status);
      return [...statuses];
    };
    assert.deepEqual(await statusesOf(700), [200]);
    isSigned = false;
    assert.deepEqual(await statusesOf(600), [401]);
    const before = verified;
    const limited = await press('/channels/ops', {});
    assert.deepEqual([limited.status, verified], [429, before]);
    assert.ok(Number(limited.headers.get('retry-after')) > 0);
    assert.equal((await press('/channels/on-call.2', {})).status, 401, 'another channel has its own limit');
  });
});

test('a channel that cannot be opened fails the handler, and says which it is', async () => {
  const pager = definePlugin({
    name: 'pager',
    apply: (kernel) =>
      kernel.channels.register('pager', () => {
        throw new SvcError('config_invalid', 'The options of a plugin in svc.config are invalid.');
      }),
  });
  const approvals = { channels: { ops: { type: 'pager' } } };
  await withGate({ config: { plugins: [pager] }, approvals }, async ({ svc }) => {
    const handle = svc.approvals.handler();
    const error = await expectError(handle(new Request(`${BASE}/inbox`)), 'config_invalid');
    assert.equal(error.where, 'approvals.channels.ops');
  });
});

/** A plugin of a project: its messages have buttons with a URL and a proof, as those of Mattermost. */
const PAGER = `
import { createHmac } from 'node:crypto';
const proofOf = (secret, time, text) => createHmac('sha256', secret).update(time + '.' + text).digest('hex');
const pager = ({ url, secret }) => ({
  name: 'pager',
  async deliver({ requestId, tool, pressUrl }, signal) {
    await fetch(url, { method: 'POST', body: JSON.stringify({ requestId, tool, pressUrl }), signal });
  },
  presses: {
    verify: (headers, body) => headers.get('x-signature') === proofOf(secret, headers.get('x-time'), Buffer.from(body)),
    read: (body) => JSON.parse(Buffer.from(body)),
    show: ({ text }) => new Response(text),
  },
});
export default { name: 'pager', api: 1, apply: (kernel) => kernel.channels.register('pager', pager) };
`;

const SERVED =
  'svc approvals serve: a signed press on the button of a delivered message runs the call of another process';
const missing = await unavailable();
if (missing !== undefined) test.skip(SERVED, missing);
else
  test(
    SERVED,
    async () => {
      const [{ url, drop }, service] = [await freshDatabase(), await startWebhookReceiver(200)];
      const channels = { ops: { type: 'pager', url: service.url, secret: 'the secret' } };
      const port = await freePort();
      const base = `http://127.0.0.1:${port}`;
      const approvals = { store: { database: 'main' }, channels, callbackBase: `${base}/`, callbackKey: CALLBACK_KEY };
      const shop = project({ main: url }, { plugins: ['./pager.mjs'], approvals });
      shop.write('pager.mjs', PAGER);
      const serving = startCli(['approvals', 'serve', '--port', `${port}`], shop.root);
      try {
        await serving.untilStderr(`Presses of the channel "ops" arrive at ${base}/channels/ops`);
        const callbackBase = /Listening on (\S+)/.exec(serving.stderr())?.[1] ?? '';
        const { default: pager } = (await import(pathToFileURL(join(shop.root, 'pager.mjs')).href)) as {
          default: Plugin;
        };
        const config = { databases: { main: { dialect: 'postgresql', url } }, plugins: [pager] } as const;
        await withGate({ config, approvals: { ...approvals, callbackBase } }, async ({ refund, refunds, svc }) => {
          const { request, outcome } = await refund();
          await waitUntil(() => service.received.length === 1, 'the message was not delivered');
          const { requestId, pressUrl } = JSON.parse(service.received[0]?.body ?? '');
          assert.deepEqual([requestId, pressUrl], [request.requestId, `${callbackBase}/channels/ops`]);
          const press = (secret: string) => {
            const body = JSON.stringify({ button: 'approve', requestId, actor: 'pager:ada' });
            const time = String(Date.now());
            const signature = createHmac('sha256', secret).update(`${time}.${body}`).digest('hex');
            return fetch(pressUrl, { method: 'POST', headers: { 'x-time': time, 'x-signature': signature }, body });
          };
          assert.equal((await press('another secret')).status, 401);
          assert.equal((await svc.approvals.get(requestId)).status, 'waiting');
          const pressed = await press('the secret');
          assert.deepEqual([pressed.status, await pressed.text()], [200, `${requestId} is approved by pager:ada.`]);
          assert.equal((await outcome).status, 'completed');
          assert.equal(JSON.stringify(refunds), '[{"orderId":"1234","amount":20}]');
          assert.match((await shop.svc('approvals', 'show', requestId)).stdout, /approved by pager:ada/);
          assert.equal((await fetch(`${callbackBase}/channels/other`, { method: 'POST' })).status, 404);
        });
      } finally {
        serving.child.kill('SIGKILL');
        service.close();
        await drop();
      }
    },
    LONG,
  );

test('a press while the store cannot be reached is answered with 503, and the person is asked to press again', async () => {
  const shown: string[] = [];
  const presses: Presses = { ...trusting, show: async ({ text }) => void shown.push(text) };
  const down = new SvcError('connection_lost', 'The connection was lost.');
  const decider = {
    name: 'pager',
    decide: () => Promise.reject(down),
    get: () => assert.fail('the store was read once more, which takes as long again'),
  };
  const body = JSON.stringify({ button: 'approve', requestId: 'apr_1', actor: 'ada' });
  const response = await pressHandler(presses, decider)(new Request(BASE, { method: 'POST', body }));
  assert.equal(response.status, 503);
  assert.deepEqual(shown, ['The connection was lost. Whether apr_1 is decided is not known: press again.']);
});
