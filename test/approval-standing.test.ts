import * as assert from 'node:assert/strict';
import { compileRules } from '../config/load/approval-rules.ts';
import type { DeliveryRoute } from '../core/approval/announce.ts';
import type { DecisionReview } from '../core/approval/policy.ts';
import { toApprovalRecord } from '../core/approval/public-view.ts';
import type { ApprovalRecord } from '../core/approval/request.ts';
import {
  createStandingRule,
  listStandingRules,
  type NewStandingRule,
  revokeStandingRule,
  type StandingRule,
} from '../core/approval/standing-rules.ts';
import { Kernel } from '../core/kernel.ts';
import { MemoryStore } from '../plugins/stores/memory.ts';
import { engines } from './kit/engines.ts';
import { test } from './kit/test.ts';
import {
  type ApprovalProcess,
  approve,
  Bank,
  compileTestTools,
  createGate,
  openApprovalProcess,
  readRow,
  refund,
  startCall,
} from './suites/approval-setup.ts';
import { expectError } from './suites/expect-error.ts';
import { waitUntil } from './suites/wait-until.ts';

// From an approved request, a person lets the next ones run: only such calls, only so many, only until it ends.

const START = Date.parse('2026-11-27T10:00:00Z');
const HOUR = 3_600_000;
const roles = { finance: ['group:finance'], heads: ['group:heads'] };
const person = (id: string, ...groups: string[]) => ({ principal: { id, groups } });
const ann = person('ann', 'finance');
const hal = person('hal', 'heads');
const CALL = { order: '1234', amount: 20 };

function compiled(rule: object = {}) {
  const { rules, problems } = compileRules({
    roles,
    rules: [{ approve: [{ role: 'finance' }], standing: 'heads', ...rule }],
  });
  assert.deepEqual(problems, []);
  return rules;
}

interface Fixture {
  readonly store: MemoryStore;
  readonly app: ApprovalProcess;
  readonly kernel: Kernel;
  readonly bank: Bank;
  readonly gate: ReturnType<typeof createGate>;
  /** The id of a request that was approved. */
  readonly approved: string;
  allow(input?: Partial<NewStandingRule>, options?: object): Promise<StandingRule>;
  /** The status of a call that nobody decides: `waiting` if it waits. */
  call(parameters?: object, options?: { gate?: ReturnType<typeof createGate>; requester?: string }): Promise<string>;
  pass(ms: number): Promise<void>;
}

const standingTest = (name: string, body: (fixture: Fixture) => Promise<void>, rules = compiled()) =>
  test(name, async () => {
    let now = START;
    const store = new MemoryStore(() => now);
    const kernel = new Kernel();
    const app = await openApprovalProcess(store, kernel, rules);
    const bank = new Bank();
    const humanInLoop = { approvalTimeout: 48 * HOUR };
    const gate = createGate(app, compileTestTools(bank.tool()), { humanInLoop });
    try {
      const { request, outcome } = await startCall(gate, refund(CALL));
      await approve(app, request, undefined, ann);
      await outcome;
      bank.paid.length = 0;
      await body({
        store,
        app,
        kernel,
        bank,
        gate,
        approved: request.requestId,
        allow: (input, options = hal) =>
          createStandingRule(
            app.service,
            { requestId: request.requestId, uses: 2, until: new Date(now + HOUR), ...input },
            options,
          ),
        call: async (parameters = CALL, { gate: other = gate, requester } = {}) => {
          const call = refund(parameters, requester === undefined ? {} : { requester });
          const { status } = await other.callOrLeave(call, { waitMs: 0 });
          return status;
        },
        async pass(ms) {
          now += ms;
          await app.service.clock.readNow();
        },
      });
    } finally {
      await app.service.close();
    }
  });

const listed = async ({ service }: ApprovalProcess) => {
  const found: StandingRule[] = [];
  for await (const one of listStandingRules(service)) found.push(one);
  return found;
};

standingTest(
  'the next calls run, as often as it says, and their records say why',
  async ({ app, bank, call, allow, gate, kernel }) => {
    assert.equal(await call(), 'waiting');
    const decided: ApprovalRecord[] = [];
    kernel.hooks.approvalDecided.tap('test', (record) => void decided.push(record));
    const { standingId, ...rule } = await allow();
    assert.deepEqual([rule.uses, rule.used, rule.by, rule.tool, rule.agentTag], [2, 0, 'hal', 'refund', 'payouts']);
    assert.deepEqual(rule.parameters, { ...CALL, currency: 'EUR' });
    assert.equal(await call(), 'completed');
    const outcome = await gate.call(refund(CALL));
    assert.equal(outcome.status, 'completed');
    assert.equal(bank.paid.length, 2);
    const record = toApprovalRecord((await readRow(app, { requestId: outcome.requestId ?? '' })).record);
    assert.deepEqual([record.status, record.standing, record.decidedBy], ['approved', standingId, 'hal']);
    assert.deepEqual(record.deciders, [{ id: 'hal', groups: ['heads'], verifiedBy: 'signal' }]);
    const [, event] = record.events;
    assert.deepEqual([event?.type, event?.as, event?.by], ['approved', 'standing', 'hal']);
    assert.deepEqual(
      decided.map(({ standing }) => standing),
      [standingId, standingId],
    );
    assert.equal(await call(), 'waiting');
    assert.deepEqual(
      (await listed(app)).map(({ used }) => used),
      [2],
    );
  },
);

standingTest('only a call like the approved one runs', async ({ app, bank, call, allow }) => {
  await allow({ uses: 100 });
  for (const other of [
    { order: '1235', amount: 20 },
    { order: '1234', amount: 19 },
    { order: '1234', amount: 21 },
    { order: '1234', amount: 20, currency: 'USD' },
  ])
    assert.equal(await call(other), 'waiting', JSON.stringify(other));
  const humanInLoop = { approvalTimeout: 48 * HOUR };
  const gateWith = (definition: object, agentTag = 'payouts') =>
    createGate(app, compileTestTools(bank.tool(definition)), { humanInLoop, agentTag });
  assert.equal(await call(CALL, { gate: gateWith({}, 'another') }), 'waiting');
  assert.equal(await call(CALL, { gate: gateWith({ description: 'Does something else.' }) }), 'waiting');
  // Who allowed it cannot have made the call.
  assert.equal(await call(CALL, { requester: 'HAL' }), 'waiting');
  assert.deepEqual(bank.paid, []);
  assert.equal(await call({ ...CALL, currency: 'EUR' }), 'completed');
});

standingTest('a number may be lower where it says so, and never below zero', async ({ app, bank, call, allow }) => {
  const humanInLoop = { approvalTimeout: 48 * HOUR };
  // A tool that itself has no lowest amount.
  const parameters = { order: { type: 'string' }, amount: { type: 'number' } } as const;
  const gate = createGate(app, compileTestTools(bank.tool({ parameters })), { humanInLoop });
  const { request, outcome } = await startCall(gate, refund(CALL));
  await approve(app, request, undefined, ann);
  await outcome;
  await allow({ requestId: request.requestId, uses: 100, atMost: { amount: 15 } });
  for (const [amount, status] of [
    [16, 'waiting'],
    [20, 'waiting'],
    [-1, 'waiting'],
    [15, 'completed'],
    [0, 'completed'],
    [14.5, 'completed'],
  ] as const)
    assert.equal(await call({ order: '1234', amount }, { gate }), status, String(amount));
  assert.equal(bank.paid.length, 4);
});

standingTest('it ends by itself and when it is revoked', async ({ app, call, allow, pass }) => {
  const first = await allow({ uses: 100 });
  await pass(HOUR);
  assert.equal(await call(), 'waiting');
  const { standingId } = await allow({ uses: 100 });
  assert.equal(await call(), 'completed');
  const revoked = await revokeStandingRule(app.service, standingId);
  assert.equal(revoked.used, 1);
  assert.equal(await call(), 'waiting');
  assert.deepEqual(await revokeStandingRule(app.service, standingId), revoked);
  assert.deepEqual(new Set((await listed(app)).map((one) => one.standingId)), new Set([first.standingId, standingId]));
  await expectError(revokeStandingRule(app.service, 'std_1'), 'standing_unknown');
});

standingTest('another version of the rule needs decisions again', async ({ store, bank, allow, call }) => {
  await allow({ uses: 100 });
  const changed = await openApprovalProcess(store, undefined, compiled({ deny: 2 }));
  const gate = createGate(changed, compileTestTools(bank.tool()));
  assert.equal(await call(CALL, { gate }), 'waiting');
  await changed.service.close();
});

standingTest('who may not allow it, and what cannot be allowed, is refused', async ({ app, gate, allow }) => {
  const until = (ms: number) => ({ until: new Date(START + ms) });
  for (const [code, why, input, options] of [
    ['decision_refused', /lets only heads allow later calls/, {}, ann],
    ['decision_refused', /An agent cannot allow later calls/, {}, person('agent:x', 'heads')],
    ['decision_refused', /verified/, {}, {}],
    ['token_invalid', /not a token of this store/, {}, { token: 'svcp_x' }],
    ['approval_unknown', /./, { requestId: 'apr_1' }, hal],
    ['value_invalid', /uses is not a whole number/, { uses: 0 }, hal],
    ['value_invalid', /uses is not a whole number/, { uses: 1.5 }, hal],
    ['value_invalid', /uses is not a whole number/, { uses: 10_001 }, hal],
    ['value_invalid', /in the future/, until(0), hal],
    ['value_invalid', /within a year/, until(400 * 24 * HOUR), hal],
    ['value_invalid', /until is not a date/, until(Number.NaN), hal],
    ['value_invalid', /atMost\.amount is not a number from 0 to 20/, { atMost: { amount: 20.5 } }, hal],
    ['value_invalid', /atMost\.amount is not a number from 0 to 20/, { atMost: { amount: -1 } }, hal],
    ['value_invalid', /atMost\.order is not a number in the request/, { atMost: { order: 1 } }, hal],
    ['value_invalid', /atMost\.tip is not a number in the request/, { atMost: { tip: 1 } }, hal],
  ] as const) {
    const error = await expectError(allow(input, options), code);
    assert.match(String(error.why ?? error.message), why);
  }
  const { request } = await startCall(gate, refund({ order: '9', amount: 1 }));
  const waiting = await expectError(allow({ requestId: request.requestId }), 'decision_invalid');
  assert.match(String(waiting.why), /The request is waiting, and was not approved/);
  const byRequester = await startCall(gate, refund({ order: '9', amount: 2 }, { requester: 'hal' }));
  await approve(app, byRequester.request, undefined, ann);
  const own = await expectError(allow({ requestId: byRequester.request.requestId }), 'decision_refused');
  assert.match(String(own.why), /made the request/);
  assert.deepEqual(await listed(app), []);
});

standingTest('what was changed with the approval is what is allowed', async ({ app, gate, allow, call }) => {
  const { request, outcome } = await startCall(gate, refund({ order: '7', amount: 50 }));
  await approve(app, request, { amount: 5 }, ann);
  await outcome;
  await allow({ requestId: request.requestId });
  assert.equal(await call({ order: '7', amount: 50 }), 'waiting');
  assert.equal(await call({ order: '7', amount: 5 }), 'completed');
});

standingTest(
  'beforeDecision can refuse a use: then the call waits, and none is counted',
  async ({ app, kernel, call, allow }) => {
    const seen: DecisionReview['decision'][] = [];
    let mood: 'refuse' | 'throw' | 'allow' = 'refuse';
    kernel.hooks.beforeDecision.tap('test', (review) => {
      seen.push(review.decision);
      if (mood === 'throw') throw new Error('no ink');
      if (mood === 'refuse') review.refuse('Not today.');
    });
    const { standingId } = await allow();
    assert.equal(await call(), 'waiting');
    mood = 'throw';
    assert.equal(await call(), 'waiting');
    mood = 'allow';
    assert.equal(await call(), 'completed');
    assert.deepEqual(
      seen.map(({ standing, approved }) => [standing, approved]),
      Array(3).fill([standingId, true]),
    );
    assert.deepEqual(
      (await listed(app)).map(({ used }) => used),
      [1],
    );
  },
);

standingTest('a policy that denies the call is stronger', async ({ bank, kernel, call, allow }) => {
  await allow();
  kernel.hooks.beforeToolCall.tap('test', (review) => review.deny('The bank is closed.'));
  assert.equal(await call(), 'denied');
  assert.deepEqual(bank.paid, []);
});

standingTest('channels are not asked, and are shown the decision', async ({ app, bank, allow }) => {
  await allow();
  const seen: string[] = [];
  const route: DeliveryRoute = {
    channel: 'chat',
    deliver: async () => void seen.push('asked'),
    onDecided: async ({ status, standing }) => void seen.push(`${status} ${standing === undefined ? '' : 'standing'}`),
  };
  const gate = createGate(app, compileTestTools(bank.tool()), { routes: [route] });
  assert.equal((await gate.call(refund(CALL))).status, 'completed');
  await waitUntil(() => seen.length > 0, 'nothing was reported');
  assert.deepEqual(seen, ['approved standing']);
});

standingTest(
  'a rule without standing has none',
  async ({ allow }) => {
    const { why } = await expectError(allow(), 'decision_refused');
    assert.match(String(why), /has no standing rules/);
  },
  compiled({ standing: undefined }),
);

test('a call with sensitive parameters never has a standing rule', async () => {
  const app = await openApprovalProcess(new MemoryStore(), undefined, compiled());
  const secret = {
    order: { type: 'string', sensitive: true, required: true },
    amount: { type: 'number', required: true },
  };
  const gate = createGate(app, compileTestTools(new Bank().tool({ parameters: secret as never })));
  try {
    const { request, outcome } = await startCall(gate, refund(CALL));
    const reviewToken = (await readRow(app, request)).record.body.digest;
    await approve(app, request, undefined, { ...ann, reviewToken });
    await outcome;
    const input = { requestId: request.requestId, uses: 1, until: new Date(Date.now() + HOUR) };
    const { why } = await expectError(createStandingRule(app.service, input, hal), 'decision_refused');
    assert.match(String(why), /sensitive/);
  } finally {
    await app.service.close();
  }
});

const engine = engines.find(({ name }) => name === 'postgresql')!;
const RACED = 'PostgreSQL: five connections make forty calls at once: exactly as many run as it allows';
if (engine.missing !== undefined) test.skip(RACED, engine.missing);
else
  test(RACED, () =>
    engine.withUrl(async (_url, connect) => {
      const apps: ApprovalProcess[] = [];
      for (let count = 0; count < 5; count += 1)
        apps.push(await openApprovalProcess((await connect()).connection, undefined, compiled()));
      const bank = new Bank();
      const gates = apps.map((app) => createGate(app, compileTestTools(bank.tool())));
      const [first] = apps as [ApprovalProcess];
      try {
        const { request, outcome } = await startCall(gates[0]!, refund(CALL));
        await approve(first, request, undefined, ann);
        await outcome;
        bank.paid.length = 0;
        const until = new Date((await first.service.clock.readNow()) + HOUR);
        await createStandingRule(first.service, { requestId: request.requestId, uses: 7, until }, hal);
        const statuses = await Promise.all(
          Array.from(
            { length: 40 },
            async (_, index) => (await gates[index % 5]!.callOrLeave(refund(CALL), { waitMs: 0 })).status,
          ),
        );
        const count = (status: string) => statuses.filter((one) => one === status).length;
        assert.deepEqual([count('completed'), count('waiting')], [7, 33]);
        assert.equal(bank.paid.length, 7);
        assert.deepEqual(
          (await listed(first)).map(({ used, uses }) => [used, uses]),
          [[7, 7]],
        );
      } finally {
        await Promise.all(apps.map((app) => app.service.close()));
      }
    }),
  );
