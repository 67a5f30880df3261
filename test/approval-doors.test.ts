import * as assert from 'node:assert/strict';
import { approvalHandler, type Svc } from '../config/sdk/index.ts';
import type { Presses, PressResult } from '../core/approval/presses.ts';
import type { ApprovalRequest } from '../core/approval/request.ts';
import { isSvcError } from '../core/errors.ts';
import { definePlugin } from '../core/plugin.ts';
import { svc as runCommand } from './kit/cli.ts';
import { freshDatabase, unavailable } from './kit/postgresql.ts';
import { LONG, type Project, project } from './kit/project.ts';
import { test } from './kit/test.ts';
import { CALLBACK_KEY, callbackUrlOf, type GateUnderTest, withGate } from './suites/gate-client.ts';

// The same rule on every way in: signals, the callback, its page, a button of a channel, the server for people, the broker and
// the command line.

const RULES = {
  roles: { finance: ['group:finance', 'user:cy'], anyone: ['group:finance', 'group:ops', 'user:cy'] },
  server: { role: 'anyone' },
  rules: [
    {
      match: { tool: 'refund', where: { amount: { gt: 10 } } },
      approve: [{ role: 'finance', count: 2 }],
      reason: 'reject' as const,
    },
  ],
};

const PRESSES: Presses = {
  verify: () => true,
  read: (body) => JSON.parse(Buffer.from(body).toString()),
  show: (result) => Response.json(result),
};

interface Attempt {
  readonly approved: boolean;
  /** The token of a person; without one, nobody is verified. */
  readonly token?: string;
  readonly amount?: number;
  readonly reason?: string;
}

interface Reply {
  /** The status of the request, or the code of the error. */
  readonly result: string;
  readonly missing?: readonly object[];
}

type Door = (request: ApprovalRequest, attempt: Attempt) => Promise<Reply>;

interface Doors {
  readonly gate: GateUnderTest;
  readonly shop: Project;
  readonly doors: Readonly<Record<string, Door>>;
  /** Those that a token of a person reaches. */
  readonly personal: Readonly<Record<string, Door>>;
  create(
    requester?: string,
    amount?: number,
  ): Promise<{ request: ApprovalRequest; outcome: Promise<{ status: string }> }>;
}

async function withDoors(body: (doors: Doors) => Promise<void>): Promise<void> {
  const { url, drop } = await freshDatabase();
  let consume: (body: Uint8Array) => Promise<void> = async () => {};
  const bus = definePlugin({
    name: 'test-bus',
    apply(kernel) {
      kernel.brokers.register('test-bus', () => ({
        publish: async () => {},
        async consume(_queue, handle) {
          consume = handle;
          return async () => {};
        },
        close: async () => {},
      }));
      kernel.channels.register('pager', () => ({ name: 'pager', deliver: async () => {}, presses: PRESSES }));
    },
  });
  try {
    const approvals = { store: { database: 'main' }, ...RULES };
    const shop = project({ main: url }, { approvals: { ...approvals, callbackKey: CALLBACK_KEY } });
    const config = {
      databases: { main: { dialect: 'postgresql', url } },
      brokers: { bus: { type: 'test-bus' } },
      plugins: [bus],
    } as const;
    await withGate(
      { config, approvals: { ...approvals, decisions: { broker: 'bus' }, channels: { pager: { type: 'pager' } } } },
      async (gate) => {
        const { svc } = gate;
        const stop = await svc.approvals.consumeDecisions();
        const all = doorsOf(svc, shop, (message) => consume(message));
        const { broker: _broker, 'the page': _page, 'a button': _button, ...personal } = all;
        await body({
          gate,
          shop,
          personal,
          doors: all,
          create: (requester = 'req', amount = 20) => gate.refund({ orderId: '1', amount }, requester),
        });
        await stop?.();
      },
    );
  } finally {
    await drop();
  }
}

function doorsOf(svc: Svc, shop: Project, consume: (body: Uint8Array) => Promise<void>): Record<string, Door> {
  const handler = approvalHandler(svc);
  const signal =
    (to: Svc['agents'] | Svc['approvals']): Door =>
    async ({ requestId }, { approved, token, amount, reason }) => {
      const payload = { requestId, reason, ...(amount !== undefined && { modifiedParams: { amount } }) };
      const sent = to.signal({ signal: approved ? 'approve' : 'reject', payload }, { token, actor: 'somebody' });
      return sent.then(
        ({ status, missing }) => ({ result: status, ...(missing && { missing }) }),
        (error) => ({ result: isSvcError(error) ? error.code : String(error) }),
      );
    };
  return {
    'svc.agents.signal': signal(svc.agents),
    'svc.approvals.signal': signal(svc.approvals),
    async callback(request, { approved, token, amount, reason }) {
      const headers = {
        'content-type': 'application/json',
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      };
      const decision = { approved, reason, ...(amount !== undefined && { modifiedParams: { amount } }) };
      const body = JSON.stringify(decision);
      const response = await handler(new Request(await callbackUrlOf(svc, request), { method: 'POST', headers, body }));
      const answer = (await response.json()) as { status?: string; error?: string; missing?: object[] };
      if (answer.error === undefined) assert.equal(response.status, answer.status === 'waiting' ? 202 : 200);
      return { result: answer.error ?? answer.status ?? '', ...(answer.missing && { missing: answer.missing }) };
    },
    async 'the server'({ requestId }, { approved, token, amount, reason }) {
      const headers = {
        'content-type': 'application/json',
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      };
      const body = JSON.stringify({ approved, reason, ...(amount !== undefined && { modifiedParams: { amount } }) });
      const url = `https://shop.example/svc/api/v1/approvals/${requestId}/decision`;
      const response = await handler(new Request(url, { method: 'POST', headers, body }));
      const answer = (await response.json()) as { status?: string; error?: string; missing?: object[] };
      if (token === undefined && answer.error === 'token_invalid') return { result: 'decision_refused' };
      return { result: answer.error ?? answer.status ?? '', ...(answer.missing && { missing: answer.missing }) };
    },
    async 'the page'(request, { approved, reason = '' }) {
      const url = await callbackUrlOf(svc, request);
      const send = async (fields: Record<string, string>) => {
        const headers = { 'content-type': 'application/x-www-form-urlencoded' };
        const body = new URLSearchParams(fields).toString();
        return handler(new Request(url, { method: 'POST', headers, body }));
      };
      const shown = await (await send({ action: 'show' })).text();
      assert.match(shown, /2 of finance.*counts only people who were verified/);
      const [, view = ''] = /name="view" value="([^"]+)"/.exec(shown) ?? [];
      const response = await send({ action: approved ? 'approve' : 'reject', view, reason });
      return { result: response.status === 403 ? 'decision_refused' : String(response.status) };
    },
    async 'a button'({ requestId }, { approved }) {
      const body = JSON.stringify({ button: approved ? 'approve' : 'reject', requestId, actor: 'pager:ann' });
      const response = await handler(new Request('https://shop.example/svc/channels/pager', { method: 'POST', body }));
      const { decided, text } = (await response.json()) as PressResult;
      return { result: !decided && /counts only people who were verified/.test(text) ? 'decision_refused' : text };
    },
    async broker(request, { approved, reason }) {
      const { requestId } = request;
      const token = new URL(await callbackUrlOf(svc, request)).searchParams.get('token');
      const message = Buffer.from(JSON.stringify({ requestId, token, approved, reason: reason ?? null }));
      return consume(message).then(
        async () => ({ result: (await svc.approvals.get(requestId)).status }),
        (error) => ({ result: isSvcError(error) ? error.code : String(error) }),
      );
    },
    async 'the command line'({ requestId }, { approved, token, amount, reason }) {
      const { reviewToken = '' } = await svc.approvals.get(requestId);
      const args = ['approvals', approved ? 'approve' : 'reject', requestId, '--yes', '--json'];
      if (approved) args.push('--review-token', reviewToken);
      if (amount !== undefined) args.push('--set', `amount=${amount}`);
      if (reason !== undefined) args.push('--reason', reason);
      const ran = await runCommand(args, { cwd: shop.root, env: { SVC_TOKEN: token } });
      const { code, status, missing } = JSON.parse(ran.stdout);
      return { result: code === 'ok' ? status : code, ...(missing && { missing }) };
    },
  };
}

const missing = await unavailable();
const on = (name: string, body: (doors: Doors) => Promise<void>) =>
  missing === undefined ? test(name, () => withDoors(body), LONG) : test.skip(name, missing);

on('a person who may not decide is refused on every way in', async ({ gate, doors, personal, create }) => {
  const { svc, refunds } = gate;
  const tokenOf = async (id: string, ...groups: string[]) =>
    (await svc.people.createToken({ id, groups }, { validForMs: 60_000_000 })).token;
  const { request } = await create('req');
  const nobodies = { 'a stranger': await tokenOf('dee', 'ops'), 'the requester': await tokenOf('REQ', 'finance') };
  const agents = { 'the agent': await tokenOf('payouts', 'finance') };
  const refused = async (door: string, who: string, reply: Promise<Reply>) =>
    assert.equal((await reply).result, 'decision_refused', `${who} at ${door}`);
  for (const [name, door] of Object.entries(doors)) {
    for (const approved of [true, false]) {
      await refused(name, 'nobody', door(request, { approved, reason: 'because' }));
      if (!Object.hasOwn(personal, name)) continue;
      // A command takes longer than all other ways together.
      const isCommand = name === 'the command line';
      if (isCommand && !approved) continue;
      const people = isCommand ? nobodies : { ...nobodies, ...agents };
      for (const [who, token] of Object.entries(people)) {
        await refused(name, who, door(request, { approved, token, reason: 'because' }));
      }
    }
  }
  const { status, votes } = await svc.approvals.get(request.requestId);
  assert.deepEqual({ status, votes, refunds }, { status: 'waiting', votes: [], refunds: [] });
});

on(
  'votes from two ways in are a decision, an edit is another vote, and each reply says what is missing',
  async (fixture) => {
    const { gate, personal, shop, create } = fixture;
    const { svc, refunds } = gate;
    const one = (await svc.people.createToken({ id: 'ann', groups: ['finance'] }, { validForMs: 60_000_000 })).token;
    const other = (await svc.people.createToken({ id: 'cy' }, { validForMs: 60_000_000 })).token;
    const names = Object.keys(personal);
    const waiting = { result: 'waiting', missing: [{ role: 'finance', count: 1 }] };
    for (const [index, name] of names.entries()) {
      const next = names[(index + 1) % names.length]!;
      const { request, outcome } = await create();
      const { requestId } = request;
      const before = refunds.length;
      assert.deepEqual(await personal[name]!(request, { approved: true, token: one }), waiting, name);
      assert.deepEqual(await personal[name]!(request, { approved: true, token: one }), waiting, 'again');
      assert.deepEqual(await personal[next]!(request, { approved: true, token: other, amount: 15 }), waiting, next);
      const { votes = [] } = await svc.approvals.get(requestId);
      assert.deepEqual(
        votes.map((vote) => [vote.by, vote.modifiedParams, vote.void]),
        [
          ['ann', undefined, true],
          ['cy', { amount: 15 }, undefined],
        ],
      );
      const noReason = await personal[name]!(request, { approved: false, token: one });
      assert.equal(noReason.result, 'decision_invalid');
      // Above 10 a rule for two applies: an edit must not lead to another one, and this one has none for less.
      assert.equal(refunds.length, before);
      assert.equal((await personal[next]!(request, { approved: true, token: one, amount: 15 })).result, 'approved');
      assert.equal((await outcome).status, 'completed');
      assert.equal((refunds.at(-1) as { amount: number }).amount, 15);
      const record = await svc.approvals.get(requestId);
      assert.deepEqual(
        record.deciders?.map(({ id, verifiedBy }) => [id, verifiedBy]),
        [
          ['cy', 'token'],
          ['ann', 'token'],
        ],
      );
      assert.equal(record.decidedBy, 'cy, ann');
      assert.deepEqual(
        record.events.filter(({ type }) => type === 'voted' || type === 'approved').map(({ type, by }) => [type, by]),
        [
          ['voted', 'ann'],
          ['voted', 'cy'],
          ['approved', 'ann'],
        ],
      );
    }
    const { request } = await create();
    await personal['svc.agents.signal']!(request, { approved: true, token: one });
    const shown = await shop.svc('approvals', 'show', request.requestId);
    assert.match(shown.stdout, /^vote {7}approve by ann at \S+$/m, shown.stdout);
    assert.match(shown.stdout, /^missing {4}1 of finance$/m);
  },
);

on(
  'an edit does not lead out of the rules: a call without a rule cannot be changed into one with a rule',
  async (fixture) => {
    const { gate, create } = fixture;
    const { svc, refunds } = gate;
    const { request, outcome } = await create('req', 5);
    const { requestId, executionId } = request;
    const approve = (amount: number) =>
      svc.agents.signal({ executionId, signal: 'approve', payload: { requestId, modifiedParams: { amount } } });
    await assert.rejects(approve(900), { code: 'decision_refused' });
    assert.ok(!('rule' in (await svc.approvals.get(requestId))));
    assert.equal((await approve(6)).status, 'approved');
    await outcome;
    assert.deepEqual(
      refunds.map((one) => (one as { amount: number }).amount),
      [6],
    );
  },
);
