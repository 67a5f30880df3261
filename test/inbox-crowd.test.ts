import * as assert from 'node:assert/strict';
import { ApprovalWatcher } from '../config/sdk/approval-watcher.ts';
import { EventStreams } from '../config/sdk/callback/api/event-streams.ts';
import type { Door } from '../config/sdk/callback/inbox/door.ts';
import { inboxHandler } from '../config/sdk/callback/inbox/handler.ts';
import type { StorageBackend } from '../core/approval/backend.ts';
import { createPrincipal } from '../core/approval/principal.ts';
import type { RecordDefinition, RecordStore } from '../core/records.ts';
import { MemoryStore } from '../plugins/stores/memory.ts';
import { EventReader, type ReceivedEvent } from './kit/event-reader.ts';
import { test } from './kit/test.ts';
import {
  Bank,
  compileTestTools,
  createGate,
  openApprovalProcess,
  refund,
  reject,
  startCall,
} from './suites/approval-setup.ts';

// Many people have the list open. One process has an agent and decides; another one serves the inbox, from the same store.

const INBOX = 'https://shop.example/svc/inbox';

interface Crowd {
  /** Rejects a request. */
  decide(requestId: string): Promise<void>;
  /** Resolves with the id of a request that waits. */
  request(): Promise<string>;
  /** The pages of requests that the inbox has read. */
  readonly pageReads: () => number;
  /** As a person, `?mine=1` on a list. */
  open(query?: string, person?: string, headers?: Readonly<Record<string, string>>): Promise<string>;
  /** Sends a form of a request, which decides nothing. */
  post(requestId: string): Promise<void>;
  listen(query?: string, lastId?: string): Promise<EventReader>;
}

async function withCrowd(body: (crowd: Crowd) => Promise<void>): Promise<void> {
  const store = new MemoryStore();
  let reads = 0;
  const counted: StorageBackend = {
    records<R extends object>(definition: RecordDefinition<R>): RecordStore<R> {
      const rows = store.records(definition);
      if (definition.collection !== '_svc_approvals') return rows;
      return {
        insert: (record) => rows.insert(record),
        replace: (key, version, record, guard) => rows.replace(key, version, record, guard),
        remove: (key, version) => rows.remove(key, version),
        get: (key) => rows.get(key),
        page(...query) {
          reads += 1;
          return rows.page(...query);
        },
      };
    },
    ensureTables: () => store.ensureTables(),
    withLock: (task) => store.withLock(task),
    now: () => store.now(),
    close: async () => undefined,
  };
  const agent = await openApprovalProcess(store);
  const gate = createGate(agent, compileTestTools(new Bank().tool()), { humanInLoop: { approvalTimeout: 3_600_000 } });
  const { service } = await openApprovalProcess(counted);
  const streams = new EventStreams({ approvals: service, watcher: new ApprovalWatcher(service) });
  const door: Door = {
    async enter(request) {
      const id = request.headers.get('x-person') ?? 'ann';
      const principal = createPrincipal({ id }, 'token');
      return { principal, decider: { actor: id }, canSignOut: false, isAllowed: async () => true };
    },
  };
  const base = INBOX.slice(0, -'/inbox'.length);
  const handler = inboxHandler(
    { approvals: service, product: 'shop', env: 'dev', key: 'k'.repeat(40), base, streams },
    door,
  );
  const readers: EventReader[] = [];
  try {
    await body({
      async decide(requestId) {
        const row = await agent.service.read(requestId);
        await reject(agent, { requestId, executionId: row!.record.executionId });
      },
      request: async () => (await startCall(gate, refund())).request.requestId,
      pageReads: () => reads,
      async open(query = '', person = 'ann', headers = {}) {
        const response = await handler(
          new Request(`${INBOX}${query}`, { headers: { 'x-person': person, ...headers } }),
        );
        assert.equal(response.status, 200);
        return response.text();
      },
      async post(requestId) {
        const headers = { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin' };
        const form = { method: 'POST', headers, body: 'action=show' };
        assert.equal((await handler(new Request(`${INBOX}/${requestId}`, form))).status, 200);
      },
      async listen(query = '', lastId = undefined) {
        const headers: Record<string, string> = lastId === undefined ? {} : { 'last-event-id': lastId };
        const reader = new EventReader(await handler(new Request(`${INBOX}/events${query}`, { headers })));
        readers.push(reader);
        return reader;
      },
    });
  } finally {
    await Promise.all(readers.map((reader) => reader.close()));
    await Promise.all([service.close(), agent.service.close()]);
  }
}

/** The place of an event in the order of changes. */
const placeOf = (event: ReceivedEvent | undefined): number => Number(event?.id.split('.')[1]);

/** The reads of a list that nobody shares. */
async function readsOf(open: Crowd['open'], pageReads: Crowd['pageReads'], filter = ''): Promise<number> {
  // The first one also ends what is due.
  await open('?status=waiting');
  const before = pageReads();
  await open(`?status=waiting&agent=${filter}`);
  return pageReads() - before;
}

test('200 people who load the list at once read the store as one does, and each sees their own name', () =>
  withCrowd(async ({ open, request, pageReads }) => {
    const requestId = await request();
    const one = await readsOf(open, pageReads);
    const before = pageReads();
    const people = Array.from({ length: 200 }, (_, index) => `person-${index}`);
    const pages = await Promise.all(people.map((person) => open('', person)));
    assert.equal(pageReads() - before, one);
    for (const [index, page] of pages.entries()) {
      assert.ok(page.includes(requestId));
      assert.ok(page.includes(`Signed in as ${people[index]}<`));
    }
  }));

test('another filter and the list of another person are read by themselves', () =>
  withCrowd(async ({ open, request, pageReads }) => {
    await request();
    const one = await readsOf(open, pageReads, '&tool=refund');
    const all = ['?tool=refund', '?tool=other', '?mine=1', '?mine=1'].map((query) => open(query));
    const before = pageReads();
    await Promise.all([...all, open('?mine=1', 'bo')]);
    assert.equal(pageReads() - before, 4 * one);
  }));

test('an open list is notified of many changes once a second, and of what it missed', () =>
  withCrowd(async ({ listen, request }) => {
    const reader = await listen();
    const [first] = await reader.take(1);
    assert.deepEqual([first?.type, first?.data], ['changed', {}]);
    const began = performance.now();
    for (let count = 0; count < 30; count++) await request();
    let [signals, last] = [0, first];
    for (; placeOf(last) < placeOf(first) + 30; signals++) [last] = await reader.take(1);
    // A timer may be a millisecond early.
    assert.ok(signals <= 1 + (performance.now() - began) / 990, `${signals}`);
    await reader.close();
    const current = await listen('', last?.id);
    await request();
    await current.take(1);
    await current.close();
    const late = await listen('', last?.id);
    await late.take(1);
  }));

test('the page of a request is notified of this request at once, and of no other', () =>
  withCrowd(async ({ decide, listen, request }) => {
    const [first, second, third] = [await request(), await request(), await request()];
    const reader = await listen(`?request=${second}`);
    const [begin] = await reader.take(1);
    await decide(first);
    await decide(second);
    const [decided] = await reader.take(1);
    assert.equal(placeOf(decided) - placeOf(begin), 2);
    await reader.close();
    const missed = await listen(`?request=${second}`, begin?.id);
    await missed.take(1);
    // Nothing of this one was missed.
    const other = await listen(`?request=${third}`, begin?.id);
    await decide(third);
    const [last] = await other.take(1);
    assert.equal(placeOf(last) - placeOf(begin), 3);
  }));

test('after a form, the list is read again', () =>
  withCrowd(async ({ open, post, request, decide }) => {
    const requestId = await request();
    assert.ok((await open()).includes(requestId));
    await decide(requestId);
    await post(requestId);
    assert.ok(!(await open()).includes(requestId));
  }));

test('a script loads what it takes over, and nothing that the page has already', () =>
  withCrowd(async ({ open, request }) => {
    const requestId = await request();
    const [whole, refreshed] = [await open(), await open('', 'ann', { 'x-refresh': '1' })];
    for (const part of ['<title>(1) Waiting for a decision', 'data-live="list"', 'data-events=', requestId]) {
      assert.ok(refreshed.includes(part), part);
    }
    for (const part of ['<script>', '<style>', 'Signed in as', 'aria-label="Status"', '<form class="filter"']) {
      assert.deepEqual([whole.includes(part), refreshed.includes(part)], [true, false], part);
    }
  }));
