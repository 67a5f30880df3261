import * as assert from 'node:assert/strict';
import fc from 'fast-check';
import { verifyAudit } from '../core/approval/audit.ts';
import { chainProblems } from '../core/approval/event-chain.ts';
import { type ApprovalEvent, newRequestId } from '../core/approval/request.ts';
import { type ApprovalBody, type ApprovalRow, approvals } from '../core/approval/schema.ts';
import { proveRequest } from '../core/approval/seal/prove.ts';
import { openRequests, seals } from '../core/approval/seal/schema.ts';
import { isSeal } from '../core/approval/seal/seal.ts';
import { sealId, uncheckedSeals } from '../core/approval/seal/stored-seals.ts';
import { allRows, type RecordStore } from '../core/records.ts';
import { MemoryStore } from '../plugins/stores/memory.ts';
import { ofFinance, openSealed, rehashed, twoOfFinance } from './kit/sealed.ts';
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
import { expectError } from './suites/expect-error.ts';

// Somebody who can write everything in the database, knows how svc computes hashes, and cannot change the file of seals.

const DAY = 86_400_000;

/** All that a request may have been through, sealed at several times. */
async function sealedStore() {
  let ahead = -2 * DAY;
  const store = new MemoryStore(() => Date.now() + ahead);
  const app = await openApprovalProcess(store, undefined, twoOfFinance);
  const gate = createGate(app, compileTestTools(new Bank().tool()), {
    humanInLoop: { approvalTimeout: 10 * DAY, approvalValidFor: 10 * DAY },
  });
  const { sealer, source } = await openSealed(app);
  const start = (amount: number) => startCall(gate, refund({ order: '1', amount }, { requester: 'req' }));
  const voted = await start(20);
  await approve(app, voted.request, undefined, ofFinance('ann'));
  await sealer.seal();
  await approve(app, voted.request, { amount: 15 }, ofFinance('bo'));
  await approve(app, voted.request, { amount: 15 }, ofFinance('ann'));
  await voted.outcome;
  const simple = await start(5);
  await approve(app, simple.request);
  await simple.outcome;
  await sealer.seal();
  const rejected = await start(6);
  await reject(app, rejected.request, 'no');
  await rejected.outcome;
  const half = await start(30);
  await approve(app, half.request, undefined, ofFinance('ann'));
  await start(7);
  await sealer.seal();
  // Long before the seal that follows.
  ahead = 0;
  await app.service.clock.readNow();
  await sealer.seal({ all: true });
  return { app, store, source, sealer };
}

type Rows = RecordStore<ApprovalRow>;

const withBody = (row: ApprovalRow, body: Partial<ApprovalBody>): ApprovalRow => ({
  ...row,
  body: { ...row.body, ...body },
});
const withEvents = (row: ApprovalRow, events: readonly ApprovalEvent[]): ApprovalRow => withBody(row, { events });

/** The process that waits for the decision writes to what it finds so: not for a store that is put back. */
const ONCE = 'the status is one that no list has';

/** Another row in its place, or undefined where there is nothing to change. */
const EDITS: Readonly<Record<string, (row: ApprovalRow, at: number) => ApprovalRow | undefined>> = {
  'an event is edited': (row, at) => {
    const { events } = row.body;
    const event = events[at % Math.max(1, events.length)];
    return event && withEvents(row, events.with(at % events.length, { ...event, by: 'eve' }));
  },
  'the time of an event is moved': (row, at) => {
    const { events } = row.body;
    const event = events[at % Math.max(1, events.length)];
    const moved = event && new Date(Date.parse(event.at) + 1 + at).toISOString();
    return event && withEvents(row, events.with(at % events.length, { ...event, at: moved ?? event.at }));
  },
  'an event is removed': ({ body, ...row }, at) =>
    body.events.length === 0
      ? undefined
      : withEvents({ ...row, body }, body.events.toSpliced(at % body.events.length, 1)),
  'the last events are removed': ({ body, ...row }, at) =>
    body.events.length === 0 ? undefined : withEvents({ ...row, body }, body.events.slice(0, at % body.events.length)),
  'an event is put in': (row, at) => {
    const { events, timestamp } = row.body;
    const event = { type: 'voted', at: timestamp, by: 'eve', as: 'approve', ...ofFinance('eve') } as const;
    const principal = { ...event.principal, verifiedBy: 'token' } as const;
    return withEvents(row, events.toSpliced(at % (events.length + 1), 0, { ...event, principal }));
  },
  'two events change places': (row, at) => {
    const { events } = row.body;
    const index = at % Math.max(1, events.length - 1);
    const [one, other] = [events[index], events[index + 1]];
    return one && other && withEvents(row, events.with(index, other).with(index + 1, one));
  },
  'a rejection becomes an approval': (row) => {
    const { decision, events } = row.body;
    if (row.status !== 'rejected' || !decision) return undefined;
    const { cause, ...rest } = decision;
    const changed = events.map((event) =>
      event.type === 'rejected' ? { ...event, type: 'approved' as const } : event,
    );
    return { ...withBody(row, { decision: rest, events: changed }), status: 'approved' };
  },
  'the parameters are changed': (row) => withBody(row, { parameters: { ...row.body.parameters, amount: 9999 } }),
  'the words of the model are changed': (row) => withBody(row, { modelText: 'The customer is owed this.' }),
  'the requester is changed': (row) => withBody(row, { requester: 'eve' }),
  'the result is changed': (row) => {
    const { outcome } = row.body;
    return outcome && withBody(row, { outcome: { ...outcome, result: { paid: 1_000_000 } } });
  },
  'the creation is moved': (row, at) => withBody(row, { timestamp: new Date(at).toISOString() }),
  [ONCE]: (row) => ({ ...row, status: 'Approved' as ApprovalRow['status'] }),
  'the deadline is moved': (row, at) => ({ ...row, expiresAt: new Date(row.expiresAt.getTime() + 1 + at) }),
};

/** Changes of other rows than one. */
const OTHERS: Readonly<Record<string, (rows: Rows, row: ApprovalRow, version: number) => Promise<void>>> = {
  'a request is removed': async (rows, row, version) => void (await rows.remove(row.requestId, version)),
  'a request is put in': async (rows, row) => {
    const requestId = newRequestId();
    await rows.insert(rehashed({ ...row, requestId }));
  },
  'a request gets another id': async (rows, row, version) => {
    await rows.remove(row.requestId, version);
    await rows.insert(rehashed({ ...row, requestId: newRequestId() }));
  },
};

const KINDS = [...Object.keys(EDITS), ...Object.keys(OTHERS)];
const REPEATABLE = KINDS.filter((kind) => kind !== ONCE);

async function snapshot(rows: Rows): Promise<Map<string, { readonly record: ApprovalRow; readonly version: number }>> {
  const all = new Map<string, { readonly record: ApprovalRow; readonly version: number }>();
  for (const status of ['waiting', 'approved', 'rejected', 'cancelled'] as const)
    for await (const row of allRows(rows, 'byStatus', { equals: { status }, limit: 100 }))
      all.set(row.record.requestId, row);
  return all;
}

/** Puts every row back. */
async function restore(rows: Rows, before: Awaited<ReturnType<typeof snapshot>>): Promise<void> {
  const now = await snapshot(rows);
  for (const [requestId, { version }] of now) if (!before.has(requestId)) await rows.remove(requestId, version);
  for (const [requestId, { record }] of before) {
    const found = await rows.get(requestId);
    if (found) await rows.replace(requestId, found.version, record);
    else await rows.insert(record);
  }
}

async function finds({ service }: ApprovalProcess, source: Parameters<typeof verifyAudit>[2]): Promise<boolean> {
  return (await verifyAudit(service, {}, source)).broken.length > 0;
}

/** Makes a change of this kind; false if there is nothing to change. */
async function attack(rows: Rows, row: ApprovalRow, kind: string, at: number): Promise<boolean> {
  const { version } = (await rows.get(row.requestId)) ?? { version: 0 };
  const edited = EDITS[kind]?.(row, at);
  if (EDITS[kind] && !edited) return false;
  if (edited) await rows.replace(row.requestId, version, rehashed(edited));
  else await OTHERS[kind]?.(rows, row, version);
  return true;
}

test('of three hundred changes with all hashes computed again, the seals find every one, and the hashes none', async () => {
  const { app, store, source } = await sealedStore();
  const rows = store.records(approvals);
  const before = await snapshot(rows);
  const ids = [...before.keys()];
  assert.equal(await finds(app, source), false);
  const made = new Map<string, number>();
  const byHashes = new Set<string>();
  const isFound = async (kind: string, requestId: string, at: number): Promise<void> => {
    const row = before.get(requestId)?.record as ApprovalRow;
    if (!(await attack(rows, row, kind, at))) return;
    const forged = await rows.get(requestId);
    if (forged && chainProblems(forged.record).length > 0) byHashes.add(kind);
    assert.ok(await finds(app, source), `${kind}: ${requestId}, ${at}`);
    made.set(kind, (made.get(kind) ?? 0) + 1);
    await restore(rows, before);
  };
  try {
    // Some kinds apply to few rows, and might never be drawn.
    for (const kind of REPEATABLE) for (const requestId of ids) if (!made.has(kind)) await isFound(kind, requestId, 0);
    await fc.assert(fc.asyncProperty(fc.constantFrom(...REPEATABLE), fc.constantFrom(...ids), fc.nat(20), isFound), {
      numRuns: 450,
    });
    assert.equal(await finds(app, source), false);
    assert.deepEqual(new Set(made.keys()), new Set(REPEATABLE));
    assert.ok([...made.values()].reduce((sum, count) => sum + count, 0) >= 300);
    // The hashes alone find none of these: that is why there are seals.
    assert.deepEqual([...byHashes], []);
  } finally {
    await app.service.close();
  }
});

test('a change is found also after the next seal, which may cover what was put in', async () => {
  for (const kind of KINDS) {
    for (const which of [0, 2, 3]) {
      const { app, store, source, sealer } = await sealedStore();
      const rows = store.records(approvals);
      const before = await snapshot(rows);
      const row = before.get([...before.keys()].sort()[which] ?? '')?.record as ApprovalRow;
      try {
        if (!(await attack(rows, row, kind, 1))) continue;
        // The next search must look at everything that was touched.
        for (const { record } of (await snapshot(rows)).values()) {
          const { requestId } = record;
          await store.records(openRequests).insert({ requestId, state: 'open', at: new Date(), seal: 0 });
        }
        await sealer.seal();
        await sealer.seal({ all: true });
        assert.ok(await finds(app, source), `${kind}, request ${which}`);
        // Also where only requests of these days are looked at.
        const range = { since: new Date(Date.now() - 3 * DAY) };
        assert.ok(
          (await verifyAudit(app.service, range, source)).broken.length > 0,
          `${kind}, request ${which}, range`,
        );
      } finally {
        await app.service.close();
      }
    }
  }
});

test('who changes what the search for new events reads keeps nothing from being sealed', async () => {
  const { app, store, source, sealer } = await sealedStore();
  const sealRows = store.records(seals);
  const id = sealId(2);
  const second = (await sealRows.get(id))!;
  try {
    const before = await snapshot(store.records(approvals));
    const waiting = [...before.values()].find(({ record }) => record.status === 'waiting')!.record;
    const { requestId } = waiting;
    await store.records(openRequests).insert({ requestId, state: 'open', at: new Date(), seal: 4 });
    await approve(app, { requestId, executionId: waiting.executionId }, undefined, ofFinance('bo'));
    assert.ok((await sealer.seal()).events > 0);
    assert.equal(await finds(app, source), false);
    const requests = [...second.record.body.requests, { requestId, events: 99, head: 'x' }];
    await sealRows.replace(id, second.version, { ...second.record, body: { ...second.record.body, requests } });
    await expectError(sealer.seal({ all: true }), 'audit_broken');
    await sealRows.replace(id, second.version + 1, { ...second.record, body: { seal: 2 } as never });
    await expectError(sealer.seal({ all: true }), 'audit_broken');
    await expectError(proveRequest(app.service, waiting, source.keys), 'audit_broken');
  } finally {
    await app.service.close();
  }
});

test('a store that was put back to an earlier time, with its seals, is found by those of the file', async () => {
  const { app, store, source } = await sealedStore();
  try {
    const sealRows = store.records(seals);
    const rows = store.records(approvals);
    for await (const seal of uncheckedSeals(store)) {
      if (!isSeal(seal) || seal.seal < 3) continue;
      const id = sealId(seal.seal);
      await sealRows.remove(id, (await sealRows.get(id))?.version ?? 0);
      for (const { requestId } of seal.requests) {
        const found = await rows.get(requestId);
        if (found) await rows.remove(requestId, found.version);
      }
    }
    // By the seals of the store itself, nothing is missing.
    const itself = { ...source, from: 'the store itself', read: () => uncheckedSeals(store) };
    assert.equal(await finds(app, itself), false);
    assert.equal(await finds(app, source), true);
  } finally {
    await app.service.close();
  }
});
