import * as assert from 'node:assert/strict';
import fc from 'fast-check';
import { verifyAudit } from '../core/approval/audit.ts';
import { chainProblems } from '../core/approval/event-chain.ts';
import type { ApprovalEvent } from '../core/approval/request.ts';
import { type RevealOptions, recordReveal } from '../core/approval/reveal.ts';
import type { ApprovalBody, ApprovalRow } from '../core/approval/schema.ts';
import { MemoryStore } from '../plugins/stores/memory.ts';
import { ofFinance, twoOfFinance } from './kit/sealed.ts';
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

// The approval suite verifies what every store has after each of its cases; here, what is changed by other means is found.

async function withRequests(
  body: (app: ApprovalProcess, rows: readonly ApprovalRow[]) => Promise<void>,
): Promise<void> {
  const app = await openApprovalProcess(new MemoryStore(), undefined, twoOfFinance);
  const gate = createGate(app, compileTestTools(new Bank().tool()));
  try {
    const ids: string[] = [];
    const start = async (amount: number) => {
      const started = await startCall(gate, refund({ order: '1', amount }, { requester: 'req' }));
      ids.push(started.request.requestId);
      return started;
    };
    const approved = await start(20);
    await approve(app, approved.request, { amount: 15 }, ofFinance('ann'));
    await approve(app, approved.request, { amount: 15 }, ofFinance('bo'));
    await approved.outcome;
    const simple = await start(5);
    await approve(app, simple.request);
    await simple.outcome;
    const rejected = await start(6);
    await reject(app, rejected.request, 'no');
    await rejected.outcome;
    const voted = await start(30);
    await approve(app, voted.request, undefined, ofFinance('ann'));
    await start(7);
    const rows = await Promise.all(ids.map(async (requestId) => (await readRow(app, { requestId })).record));
    await body(app, rows);
  } finally {
    await app.service.close();
  }
}

const verify = ({ service }: ApprovalProcess) => verifyAudit(service);

test('what svc stored fits, and a row that was changed is named', () =>
  withRequests(async (app, rows) => {
    assert.deepEqual(await verify(app), { checked: 5, broken: [] });
    const [, simple] = rows as [ApprovalRow, ApprovalRow];
    const { version } = await readRow(app, simple);
    const body = { ...simple.body, decision: { ...simple.body.decision!, by: 'somebody else' } };
    await app.service.rows.replace(simple.requestId, version, { ...simple, body });
    const { broken } = await verify(app);
    assert.deepEqual(broken, [
      {
        requestId: simple.requestId,
        problems: ['After the last event, the status, votes, decision or result was changed.'],
      },
    ]);
  }));

/** A change of a row, or undefined if it changes nothing. */
type Change = (row: ApprovalRow, at: number) => ApprovalRow | undefined;

const withEvents = (row: ApprovalRow, events: readonly ApprovalEvent[]): ApprovalRow => ({
  ...row,
  body: { ...row.body, events },
});
const withBody = (
  row: ApprovalRow,
  body: { readonly [K in keyof ApprovalBody]?: ApprovalBody[K] | undefined },
): ApprovalRow => ({ ...row, body: { ...row.body, ...body } as ApprovalBody });

const CHANGES: Readonly<Record<string, Change>> = {
  'an event is removed': (row, at) => {
    const { events } = row.body;
    return events.length === 0 ? undefined : withEvents(row, events.toSpliced(at % events.length, 1));
  },
  'an event is edited': (row, at) => {
    const { events } = row.body;
    const index = at % Math.max(1, events.length);
    const event = events[index];
    return event && withEvents(row, events.with(index, { ...event, by: 'eve' }));
  },
  'an event is added': (row, at) => {
    const { events } = row.body;
    const index = at % (events.length + 1);
    return withEvents(row, events.toSpliced(index, 0, { type: 'voted', at: '2026-01-01T00:00:00.000Z', by: 'eve' }));
  },
  'two events change places': (row, at) => {
    const { events } = row.body;
    const index = at % Math.max(1, events.length - 1);
    const [one, other] = [events[index], events[index + 1]];
    return one && other ? withEvents(row, events.with(index, other).with(index + 1, one)) : undefined;
  },
  'the status is changed': (row) => ({ ...row, status: 'cancelled' }),
  'the deadline is moved': (row) => ({ ...row, expiresAt: new Date(row.expiresAt.getTime() + 1) }),
  'a parameter is changed': (row) => withBody(row, { parameters: { ...row.body.parameters, amount: 9_999 } }),
  'the reason is changed': (row) => withBody(row, { reason: 'No reason.' }),
  'the requester is changed': (row) => withBody(row, { requester: 'eve' }),
  'the rule is changed': (row) => {
    const { rules } = row.body;
    if (!rules) return undefined;
    return withBody(row, { rules: { ...rules, list: rules.list.map((rule) => ({ ...rule, deny: 9 })) } });
  },
  'a vote is changed': ({ body, ...row }) => {
    const [first, ...votes] = body.votes ?? [];
    return first && { ...row, body: { ...body, votes: [{ ...first, approved: !first.approved }, ...votes] } };
  },
  'the decision is changed': (row) => {
    const { decision } = row.body;
    return decision && withBody(row, { decision: { ...decision, reason: 'Because.' } });
  },
  'the result is changed': (row) => {
    const { outcome } = row.body;
    return outcome && withBody(row, { outcome: { ...outcome, result: { paid: 1_000_000 } } });
  },
};

test('every change of what is stored is found', () =>
  withRequests(async (_app, rows) => {
    const found = new Map<string, number>();
    fc.assert(
      fc.property(fc.constantFrom(...Object.keys(CHANGES)), fc.nat(rows.length - 1), fc.nat(9), (name, index, at) => {
        const changed = CHANGES[name]!(rows[index]!, at);
        if (!changed) return;
        assert.notDeepEqual(chainProblems(changed), [], name);
        found.set(name, (found.get(name) ?? 0) + 1);
      }),
      { numRuns: 2_000 },
    );
    assert.deepEqual(new Set(found.keys()), new Set(Object.keys(CHANGES)));
  }));

test('events of an earlier version have no hashes, and those that follow link to them', () =>
  withRequests(async (app, rows) => {
    const waiting = rows[3]!;
    const earlier = waiting.body.events.map(({ prev, state, ...event }) => event);
    const { version } = await readRow(app, waiting);
    await app.service.rows.replace(
      waiting.requestId,
      version,
      withBody(withEvents(waiting, earlier), { head: undefined }),
    );
    assert.deepEqual((await verify(app)).broken, []);
    await approve(app, waiting, undefined, ofFinance('bo'));
    assert.deepEqual((await verify(app)).broken, []);
    const { record } = await readRow(app, waiting);
    const [first, ...others] = record.body.events;
    assert.equal(first?.prev, undefined);
    assert.ok(others.every(({ prev }) => prev !== undefined));
    assert.notDeepEqual(chainProblems(withEvents(record, [{ ...first!, by: 'eve' }, ...others])), []);
    // Once linked, an event without a hash is one that svc did not store.
    assert.notDeepEqual(chainProblems(withEvents(record, [...record.body.events, first!])), []);
  }));

test('reading sensitive parameters is an event, once until something else happens', async () => {
  const app = await openApprovalProcess(new MemoryStore());
  const parameters = {
    order: { type: 'string', required: true },
    amount: { type: 'number', required: true },
    card: { type: 'string', sensitive: true },
  } as const;
  const gate = createGate(app, compileTestTools(new Bank().tool({ parameters })));
  const names = async (request: { readonly requestId: string }) =>
    (await readRow(app, request)).record.body.events.map(({ type, by }) => `${type} by ${by}`);
  const read = async (request: { readonly requestId: string }, options: RevealOptions) =>
    recordReveal(app.service, await readRow(app, request), options);
  try {
    const { request, outcome } = await startCall(gate, refund({ order: '1', amount: 2, card: '4111' }));
    await read(request, ofFinance('ann'));
    await read(request, ofFinance('ann'));
    await read(request, { actor: 'ann' });
    await read(request, { actor: 'bo' });
    assert.deepEqual(await names(request), ['revealed by ann', 'revealed by ann', 'revealed by bo']);
    const [verified, claimed] = (await readRow(app, request)).record.body.events;
    assert.deepEqual([verified?.principal?.id, claimed?.principal], ['ann', undefined]);
    await expectError(read(request, { token: 'svcp_x' }), 'token_invalid');
    const reviewToken = (await readRow(app, request)).record.body.digest;
    await approve(app, request, undefined, { actor: 'bo', reviewToken });
    await outcome;
    await read(request, { actor: 'bo' });
    assert.deepEqual((await names(request)).at(-1), 'revealed by bo');
    assert.deepEqual((await verify(app)).broken, []);
    // Nothing is hidden, so nothing is revealed.
    const open = await startCall(gate, refund({ order: '1', amount: 2 }));
    await read(open.request, ofFinance('ann'));
    assert.deepEqual(await names(open.request), []);
  } finally {
    await app.service.close();
  }
});
