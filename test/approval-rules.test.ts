import * as assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { compileRules } from '../config/load/approval-rules.ts';
import { assertConfig } from '../config/load/validate.ts';
import { hasQuorum } from '../core/approval/apply-decision.ts';
import { toApprovalRecord } from '../core/approval/public-view.ts';
import { rulesForCall } from '../core/approval/rule.ts';
import { withDecision } from '../core/approval/state.ts';
import { isSvcError, type SvcError } from '../core/errors.ts';
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
import { withGate } from './suites/gate-client.ts';

// Which rules a configuration may have, which one applies to a call, and what becomes of its request.

const roles = { finance: ['group:finance'], pair: ['user:ann', 'user:bo'], ops: ['user:bo', 'user:cy'] } as const;
const person = (id: string, ...groups: string[]) => ({ principal: { id, groups } });
const [ann, bo, cy] = [person('ann', 'finance'), person('bo', 'finance'), person('cy', 'finance')] as const;

function compiled(...rules: Parameters<typeof compileRules>[0]['rules'] & object) {
  const { rules: found, problems } = compileRules({ roles, rules });
  assert.deepEqual(problems, []);
  return found;
}

const approvalsOf = async (app: ApprovalProcess, requestId: string) =>
  toApprovalRecord((await readRow(app, { requestId })).record);

async function withRules(
  rules: ReturnType<typeof compiled>,
  body: (fixture: {
    app: Awaited<ReturnType<typeof openApprovalProcess>>;
    bank: Bank;
    store: MemoryStore;
    gate: ReturnType<typeof createGate>;
  }) => Promise<void>,
): Promise<void> {
  const store = new MemoryStore();
  const app = await openApprovalProcess(store, undefined, rules);
  const bank = new Bank();
  try {
    await body({ app, bank, store, gate: createGate(app, compileTestTools(bank.tool())) });
  } finally {
    await app.service.close();
  }
}

test('a rule only for migrations is rejected where an environment says who approves them', () => {
  const problemsOf = (match: object | undefined, env = 'prd') => {
    const all = { dba: ['group:dba'], sales: ['group:sales'] };
    const rule = { ...(match && { match }), approve: [{ role: 'sales' }], expires: '4h', remind: '1h' };
    const approvals = {
      store: { database: 'main' },
      roles: all,
      rules: [{ match: { tool: 'pay' }, approve: rule.approve }, rule],
    };
    const error = thrownBy(() =>
      assertConfig({
        databases: { main: { dialect: 'postgresql', url: 'postgresql://none' } },
        environments: { [env]: { approval: { role: 'dba' } } },
        approvals,
      }),
    );
    return error?.details.problems;
  };
  for (const match of [{ tool: 'svc_db_migrate' }, { tool: 'svc_db_migrate', agent: 'svc' }])
    assert.deepEqual(problemsOf(match), [
      'approvals.rules[1]: never applies, because environments.prd.approval says who approves migrations.',
    ]);
  for (const match of [undefined, { tool: ['svc_db_migrate', 'refund'] }, { agent: 'svc' }])
    assert.equal(problemsOf(match), undefined);
});

function thrownBy(call: () => unknown): SvcError | undefined {
  try {
    call();
    return undefined;
  } catch (error) {
    return error as SvcError;
  }
}

test('a configuration with a rule that is misspelt or that nobody can satisfy is rejected', () => {
  const problemsOf = (rule: object, all: object = roles) => {
    try {
      assertConfig({ approvals: { roles: all, rules: [rule] } });
    } catch (error) {
      return (error as { details: { problems: string[] } }).details.problems.join(' ');
    }
    return 'none';
  };
  const two = [{ role: 'pair', count: 2 }];
  for (const [rule, why] of [
    [{ approve: [{ role: 'finance', count: 2 }] }, /^none$/],
    [{ approve: two }, /^none$/],
    [{}, /rules\[0\]\.approve: is missing/],
    [{ approve: [] }, /approve: is empty/],
    [
      { approve: [{ role: 'pair' }], remind: '10m', escalate: [{ after: '30m', to: 'finance' }], expires: '4h' },
      /^none$/,
    ],
    [{ approve: [{ role: 'pair' }], remind: ['10m', '1 hour'] }, /remind\[1\]: is not a duration/],
    [{ approve: [{ role: 'pair' }], remind: '4h', expires: '4h' }, /remind\[0\]: is not before the request expires/],
    [{ approve: [{ role: 'pair' }], escalate: [{ after: '30m' }] }, /escalate\[0\]\.to: is missing/],
    [
      { approve: [{ role: 'pair' }], escalate: [{ after: '30m', to: 'opps' }] },
      /to: is not a role; did you mean "ops"/,
    ],
    [{ approve: [{ role: 'pair' }], escalate: [{ after: '30m', to: 'pair' }] }, /to: adds nobody/],
    [{ approve: [{ role: 'pair' }], remind: Array(21).fill('1m') }, /remind: has more than 20/],
    // Satisfied by those who are added, if they come before the deadline.
    [{ approve: [{ role: 'pair', count: 3 }], escalate: [{ after: '1h', to: 'ops' }], expires: '4h' }, /^none$/],
    [{ approve: [{ role: 'pair' }], remind: '10m' }, /remind: needs expires/],
    [{ approve: [{ role: 'pair' }], escalate: [{ after: '1h', to: 'ops' }] }, /escalate: needs expires/],
    [
      {
        approve: [{ role: 'pair' }],
        escalate: [
          { after: '1h', to: 'ops' },
          { after: '2h', to: 'ops' },
        ],
        expires: '4h',
      },
      /escalate\[1\]\.to: occurs twice/,
    ],
    [
      { approve: [{ role: 'pair', count: 3 }], escalate: [{ after: '1h', to: 'ops' }], expires: '30m' },
      /after: is not before the request expires/,
    ],
    [{ approve: [{ role: 'finanec' }] }, /approve\[0\]\.role: is not a role; did you mean "finance"/],
    [{ approve: [{ role: 'finance', count: 0 }] }, /count: is not a whole number/],
    [{ approve: [{ role: 'pair' }, { role: 'pair' }] }, /occurs twice/],
    [{ approve: [{ role: 'pair', count: 3 }] }, /can never be satisfied\. No person is left for 1 of pair/],
    // Bo is the only one who could be both.
    [
      {
        approve: [
          { role: 'pair', count: 2 },
          { role: 'ops', count: 2 },
        ],
      },
      /can never be satisfied/,
    ],
    [
      {
        approve: [
          { role: 'pair', count: 2 },
          { role: 'ops', count: 1 },
        ],
      },
      /^none$/,
    ],
    [{ approve: two, not: ['user:ANN'] }, /can never be satisfied/],
    [{ approve: two, unverified: true, not: ['user:ann'] }, /^none$/],
    [{ approve: [{ role: 'finance' }], not: ['group:FINANCE'] }, /role: has only people that `not` excludes/],
    [{ approve: two, override: 'finance', not: ['group:Finance'] }, /override: has only people that `not` excludes/],
    [{ approve: two, standing: 'finance', not: ['group:finance'] }, /standing: has only people that `not` excludes/],
    [
      { approve: two, escalate: [{ after: '1h', to: 'finance' }], expires: '4h', not: ['group:finance'] },
      /to: has only people that `not` excludes/,
    ],
    [{ approve: two, deny: 3 }, /can never be satisfied\. 3 people must reject/],
    [{ approve: two, not: ['ann'] }, /not\[0\]: is not user:<id> or group:<name> or requester/],
    [{ approve: two, reason: 'sometimes' }, /reason/],
    [{ approve: two, expires: '4 hours' }, /expires: is not a duration/],
    [{ approve: two, expires: '0s' }, /expires: is not a duration/],
    [{ approve: two, match: { tools: 'refund' } }, /match\.tools.*did you mean "tool"/],
    [{ approve: two, match: { tool: [] } }, /match\.tool: is empty/],
    [{ approve: two, match: { where: {} } }, /where: is empty/],
    [{ approve: two, match: { where: { amount: { above: 5 } } } }, /above/],
    [{ approve: two, match: { where: { amount: { gt: '5' } } } }, /gt/],
    [{ approve: two, match: { where: { amount: { gt: Number.NaN } } } }, /not a finite number/],
    [{ approve: two, match: { where: { amount: {} } } }, /compares with nothing/],
    [{ approve: two, match: { where: { amount: { in: [] } } } }, /in: is empty/],
    [{ approve: two, match: { where: { amount: { gt: 5, lt: 5 } } } }, /amount: is true of no value/],
    [{ approve: two, match: { where: { amount: { gte: 5, lte: 5 } } } }, /^none$/],
    [{ approve: two, match: { where: { amount: { exists: false, gt: 5 } } } }, /amount: is true of no value/],
    [{ approve: two, match: { where: { amount: { eq: 'all', in: ['some'] } } } }, /amount: is true of no value/],
  ] as const) {
    assert.match(problemsOf(rule), why);
  }
  const mixed = { approve: [{ role: 'mixed', count: 2 }], not: ['group:FINANCE'] };
  assert.match(problemsOf(mixed, { mixed: ['group:finance', 'user:ann'] }), /can never be satisfied/);
  for (const member of ['ann', 'user:', 'user: ann', 'user:ann ', 'group:a\u200bb', `user:${'a'.repeat(321)}`]) {
    const found = problemsOf({ approve: two }, { pair: ['user:ann', 'user:bo', member] });
    assert.match(found, /roles\.pair\[2\]: is not user:<id> or group:<name>/, member);
  }
  assert.match(problemsOf({ approve: two }, { pair: [] }), /roles\.pair: has no members/);
});

test('a rule after one that matches every call of it is rejected', () => {
  const approve = [{ role: 'finance' }];
  const problemsOf = (...matches: (object | undefined)[]) =>
    compileRules({ roles, rules: matches.map((match) => ({ approve, ...(match && { match }) })) }).problems.map(
      ({ path, text }) => `${path.join('.')} ${text}`,
    );
  const never = (at: number, before: number) => [
    `rules.${at} never applies: rules[${before}] matches every call that it matches`,
  ];
  assert.deepEqual(problemsOf(undefined, { tool: 'refund' }), never(1, 0));
  assert.deepEqual(problemsOf({ tool: 'refund' }, undefined, { agent: 'payouts' }), never(2, 1));
  assert.deepEqual(problemsOf({ tool: ['refund', 'wire'] }, { tool: 'wire', agent: 'payouts' }), never(1, 0));
  assert.deepEqual(problemsOf({ tool: 'wire' }, { tool: ['refund', 'wire'] }, { agent: 'payouts' }), []);
  assert.deepEqual(problemsOf({ tool: 'refund', where: { amount: { gt: 5 } } }, { tool: 'refund' }), []);
  // The rule for more money comes after the one for less, and never applies.
  const where = (condition: object) => ({ tool: 'refund', where: { amount: condition } });
  assert.deepEqual(problemsOf(where({ gt: 100 }), where({ gt: 1_000 })), never(1, 0));
  assert.deepEqual(problemsOf(where({ gt: 1_000 }), where({ gt: 100 })), []);
});

test('two spellings of an id are one person, and an excluded one comes back with none', () =>
  withRules(compiled({ approve: [{ role: 'finance', count: 2 }], not: ['user:Groß'] }), async ({ app, gate }) => {
    const { request } = await startCall(gate, refund(undefined, { requester: 'Νίκος' }));
    const vote = (id: string) => approve(app, request, undefined, person(id, 'finance'));
    for (const [one, other] of [
      ['straße', 'STRASSE'],
      ['ΝΙΚΗΣ', 'νικησ'],
      ['ﬁn', 'FIN'],
    ] as const) {
      assert.equal((await vote(one)).status, 'waiting', one);
      assert.equal((await vote(other)).status, 'waiting', other);
      assert.deepEqual((await vote(other)).missing, [{ role: 'finance', count: 1 }]);
      // The next pair begins without votes.
      const row = await readRow(app, request);
      const { votes: _, ...body } = row.record.body;
      await app.service.write(row, { ...row.record, body });
    }
    for (const id of ['GROSS', 'gross', 'νίκοσ', 'ΝΊΚΟΣ']) await expectError(vote(id), 'decision_refused');
  }));

test('the first rule that matches applies: by tool, agent and typed comparisons', async () => {
  const rules = compiled(
    { match: { tool: 'wire' }, approve: [{ role: 'ops' }], reason: 'always' },
    { match: { tool: ['refund'], agent: 'other' }, approve: [{ role: 'ops' }] },
    {
      match: { tool: 'refund', where: { amount: { gte: 100, lt: 500 }, currency: 'EUR' } },
      approve: [{ role: 'pair' }],
    },
    { match: { where: { amount: { in: [7, 8] } } }, approve: [{ role: 'ops', count: 2 }] },
    {
      match: { tool: 'refund', where: { amount: { gte: 500 } } },
      approve: [{ role: 'finance', count: 2 }],
      expires: '4h',
    },
  );
  await withRules(rules, async ({ app, gate }) => {
    const ruleFor = async (amount: number, currency = 'EUR') => {
      const { request } = await startCall(gate, refund({ order: '1', amount, currency }));
      const { record } = await readRow(app, request);
      const { rules, timeoutMs } = record.body;
      const found = rules?.at === undefined ? undefined : rules.list[rules.at];
      return [found?.approve.map(({ role, count }) => `${count} ${role}`).join(), timeoutMs];
    };
    assert.deepEqual(await ruleFor(100), ['1 pair', 60_000]);
    assert.deepEqual(await ruleFor(100, 'USD'), [undefined, 60_000]);
    assert.deepEqual(await ruleFor(99), [undefined, 60_000]);
    assert.deepEqual(await ruleFor(7), ['2 ops', 60_000]);
    assert.deepEqual(await ruleFor(500), ['2 finance', 14_400_000]);
  });
});

test('without a rule for the tool nothing is stored, and one unverified decision is enough', () =>
  withRules(compiled({ match: { tool: 'wire' }, approve: [{ role: 'ops' }] }), async ({ app, gate }) => {
    const { request, outcome } = await startCall(gate, refund());
    const result = await approve(app, request);
    assert.deepEqual(Object.keys(result), ['requestId', 'executionId', 'status', 'decidedAt']);
    assert.equal((await outcome).status, 'completed');
    const { body } = (await readRow(app, request)).record;
    for (const name of ['rules', 'votes', 'requester']) assert.ok(!(name in body), name);
  }));

test('a rule that compares what the tool does not have, or another type, refuses the call and warns', async () => {
  for (const where of [{ ammount: { gt: 5 } }, { order: { gt: 5 } }, { amount: { eq: 'five' } }]) {
    await withRules(
      compiled({ match: { tool: 'refund', where }, approve: [{ role: 'ops' }] }),
      async ({ app, bank, gate }) => {
        await expectError(gate.call(refund()), 'rule_invalid');
        assert.match(app.warnings.join(), /"refund" cannot be approved\. The rule \S+ compares/);
        assert.deepEqual(bank.paid, []);
      },
    );
  }
});

test('a call that nobody is left to approve is refused, and warns: silence is no answer', () =>
  withRules(compiled({ approve: [{ role: 'pair', count: 2 }] }), async ({ app, bank, gate }) => {
    const call = refund(undefined, { requester: 'Ann' });
    const error = await expectError(gate.call(call), 'approvers_missing');
    assert.match(error.why ?? '', /No person is left for 1 of pair/);
    assert.match(app.warnings.join(), /"refund" cannot be approved/);
    assert.deepEqual(bank.paid, []);
    // Another person may make the same call.
    const { request } = await startCall(gate, { ...call, requester: 'cy' });
    assert.equal((await approve(app, request, undefined, ann)).status, 'waiting');
    await expectError(gate.call(refund(undefined, { requester: '' })), 'value_invalid');
  }));

test('the rule is that of the request: a later configuration changes nothing', () =>
  withRules(compiled({ approve: [{ role: 'pair', count: 2 }] }), async ({ store, gate, bank }) => {
    const { request, outcome } = await startCall(gate, refund());
    const later = await openApprovalProcess(store, undefined, compiled({ approve: [{ role: 'ops' }] }));
    const none = await openApprovalProcess(store);
    await expectError(approve(later, request, undefined, cy), 'decision_refused');
    await expectError(approve(none, request), 'decision_refused');
    assert.equal((await approve(none, request, undefined, ann)).status, 'waiting');
    // The call continues in a process with other rules, too.
    assert.equal((await approve(later, request, undefined, bo)).status, 'approved');
    assert.equal((await outcome).status, 'completed');
    assert.equal(bank.paid.length, 1);
    await later.service.close();
    await none.service.close();
  }));

test('an approval without the votes of the rule does not run: an earlier version may have stored it', () =>
  withRules(compiled({ approve: [{ role: 'pair', count: 2 }] }), async ({ app, gate, bank }) => {
    const { request, outcome } = await startCall(gate, refund());
    await approve(app, request, undefined, ann);
    const row = await readRow(app, request);
    const principal = { id: 'a click', groups: [], verifiedBy: 'nobody' as const };
    const verdict = { approved: true, by: 'a click', from: 'elsewhere', principal };
    const forged = withDecision(row.record, verdict, await app.service.clock.now());
    assert.ok(!hasQuorum(forged));
    await app.service.writeDecision(row, forged);
    const ended = await outcome;
    assert.equal(ended.status, 'stale');
    assert.match(JSON.stringify(ended.result), /It lacks votes that its rule requires/);
    assert.deepEqual(bank.paid, []);
  }));

test('rejections: as many as the rule says, with a reason where it says so', () =>
  withRules(compiled({ approve: [{ role: 'finance' }], deny: 2, reason: 'reject' }), async ({ app, gate }) => {
    const { request, outcome } = await startCall(gate, refund());
    for (const reason of [undefined, ' ']) {
      await expectError(reject(app, request, reason, ann), 'decision_invalid');
    }
    const first = await reject(app, request, 'too much', ann);
    assert.equal(first.status, 'waiting');
    assert.deepEqual(first.missing, [{ role: 'finance', count: 1 }]);
    assert.deepEqual(
      first.votes?.map(({ by, approved, reason }) => [by, approved, reason]),
      [['ann', false, 'too much']],
    );
    assert.deepEqual(await reject(app, request, 'too much', ann), first);
    // One person, one vote: also after a change of mind.
    assert.equal((await reject(app, request, 'yes', person('ANN', 'finance'))).status, 'waiting');
    const last = await reject(app, request, 'no', bo);
    assert.equal(last.status, 'rejected');
    assert.equal((await outcome).status, 'rejected');
    const { decision } = (await readRow(app, request)).record.body;
    assert.equal(decision?.by, 'ann, bo');
  }));

test('votes with more changes than a row has room for are rejected', () =>
  withRules(compiled({ approve: [{ role: 'finance', count: 5 }] }), async ({ app, gate }) => {
    const { request } = await startCall(gate, refund());
    const vote = (voter: typeof ann, length: number) => approve(app, request, { order: 'x'.repeat(length) }, voter);
    assert.equal((await vote(ann, 40_000)).status, 'waiting');
    await expectError(vote(bo, 40_001), 'parameters_too_large');
    assert.equal((await vote(bo, 1_000)).status, 'waiting');
  }));

test('a person with large changes does not keep the others from voting', () =>
  withRules(compiled({ approve: [{ role: 'finance', count: 20 }], deny: 2 }), async ({ app, bank, gate }) => {
    const { request, outcome } = await startCall(gate, refund());
    let largest = 65_000;
    const vote = () => approve(app, request, { order: 'x'.repeat(largest) }, ann);
    while ((await vote().catch(() => undefined)) === undefined) largest -= 1_000;
    assert.ok(largest > 40_000);
    const people = Array.from({ length: 20 }, (_, at) => person(`${at}`.padStart(300, 'p'), 'finance'));
    for (const one of people) await approve(app, request, undefined, one);
    assert.equal((await outcome).status, 'completed');
    assert.equal(bank.paid.length, 1);
  }));

test('a hook sees each vote, and may refuse it; channels hear of the decision once', () =>
  withRules(compiled({ approve: [{ role: 'finance', count: 2 }] }), async ({ app, gate }) => {
    const decided: string[] = [];
    app.kernel.hooks.approvalDecided.tap('test', ({ status }) => void decided.push(status));
    app.kernel.hooks.beforeDecision.tap('test', (review) => {
      if (review.decision.principal.id === 'cy') review.refuse('not cy');
    });
    const { request, outcome } = await startCall(gate, refund());
    await expectError(approve(app, request, undefined, cy), 'decision_refused');
    await approve(app, request, undefined, ann);
    assert.deepEqual(decided, []);
    await approve(app, request, undefined, bo);
    await outcome;
    assert.deepEqual(decided, ['approved']);
  }));

test('a sensitive parameter is masked in votes, and needs the review token for each', () =>
  withGate(
    { approvals: { roles: { finance: ['group:finance'] }, rules: [{ approve: [{ role: 'finance', count: 2 }] }] } },
    async ({ svc, refund: start }) => {
      const { request } = await start({ orderId: '1', amount: 5, card: '4111' });
      const { requestId } = request;
      const payload = { requestId, modifiedParams: { card: 'card-4222' } };
      await expectError(svc.agents.signal({ signal: 'approve', payload }, ann), 'approval_unseen');
      const { reviewToken } = await svc.approvals.get(requestId, { reveal: true });
      const result = await svc.agents.signal({ signal: 'approve', payload }, { ...ann, reviewToken });
      assert.ok(
        !JSON.stringify([result, await svc.approvals.get(requestId), await svc.approvals.list()]).includes('card-4222'),
      );
      assert.match(JSON.stringify(await svc.approvals.get(requestId, { reveal: true })), /card-4222/);
    },
  ));

test('an override decides alone, with a reason, and is recorded as one', () =>
  withRules(
    compiled({ approve: [{ role: 'finance', count: 2 }], override: 'pair', not: ['user:bo'] }),
    async ({ app, gate, bank }) => {
      const { request, outcome } = await startCall(gate, refund(undefined, { requester: 'req' }));
      const override = (id: string, reason?: string, more: object = {}) =>
        approve(app, request, undefined, { ...person(id), override: true, ...more }, reason);
      await expectError(override('cy', 'an emergency'), 'decision_refused');
      await expectError(override('bo', 'an emergency'), 'decision_refused');
      await expectError(approve(app, request, undefined, { actor: 'ann', override: true }, 'mine'), 'decision_refused');
      await expectError(override('ann'), 'decision_invalid');
      await expectError(override('ann', ' '), 'decision_invalid');
      assert.equal((await readRow(app, request)).record.status, 'waiting');
      const seen: unknown[] = [];
      app.kernel.hooks.beforeDecision.tap('test', ({ decision }) => void seen.push(decision.override));
      assert.equal((await override('ann', 'an emergency')).status, 'approved');
      assert.equal((await outcome).status, 'completed');
      assert.deepEqual(seen, [true]);
      assert.equal(bank.paid.length, 1);
      const { decision, events } = (await readRow(app, request)).record.body;
      assert.deepEqual([decision?.override, decision?.by, decision?.reason], [true, 'ann', 'an emergency']);
      assert.equal(events.find(({ type }) => type === 'approved')?.as, 'override');

      const free = createGate(app, compileTestTools(new Bank().tool({ tag: 'free' })));
      const other = await startCall(free, refund(undefined, { tool: 'free', requester: 'Ann' }));
      await expectError(
        approve(app, other.request, undefined, { ...ann, override: true }, 'an emergency'),
        'decision_refused',
      );
    },
  ));

test('an override without a rule is invalid, and one that a row claims needs the role', () =>
  withRules(
    compiled({ match: { tool: 'refund' }, approve: [{ role: 'finance', count: 2 }], override: 'pair' }),
    async ({ app, gate, bank }) => {
      const free = createGate(app, compileTestTools(bank.tool({ tag: 'free' })));
      const other = await startCall(free, refund(undefined, { tool: 'free' }));
      await expectError(approve(app, other.request, undefined, { ...ann, override: true }, 'why'), 'decision_invalid');
      const { request } = await startCall(gate, refund());
      const row = await readRow(app, request);
      const principal = { id: 'cy', groups: ['finance'], verifiedBy: 'token' as const };
      const verdict = { approved: true, by: 'cy', from: 'x', override: true, principal };
      assert.ok(!hasQuorum(withDecision(row.record, verdict, Date.now())));
      const allowed = { ...verdict, principal: { ...principal, id: 'bo' } };
      assert.ok(hasQuorum(withDecision(row.record, allowed, Date.now())));
    },
  ));

test('a person may not vote without end on one request', () =>
  withRules(compiled({ approve: [{ role: 'finance', count: 3 }], deny: 2 }), async ({ app, gate }) => {
    const { request } = await startCall(gate, refund());
    for (let votes = 0; votes < 3; votes++) {
      assert.equal((await approve(app, request, undefined, ann)).status, 'waiting');
      assert.equal((await reject(app, request, undefined, ann)).status, 'waiting');
    }
    await expectError(approve(app, request, undefined, ann), 'decision_refused');
    // Others may.
    assert.equal((await approve(app, request, undefined, bo)).status, 'waiting');
    assert.equal((await reject(app, request, undefined, cy)).status, 'rejected');
  }));

test('an edit that an earlier version stored, and that leads to another rule, does not run', () =>
  withRules(
    compiled({ match: { tool: 'refund', where: { amount: { gt: 500 } } }, approve: [{ role: 'pair' }] }),
    async ({ app, gate }) => {
      const { request } = await startCall(gate, refund());
      const row = await readRow(app, request);
      const principal = { id: 'a click', groups: [], verifiedBy: 'nobody' as const };
      const verdict = { approved: true, by: 'a click', from: 'x', principal };
      assert.ok(hasQuorum(withDecision(row.record, { ...verdict, modifiedParams: { amount: 500 } }, Date.now())));
      assert.ok(!hasQuorum(withDecision(row.record, { ...verdict, modifiedParams: { amount: 501 } }, Date.now())));
    },
  ));

test('an edit is a vote for the call with these parameters: votes for other ones are void, and count again with it', () =>
  withRules(compiled({ approve: [{ role: 'finance', count: 2 }] }), async ({ app, gate, bank }) => {
    const { request, outcome } = await startCall(gate, refund());
    const shown = async () => {
      const { votes = [] } = await approvalsOf(app, request.requestId);
      return votes.map(({ by, modifiedParams, void: isVoid }) => [by, modifiedParams?.amount, isVoid ?? false]);
    };
    await approve(app, request, undefined, ann);
    assert.equal((await approve(app, request, { amount: 15 }, bo)).status, 'waiting');
    assert.deepEqual(await shown(), [
      ['ann', undefined, true],
      ['bo', 15, false],
    ]);
    assert.deepEqual((await approve(app, request, { amount: 16 }, cy)).missing, [{ role: 'finance', count: 1 }]);
    assert.deepEqual(await shown(), [
      ['ann', undefined, true],
      ['bo', 15, true],
      ['cy', 16, false],
    ]);
    assert.equal((await approve(app, request, { amount: 15 }, cy)).status, 'approved');
    assert.equal((await outcome).status, 'completed');
    assert.equal(bank.paid[0]?.amount, 15);
    const { deciders, decidedBy } = await approvalsOf(app, request.requestId);
    assert.deepEqual([deciders?.map(({ id }) => id), decidedBy], [['bo', 'cy'], 'bo, cy']);
  }));

test('a schema that is composed may have parameters that it does not list', () => {
  const rules = compiled({ match: { tool: 'refund', where: { amount: { gt: 5 } } }, approve: [{ role: 'finance' }] });
  const found = (schema: object, amount = 6) =>
    rulesForCall(rules, { agentTag: 'payouts', tool: { tag: 'refund', schema } as never, parameters: { amount } });
  for (const schema of [
    { allOf: [{ properties: { amount: { type: 'number' } } }] },
    { $ref: '#/$defs/refund' },
    { properties: { amount: { type: 'number' } } },
    { properties: {}, additionalProperties: true },
  ]) {
    assert.deepEqual(found(schema), { list: rules, at: 0 });
    assert.deepEqual(found(schema, 5), { list: rules });
  }
  assert.ok('problem' in (found({ properties: { total: { type: 'number' } } }) ?? {}));
});

test('a wrong member of a role is reported at the role, and not where a setting names the role', () => {
  const config = {
    product: 'shop',
    databases: { main: { dialect: 'postgresql', url: 'postgresql://localhost/shop' } },
    approvals: { roles: { dba: ['ann'] }, store: { database: 'main' } },
    environments: { dev: { approval: { role: 'dba' } } },
  };
  assert.throws(
    () => assertConfig(config),
    (error) =>
      isSvcError(error) &&
      isDeepStrictEqual(error.details.problems, ['approvals.roles.dba[0]: is not user:<id> or group:<name>.']),
  );
});
