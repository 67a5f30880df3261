import * as assert from 'node:assert/strict';
import { crc32 } from 'node:zlib';
import { approvalHandler } from '../config/sdk/index.ts';
import type { PersonTokens } from '../core/approval/person-tokens.ts';
import { personTokens } from '../core/approval/schema.ts';
import type { RecordDefinition, RecordStore } from '../core/records.ts';
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
  startCall,
} from './suites/approval-setup.ts';
import { expectError } from './suites/expect-error.ts';
import { callbackUrlOf, withGate } from './suites/gate-client.ts';

// Who decided: a principal, and what proves its id.

const DAY = 86_400_000;
const ann = { id: 'ann@acme.example', groups: ['finance'] } as const;

async function withTokens(
  body: (fixture: {
    app: ApprovalProcess;
    tokens: PersonTokens;
    store: MemoryStore;
    wait(ms: number): void;
  }) => Promise<void>,
): Promise<void> {
  let now = Date.parse('2026-11-25T10:00:00Z');
  const store = new MemoryStore(() => now);
  const app = await openApprovalProcess(store);
  try {
    const wait = (ms: number) => {
      now += ms;
    };
    await body({ app, tokens: app.service.personTokens, store, wait });
  } finally {
    await app.service.close();
  }
}

test('a person whom the program vouches for is in the record, the history, the audit and the hook', () =>
  withGate({}, async ({ svc, refund }) => {
    const { request, outcome } = await refund();
    const { requestId } = request;
    await svc.agents.signal({ signal: 'approve', payload: { requestId } }, { principal: ann });
    assert.equal((await outcome).status, 'completed');
    const principal = { ...ann, verifiedBy: 'signal' };
    const record = await svc.approvals.get(requestId);
    assert.equal(record.decidedBy, ann.id);
    assert.deepEqual(record.deciders, [principal]);
    assert.deepEqual(record.events.find(({ type }) => type === 'approved')?.principal, principal);
    const entries = [];
    for await (const entry of svc.approvals.export()) entries.push(entry);
    assert.deepEqual(
      entries.filter((entry) => entry.principal !== undefined).map(({ type, principal }) => [type, principal]),
      [['approved', principal]],
    );
  }));

test('the record and the audit say which model asked, for which definition of the tool, under which rule', () =>
  withGate(
    { approvals: { roles: { all: ['group:all'] }, rules: [{ approve: [{ role: 'all' }] }] } },
    async ({ svc, gate }) => {
      const call = { tool: 'refund', parameters: { orderId: '1', amount: 5 }, model: 'openai/gpt-5' };
      const { requestId = '' } = await gate.run({ ...call, executionId: 'exe', toolCallId: 'one' }, { waitMs: 0 });
      const { model, toolDigest, rule } = await svc.approvals.get(requestId);
      assert.equal(model, 'openai/gpt-5');
      assert.match(toolDigest, /^t\d+\.[\w-]{43}$/);
      const entries = [];
      for await (const entry of svc.approvals.export()) entries.push(entry);
      const details = entries.find(({ type }) => type === 'requested')?.details;
      const { parameters, reason, timeout, ...more } = details as Record<string, unknown>;
      assert.deepEqual(more, { model, toolDigest, rule: rule?.version });
      for (const model of ['', 7, 'x'.repeat(201)]) {
        await expectError(gate.run({ ...call, model: model as string }), 'value_invalid');
      }
    },
  ));

test('the actor stays the text of the decision, and without a principal nothing is recorded as verified', () =>
  withGate({}, async ({ svc, refund }) => {
    const named = await refund();
    const signal = { signal: 'reject', payload: { requestId: named.request.requestId } } as const;
    await svc.agents.signal(signal, { actor: 'Ann of finance', principal: { id: 'ann' } });
    const record = await svc.approvals.get(named.request.requestId);
    assert.equal(record.decidedBy, 'Ann of finance');
    assert.deepEqual(record.deciders, [{ id: 'ann', groups: [], verifiedBy: 'signal' }]);

    const claimed = await refund();
    const { requestId } = claimed.request;
    await svc.agents.signal({ signal: 'reject', payload: { requestId } }, { actor: 'ann' });
    const unverified = await svc.approvals.get(requestId);
    assert.equal(unverified.decidedBy, 'ann');
    assert.ok(!('deciders' in unverified));
    assert.ok(unverified.events.every((event) => !('principal' in event)));
  }));

test('a hook sees who decides, and that nobody was verified', () =>
  withTokens(async ({ app }) => {
    const seen: unknown[] = [];
    app.kernel.hooks.beforeDecision.tap('test', ({ decision }) => void seen.push(decision.principal));
    const gate = createGate(app, compileTestTools(new Bank().tool()));
    const { token } = await app.service.personTokens.create(ann, { validForMs: DAY });
    for (const options of [{ actor: 'bo' }, { principal: ann }, { token, actor: 'not ann' }]) {
      const { request } = await startCall(gate, refund());
      await approve(app, request, undefined, options);
    }
    assert.deepEqual(seen, [
      { id: 'bo', groups: [], verifiedBy: 'nobody' },
      { ...ann, verifiedBy: 'signal' },
      { ...ann, verifiedBy: 'token' },
    ]);
  }));

test('a principal that is not valid, or claims how it was verified, is rejected', () =>
  withTokens(async ({ app }) => {
    const gate = createGate(app, compileTestTools(new Bank().tool()));
    const { request } = await startCall(gate, refund());
    const { token } = await app.service.personTokens.create(ann, { validForMs: DAY });
    for (const options of [
      { principal: {} },
      { principal: 'ann' },
      { principal: { id: '' } },
      { principal: { id: 'ann\u200b' } },
      { principal: { id: 'ann ' } },
      { principal: { id: 'a'.repeat(321) } },
      { principal: { id: 'ann', groups: 'finance' } },
      { principal: { id: 'ann', groups: ['\u202efinance'] } },
      { principal: { id: 'ann', verifiedBy: 'token' } },
      { principal: ann, token },
      { token: 1 },
    ]) {
      await expectError(approve(app, request, undefined, options as never), 'decision_invalid');
    }
    assert.equal((await readRow(app, request)).record.status, 'waiting');
  }));

test('a token is shown once, is found by scanners, and proves its owner until it expires', () =>
  withTokens(async ({ app, tokens, store, wait }) => {
    const created = await tokens.create(ann, { validForMs: DAY });
    assert.match(created.token, /^svcp_[0-9A-Za-z]{61}$/);
    const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
    const value = [...created.token.slice(-6)].reduce((sum, digit) => sum * 62 + digits.indexOf(digit), 0);
    assert.equal(value, crc32(created.token.slice(0, -6)));
    const stored = await store.records(personTokens).get(created.tokenId);
    assert.ok(!JSON.stringify(stored).includes(created.token.slice(20)));
    assert.deepEqual(await tokens.verify(created.token), { ...ann, verifiedBy: 'token' });
    const listed = [];
    for await (const one of tokens.list()) listed.push(one);
    const { token: _, ...shown } = created;
    assert.deepEqual(listed, [shown]);

    const gate = createGate(app, compileTestTools(new Bank().tool()), { humanInLoop: { approvalTimeout: 10 * DAY } });
    const { request } = await startCall(gate, refund());
    wait(DAY - 1);
    assert.equal((await tokens.verify(created.token)).id, ann.id);
    wait(1);
    await expectError(approve(app, request, undefined, { token: created.token }), 'token_invalid');
    assert.equal((await readRow(app, request)).record.status, 'waiting');
  }));

test('a wrong, foreign or revoked token decides nothing, and the error does not repeat it', () =>
  withTokens(async ({ app, tokens }) => {
    const gate = createGate(app, compileTestTools(new Bank().tool()));
    const { request } = await startCall(gate, refund());
    const one = await tokens.create(ann, { validForMs: DAY });
    const other = await tokens.create({ id: 'bo' }, { validForMs: DAY });
    const foreign = await openApprovalProcess(new MemoryStore());
    const elsewhere = await foreign.service.personTokens.create(ann, { validForMs: DAY });
    await foreign.service.close();
    const body = `${other.token.slice(0, 17)}${one.token.slice(17, -6)}`;
    for (const token of ['', 'svcp_', one.token.slice(0, -1), `${one.token.slice(0, -1)}_`, body, elsewhere.token]) {
      const error = await expectError(approve(app, request, undefined, { token }), 'token_invalid');
      assert.ok(token === '' || !JSON.stringify([error.message, error.why, error.details]).includes(token));
    }
    assert.equal((await tokens.revoke(one.tokenId)).revokedAt, (await tokens.revoke(one.tokenId)).revokedAt);
    await expectError(approve(app, request, undefined, { token: one.token }), 'token_invalid');
    await expectError(tokens.revoke('000000000000'), 'token_unknown');
    await expectError(tokens.revoke(one.token), 'token_unknown');
    assert.equal((await readRow(app, request)).record.status, 'waiting');
    assert.equal((await approve(app, request, undefined, { token: other.token })).status, 'approved');
  }));

test('a token that is verified again and again is read once, until any token is revoked by any process', () =>
  withTokens(async ({ tokens, store, wait }) => {
    const [one, other] = [await tokens.create(ann, { validForMs: DAY }), await tokens.create(ann, { validForMs: DAY })];
    const reads: string[] = [];
    const process = await openApprovalProcess({
      records<R extends object>(definition: RecordDefinition<R>): RecordStore<R> {
        const rows = store.records(definition);
        const get: typeof rows.get = (key) => {
          reads.push(key);
          return rows.get(key);
        };
        return { ...rows, get, page: (...query) => rows.page(...query) };
      },
      ensureTables: () => store.ensureTables(),
      withLock: (task) => store.withLock(task),
      now: () => store.now(),
      close: async () => undefined,
    });
    const { personTokens: elsewhere } = process.service;
    const readsOf = async (task: () => Promise<unknown>) => {
      reads.length = 0;
      await task();
      return reads.filter((key) => key === one.tokenId).length;
    };
    const find = () => elsewhere.findAgain(one.token);
    assert.equal(await readsOf(find), 1);
    assert.equal(await readsOf(() => Promise.all(Array.from({ length: 50 }, find))), 0);
    await tokens.revoke(other.tokenId);
    assert.equal(await readsOf(find), 1);
    assert.equal(await readsOf(find), 0);
    wait(DAY);
    // A reading of the store's clock counts for a second.
    await process.service.clock.readNow();
    await expectError(find(), 'token_invalid');
    wait(-DAY);
    await find();
    await tokens.revoke(one.tokenId);
    await expectError(find(), 'token_invalid');
    await process.service.close();
  }));

test('a token needs a valid owner', () =>
  withTokens(async ({ tokens }) => {
    for (const owner of [{ id: '' }, { id: ' ann' }, { id: 'ann', groups: [''] }]) {
      await expectError(tokens.create(owner, { validForMs: DAY }), 'value_invalid');
    }
    await expectError(tokens.create(ann, { validForMs: Number.NaN }), 'value_invalid');
    await expectError(tokens.create(ann, { validForMs: 0 }), 'value_invalid');
  }));

test('the callback knows who sends a token of a person, and rejects one that is not valid', () =>
  withGate({}, async ({ svc, refund }) => {
    const handler = approvalHandler(svc);
    const { token, tokenId } = await svc.people.createToken(ann, { validForMs: DAY });
    const post = async (url: string, authorization: string) => {
      const headers = { 'content-type': 'application/json', authorization };
      const response = await handler(new Request(url, { method: 'POST', headers, body: '{"approved":true}' }));
      return { status: response.status, body: (await response.json()) as Record<string, unknown> };
    };
    const one = await refund();
    const url = await callbackUrlOf(svc, one.request);
    assert.deepEqual((await post(url, `Bearer ${token}x`)).body.error, 'token_invalid');
    assert.equal((await svc.approvals.get(one.request.requestId)).status, 'waiting');
    // Without the token of the request, that of a person is not enough.
    assert.equal((await post(url.replace(/token=.*/, 'token=v1.x'), `Bearer ${token}`)).status, 401);
    assert.equal((await post(url, `bearer ${token}`)).status, 200);
    assert.deepEqual((await svc.approvals.get(one.request.requestId)).deciders, [{ ...ann, verifiedBy: 'token' }]);

    const other = await refund();
    await svc.people.revokeToken(tokenId);
    const otherUrl = await callbackUrlOf(svc, other.request);
    assert.equal((await post(otherUrl, `Bearer ${token}`)).status, 401);
    // What a proxy or a mesh adds is not for this server.
    assert.equal((await post(otherUrl, 'Bearer eyJhbGciOiJub25lIn0.e30.')).status, 200);
    const record = await svc.approvals.get(other.request.requestId);
    assert.equal(record.decidedBy, 'callback token, unverified');
    assert.ok(!('deciders' in record));
  }));
