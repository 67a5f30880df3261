import * as assert from 'node:assert/strict';
import type { ApprovalsConfig } from '../config/define.ts';
import { svc as svcCommand } from './kit/cli.ts';
import { testGateAndProject } from './kit/gate-and-project.ts';
import type { Project } from './kit/project.ts';
import type { GateUnderTest } from './suites/gate-client.ts';

const DAY = 86_400_000;

function test(
  name: string,
  body: (gate: GateUnderTest, shop: Project) => Promise<void>,
  approvals: ApprovalsConfig = {},
): void {
  testGateAndProject(name, ({ gate, shop }) => body(gate, shop), { approvals });
}

test('svc people token: create, decide with SVC_TOKEN, list, revoke', async ({ refund, svc }, shop) => {
  const args = ['people', 'token', 'create', 'ann@acme.example', '--group', 'finance', '--expires', '90d'];
  const shown = await shop.svc(...args);
  assert.equal(shown.status, 0, shown.stderr);
  const token = shown.stdout.trim();
  assert.match(token, /^svcp_[0-9A-Za-z]{61}$/);
  assert.ok(!shown.stderr.includes(token));
  const other = await svc.people.createToken({ id: 'bo' }, { validForMs: 60_000 });
  const agent = await shop.svc('people', 'token', 'create', 'Agent:payouts', '--expires', '90d');
  assert.deepEqual([agent.status, agent.stdout], [1, ''], agent.stderr);
  assert.match(agent.stderr, /An agent cannot decide/);

  const one = await refund();
  const later = await refund();
  const decide = async (requestId: string, SVC_TOKEN: string) => {
    const { reviewToken = '' } = await svc.approvals.get(requestId);
    const decision = ['approvals', 'approve', requestId, '--yes', '--review-token', reviewToken];
    return svcCommand(decision, { cwd: shop.root, env: { SVC_TOKEN } });
  };
  const approved = await decide(one.request.requestId, token);
  assert.equal(approved.status, 0, approved.stderr);
  assert.equal((await one.outcome).status, 'completed');
  const record = await svc.approvals.get(one.request.requestId);
  assert.equal(record.decidedBy, 'ann@acme.example');
  assert.deepEqual(record.deciders, [{ id: 'ann@acme.example', groups: ['finance'], verifiedBy: 'token' }]);

  const [first = ''] = /(?<=The token )\S+/.exec(shown.stderr) ?? [];
  const revoked = await shop.svc('people', 'token', 'revoke', first);
  assert.equal(revoked.status, 0, revoked.stderr);
  const listed = (await shop.svc('people', 'token', 'list')).stdout;
  assert.match(listed, new RegExp(`^${first}  ann@acme\\.example  finance  revoked `, 'm'));
  assert.match(listed, new RegExp(`^${other.tokenId}  bo  no groups  until `, 'm'));
  const refused = await decide(later.request.requestId, token);
  assert.equal(refused.status, 2, refused.stdout);
  assert.match(refused.stderr, /token_invalid/);
  assert.equal((await svc.approvals.get(later.request.requestId)).status, 'waiting');
});

test(
  'svc people delegate: the vote of another person until it ends, list, revoke',
  async ({ refund, svc }, shop) => {
    const owner = { id: 'ann@acme.example', groups: ['finance'] };
    const ann = (await svc.people.createToken(owner, { validForMs: 2 * DAY })).token;
    const bo = (await svc.people.createToken({ id: 'bo@acme.example' }, { validForMs: 3_600_000 })).token;
    const as = (SVC_TOKEN: string, ...args: string[]) => svcCommand(args, { cwd: shop.root, env: { SVC_TOKEN } });
    const tomorrow = new Date(Date.now() + DAY).toISOString().slice(0, 10);
    const delegate = ['people', 'delegate', '--to', 'bo@acme.example', '--until', tomorrow];

    const withoutToken = await shop.svc(...delegate);
    assert.equal(withoutToken.status, 2);
    assert.match(withoutToken.stderr, /needs SVC_TOKEN/);
    const made = await as(ann, ...delegate);
    assert.equal(made.status, 0, made.stderr);
    assert.equal(made.stdout, `bo@acme.example decides for ann@acme.example until ${tomorrow}T00:00:00.000Z.\n`);
    const [, id = ''] = /svc people delegation revoke (\S+)/.exec(made.stderr) ?? [];

    const one = await refund();
    const decide = async (requestId: string) => {
      const { reviewToken = '' } = await svc.approvals.get(requestId);
      return as(bo, 'approvals', 'approve', requestId, '--yes', '--review-token', reviewToken);
    };
    const { reviewToken = '' } = await svc.approvals.get(one.request.requestId);
    const nobody = ['approvals', 'approve', one.request.requestId, '--yes', '--review-token', reviewToken];
    assert.match((await shop.svc(...nobody)).stderr, /decision_refused.*On the command line, set SVC_TOKEN\./s);
    const approved = await decide(one.request.requestId);
    assert.equal(approved.status, 0, approved.stderr);
    assert.equal((await one.outcome).status, 'completed');
    const shown = await shop.svc('approvals', 'show', one.request.requestId);
    assert.match(shown.stdout, /approved by bo@acme\.example for ann@acme\.example/);

    const listed = await shop.svc('people', 'delegation', 'list');
    assert.equal(listed.stdout, `${id}  bo@acme.example for ann@acme.example  until ${tomorrow}T00:00:00.000Z\n`);
    const ends = new Date(Date.now() + 3 * DAY).toISOString().slice(0, 10);
    const shorter = await as(ann, 'people', 'delegate', '--to', 'cy@acme.example', '--until', ends);
    assert.match(shorter.stderr, /^Your token ends then, and the delegation with it\.$/m);
    assert.ok(!shorter.stdout.includes(ends), shorter.stdout);
    const revoked = await shop.svc('people', 'delegation', 'revoke', id);
    assert.equal(revoked.stdout, 'bo@acme.example no longer decides for ann@acme.example.\n');
    assert.match((await shop.svc('people', 'delegation', 'list')).stdout, / revoked \d{4}-/);
    const unknown = await shop.svc('people', 'delegation', 'revoke', 'dlg_1');
    assert.match(unknown.stderr, /svc people delegation list {4}lists the delegations/);
    const later = await refund();
    const refused = await decide(later.request.requestId);
    assert.match(refused.stderr, /decision_refused/);
    assert.equal((await svc.approvals.get(later.request.requestId)).status, 'waiting');
  },
  { roles: { finance: ['group:finance'] }, rules: [{ approve: [{ role: 'finance' }] }] },
);

test(
  'svc approvals allow: later calls run until it is used up or revoked',
  async ({ refund, refunds, svc, gate }, shop) => {
    const owner = { id: 'ann@acme.example', groups: ['finance'] };
    const ann = (await svc.people.createToken(owner, { validForMs: 3_600_000 })).token;
    const as = (SVC_TOKEN: string, ...args: string[]) => svcCommand(args, { cwd: shop.root, env: { SVC_TOKEN } });
    const { request, outcome } = await refund();
    const { requestId } = request;
    const tomorrow = new Date(Date.now() + DAY).toISOString().slice(0, 10);
    const allow = ['approvals', 'allow', requestId, '--uses', '2', '--until', tomorrow, '--at-most', 'amount=15'];
    const early = await as(ann, ...allow);
    assert.match(early.stderr, /The request is waiting, and was not approved/);
    const { reviewToken = '' } = await svc.approvals.get(requestId);
    await as(ann, 'approvals', 'approve', requestId, '--yes', '--review-token', reviewToken);
    await outcome;

    assert.match((await shop.svc(...allow)).stderr, /needs SVC_TOKEN/);
    assert.match((await as(ann, ...allow, '--at-most', 'amount=abc')).stderr, /such as amount=50/);
    const made = await as(ann, ...allow);
    assert.equal(made.status, 0, made.stderr);
    const line = /^(std_\S+) {2}payouts → refund {2}(.*) {2}by ann@acme\.example {2}used 0 of 2 {2}until /;
    const [, id = '', values = ''] = line.exec(made.stdout) ?? [];
    assert.ok(made.stdout.includes(`until ${tomorrow}T`), made.stdout);
    assert.deepEqual(new Set(values.split(' ')), new Set(['amount≤15', 'orderId="1234"']), made.stdout);

    refunds.length = 0;
    const later = await gate.run({ tool: 'refund', parameters: { orderId: '1234', amount: 15 } });
    assert.equal(later.status, 'completed');
    assert.deepEqual({ ...(refunds[0] as object) }, { orderId: '1234', amount: 15 });
    const shown = await shop.svc('approvals', 'show', later.requestId ?? '');
    const unfolded = shown.stdout.replaceAll('\n  ↪ ', '');
    assert.match(unfolded, new RegExp(`approved by ann@acme\\.example \\(standing rule ${id}\\), run: done`));
    const json = JSON.parse((await shop.svc('approvals', 'standing', 'list', '--json')).stdout);
    assert.deepEqual(
      json.standingRules.map(({ used, uses, atMost }: Record<string, unknown>) => ({ used, uses, atMost })),
      [{ used: 1, uses: 2, atMost: { amount: 15 } }],
    );
    const unknown = await shop.svc('approvals', 'standing', 'revoke', 'std_1');
    assert.match(unknown.stderr, /svc approvals standing list {4}lists the standing rules/);
    const revoked = await shop.svc('approvals', 'standing', 'revoke', id);
    assert.equal(revoked.stdout, `The standing rule ${id} is revoked. It was used 1 of 2 times.\n`);
    assert.match((await shop.svc('approvals', 'standing', 'list')).stdout, /used 1 of 2 {2}revoked /);
  },
  { roles: { finance: ['group:finance'] }, rules: [{ approve: [{ role: 'finance' }], standing: 'finance' }] },
);
