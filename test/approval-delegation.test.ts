import * as assert from 'node:assert/strict';
import { compileRules } from '../config/load/approval-rules.ts';
import type { Delegation, NewDelegation } from '../core/approval/delegations.ts';
import type { DecisionReview } from '../core/approval/policy.ts';
import { toApprovalRecord } from '../core/approval/public-view.ts';
import { Kernel } from '../core/kernel.ts';
import { MemoryStore } from '../plugins/stores/memory.ts';
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
  reject,
  startCall,
} from './suites/approval-setup.ts';
import { expectError } from './suites/expect-error.ts';

// A person votes in the place of another: once for both of them, until it ends, and never for who made the request.

const START = Date.parse('2026-11-27T10:00:00Z');
const HOUR = 3_600_000;
const person = (id: string, ...groups: string[]) => ({ principal: { id, groups } });
const bo = person('bo@acme.example');

async function all({ delegations }: ApprovalProcess['service']): Promise<Delegation[]> {
  const found: Delegation[] = [];
  for await (const one of delegations.list()) found.push(one);
  return found;
}

interface Fixture {
  readonly app: ApprovalProcess;
  readonly bank: Bank;
  readonly seen: DecisionReview['decision'][];
  start(requester?: string): ReturnType<typeof startCall>;
  delegate(
    from: string,
    options?: Partial<NewDelegation>,
  ): ReturnType<ApprovalProcess['service']['delegations']['create']>;
  pass(ms: number): Promise<void>;
}

const delegationTest = (name: string, count: number, body: (fixture: Fixture) => Promise<void>) =>
  test(name, async () => {
    let now = START;
    const { rules, problems } = compileRules({
      roles: { finance: ['group:finance', 'user:cy@acme.example'], heads: ['group:heads'] },
      rules: [{ approve: [{ role: 'finance', count }], deny: 2, not: ['user:dee@acme.example'], override: 'heads' }],
    });
    assert.deepEqual(problems, []);
    const kernel = new Kernel();
    const seen: DecisionReview['decision'][] = [];
    kernel.hooks.beforeDecision.tap('test', ({ decision }) => void seen.push(decision));
    const app = await openApprovalProcess(new MemoryStore(() => now), kernel, rules);
    const bank = new Bank();
    const gate = createGate(app, compileTestTools(bank.tool()), { humanInLoop: { approvalTimeout: 24 * HOUR } });
    try {
      await body({
        app,
        bank,
        seen,
        start: (requester) => startCall(gate, refund(undefined, requester === undefined ? {} : { requester })),
        delegate: (from, options) =>
          app.service.delegations.create({
            from: { id: from, groups: ['finance', 'heads'] },
            to: 'bo@acme.example',
            until: new Date(now + HOUR),
            ...options,
          }),
        async pass(ms) {
          now += ms;
          await app.service.clock.readNow();
        },
      });
    } finally {
      await app.service.close();
    }
  });

delegationTest(
  'a vote in the place of another counts as theirs, and says so',
  2,
  async ({ app, bank, start, delegate, seen }) => {
    const { request, outcome } = await start();
    await expectError(approve(app, request, undefined, bo), 'decision_refused');
    await delegate('ann@acme.example');
    const voted = await approve(app, request, undefined, bo);
    assert.deepEqual([voted.status, voted.missing], ['waiting', [{ role: 'finance', count: 1 }]]);
    assert.deepEqual(seen.at(-1)?.principal.for, { id: 'ann@acme.example', groups: ['finance', 'heads'] });
    // The vote of one person counts once.
    await delegate('ann@acme.example', { to: 'eve@acme.example' });
    const twice = await expectError(approve(app, request, undefined, person('eve@acme.example')), 'decision_refused');
    assert.equal(twice.why, 'Nobody counts twice: bo@acme.example for ann@acme.example has voted.');
    // So does the person who gives it.
    await delegate('fay@acme.example');
    assert.equal((await approve(app, request, undefined, bo)).status, 'waiting');
    assert.equal((await approve(app, request, undefined, person('cy@acme.example'))).status, 'approved');
    assert.equal((await outcome).status, 'completed');
    assert.equal(bank.paid.length, 1);
    const record = toApprovalRecord((await readRow(app, request)).record);
    assert.equal(record.decidedBy, 'bo@acme.example for ann@acme.example, cy@acme.example');
    const [first] = record.deciders ?? [];
    assert.deepEqual(first, {
      id: 'bo@acme.example',
      groups: [],
      verifiedBy: 'signal',
      for: { id: 'ann@acme.example', groups: ['finance', 'heads'] },
    });
    const [, event] = record.events;
    assert.deepEqual(
      [event?.by, event?.principal?.for?.id],
      ['bo@acme.example for ann@acme.example', 'ann@acme.example'],
    );
  },
);

delegationTest('who votes in person replaces the vote in their place', 2, async ({ app, start, delegate }) => {
  const { request } = await start();
  await delegate('ann@acme.example');
  await approve(app, request, undefined, bo);
  const own = await approve(app, request, undefined, person('ANN@acme.example', 'finance'));
  assert.deepEqual(
    own.votes?.map(({ by }) => by),
    ['ANN@acme.example'],
  );
  assert.deepEqual(own.missing, [{ role: 'finance', count: 1 }]);
  await expectError(approve(app, request, undefined, bo), 'decision_refused');
});

delegationTest('with several delegators, the vote is for one who has none yet', 2, async ({ app, start, delegate }) => {
  const { request } = await start();
  await delegate('ann@acme.example');
  await delegate('ann@acme.example', { to: 'eve@acme.example' });
  await delegate('fay@acme.example');
  await approve(app, request, undefined, person('eve@acme.example'));
  const { status, votes } = await approve(app, request, undefined, bo);
  assert.equal(status, 'approved');
  assert.deepEqual(
    votes?.map(({ by }) => by),
    ['eve@acme.example for ann@acme.example', 'bo@acme.example for fay@acme.example'],
  );
});

delegationTest(
  'delegations that cross make two people of two, not three',
  2,
  async ({ app, bank, start, delegate }) => {
    const { request } = await start();
    // Ann has lost her group since.
    await delegate('ann@acme.example');
    await delegate('fay@acme.example', { to: 'ann@acme.example' });
    assert.equal((await approve(app, request, undefined, bo)).status, 'waiting');
    const { why } = await expectError(approve(app, request, undefined, person('Ann@acme.example')), 'decision_refused');
    assert.equal(why, 'Nobody counts twice: bo@acme.example for ann@acme.example has voted.');
    assert.deepEqual(bank.paid, []);

    const other = await start();
    assert.equal((await approve(app, other.request, undefined, person('ann@acme.example'))).status, 'waiting');
    await expectError(approve(app, other.request, undefined, bo), 'decision_refused');
    // Whatever is stored.
    const row = await readRow(app, other.request);
    const [vote] = row.record.body.votes ?? [];
    assert.ok(vote);
    const crossed = {
      ...vote,
      principal: { ...vote.principal, id: 'bo@acme.example', for: { id: 'ann@acme.example', groups: ['finance'] } },
    };
    const body = { ...row.record.body, votes: [vote, crossed] };
    assert.deepEqual(toApprovalRecord({ ...row.record, body }).missing, [{ role: 'finance', count: 1 }]);
  },
);

delegationTest(
  'a delegation or a token that ends while a hook decides gives no vote',
  1,
  async ({ app, bank, start, delegate, pass }) => {
    const { request } = await start();
    const { service } = app;
    let slowly: () => Promise<unknown> = async () => undefined;
    service.hooks.beforeDecision.tapPromise('slow', async () => void (await slowly()));
    await delegate('ann@acme.example');
    slowly = () => pass(HOUR);
    await expectError(approve(app, request, undefined, bo), 'decision_refused');

    const { delegationId } = await delegate('ann@acme.example');
    slowly = () => service.delegations.revoke(delegationId);
    await expectError(approve(app, request, undefined, bo), 'decision_refused');

    const owner = { id: 'fay@acme.example', groups: ['finance'] };
    const { token, tokenId } = await service.personTokens.create(owner, { validForMs: HOUR });
    slowly = () => service.personTokens.revoke(tokenId);
    await expectError(approve(app, request, undefined, { token }), 'token_invalid');
    assert.deepEqual(bank.paid, []);
    assert.equal((await readRow(app, request)).record.body.votes, undefined);
  },
);

delegationTest('a rejection in the place of another counts once', 1, async ({ app, start, delegate }) => {
  const { request } = await start();
  await delegate('ann@acme.example');
  assert.equal((await reject(app, request, 'no', bo)).status, 'waiting');
  assert.equal((await reject(app, request, 'no', bo)).status, 'waiting');
  await expectError(reject(app, request, 'no', person('eve@acme.example')), 'decision_refused');
  assert.equal((await reject(app, request, 'no', person('cy@acme.example'))).status, 'rejected');
});

delegationTest(
  'it never reaches the request of either of them, an excluded person, an agent or an override',
  1,
  async ({ app, bank, start, delegate }) => {
    await delegate('ann@acme.example');
    for (const requester of ['bo@acme.example', 'BO@acme.example', 'ann@acme.example']) {
      const { request } = await start(requester);
      const { why } = await expectError(approve(app, request, undefined, bo), 'decision_refused');
      assert.match(String(why), requester === 'ann@acme.example' ? /lets only finance decide/ : /made the request/);
    }
    const { request } = await start();
    for (const to of ['dee@acme.example', 'payouts']) {
      await delegate('ann@acme.example', { to });
      await expectError(approve(app, request, undefined, person(to)), 'decision_refused');
    }
    await delegate('dee@acme.example', { to: 'eve@acme.example' });
    await expectError(approve(app, request, undefined, person('eve@acme.example')), 'decision_refused');
    await expectError(approve(app, request, undefined, { ...bo, override: true }, 'urgent'), 'decision_refused');
    // What somebody only claims proves nothing.
    await expectError(approve(app, request, undefined, { actor: 'bo@acme.example' }), 'decision_refused');
    // Delegated authority is not passed on.
    await delegate('bo@acme.example', { from: { id: 'bo@acme.example' }, to: 'gil@acme.example' });
    await expectError(approve(app, request, undefined, person('gil@acme.example')), 'decision_refused');
    assert.deepEqual(bank.paid, []);
  },
);

delegationTest(
  'it ends by itself, when it is revoked, and with the token that made it',
  1,
  async ({ app, start, delegate, pass }) => {
    const { service } = app;
    const { request } = await start();
    const refused = () => expectError(approve(app, request, undefined, bo), 'decision_refused');
    await delegate('ann@acme.example');
    await pass(HOUR);
    await refused();

    const revoked = await delegate('ann@acme.example');
    await service.delegations.revoke(revoked.delegationId);
    await refused();

    const owner = { id: 'ann@acme.example', groups: ['finance'] };
    const withToken = async (validForMs: number) => {
      const { token, tokenId } = await service.personTokens.create(owner, { validForMs });
      await delegate('', { from: undefined, token });
      return tokenId;
    };
    await service.personTokens.revoke(await withToken(HOUR));
    await refused();
    await withToken(HOUR / 2);
    await pass(HOUR / 2);
    await refused();
    await withToken(HOUR);
    assert.equal((await approve(app, request, undefined, bo)).status, 'approved');

    // What is listed ends with the token, too.
    const listed = await all(service);
    assert.equal(listed.length, 5);
    const byToken = listed.at(1);
    assert.deepEqual(
      listed.filter(({ revokedAt }) => revokedAt !== undefined),
      [byToken, { ...revoked, revokedAt: new Date(START + HOUR).toISOString() }],
    );
    const half = listed.at(2);
    assert.ok(half);
    assert.equal(Date.parse(half.until) - Date.parse(half.createdAt), HOUR / 2);
  },
);

delegationTest('what cannot be delegated is refused, and nothing is stored', 1, async ({ app, delegate }) => {
  for (const [from, options, why] of [
    ['bo@acme.example', {}, /to themselves/],
    ['ann', { to: 'Ann' }, /to themselves/],
    ['ann', { to: 'Agent:payouts' }, /An agent cannot decide/],
    ['ann', { to: ' bo' }, /to is not a printable text/],
    ['', {}, /from\.id is not a printable text/],
    ['ann', { token: 'svcp_' }, /from is required, or token/],
    ['ann', { until: new Date(START) }, /until is not in the future/],
    ['ann', { until: new Date(START + 400 * 24 * HOUR) }, /until is not within a year/],
    ['ann', { until: new Date(Number.NaN) }, /until is not a date/],
    ['ann', { group: 'finance' } as object, /group is not a known property/],
    ['ann', { from: null } as object, /from is null, expected an object/],
  ] as const) {
    const error = await expectError(delegate(from, options), 'value_invalid');
    assert.match(String(error.why), why);
  }
  for (const nothing of [undefined, null, 'bo']) {
    await expectError(app.service.delegations.create(nothing as never), 'value_invalid');
  }
  await expectError(delegate('', { from: undefined, token: `svcp_${'a'.repeat(61)}` }), 'token_invalid');
  await expectError(app.service.delegations.revoke('dlg_1'), 'delegation_unknown');
  assert.deepEqual(await all(app.service), []);
});
