import * as assert from 'node:assert/strict';
import type { ServerConfig } from '../config/define.ts';
import { DETACH } from '../core/approval/call.ts';
import { type InboxQuery, inboxPage, inboxPageAndCount } from '../core/approval/inbox.ts';
import { countWaiting } from '../core/approval/list-approvals.ts';
import { createPrincipal } from '../core/approval/principal.ts';
import { newRequestId } from '../core/approval/request.ts';
import { approvals } from '../core/approval/schema.ts';
import type { ApprovalService } from '../core/approval/service.ts';
import { MemoryStore } from '../plugins/stores/memory.ts';
import { INBOX, SERVER, withInbox } from './kit/inbox.ts';
import { ORIGIN } from './kit/sign-in.ts';
import { test } from './kit/test.ts';
import { Bank, compileTestTools, createGate, openApprovalProcess, refund, startCall } from './suites/approval-setup.ts';
import { expectError } from './suites/expect-error.ts';

/** A store with requests that end after each of these times, of agents a and b in turn; returns their ids in that order. */
async function withRequests(
  timeouts: readonly number[],
  body: (service: ApprovalService, ids: readonly string[], tick: (ms: number) => void) => Promise<void>,
): Promise<void> {
  let now = Date.parse('2026-01-01T00:00:00Z');
  const app = await openApprovalProcess(new MemoryStore(() => now));
  const tools = compileTestTools(new Bank().tool());
  const ids: string[] = [];
  for (const [index, approvalTimeout] of timeouts.entries()) {
    const detach = new AbortController();
    const gate = createGate(app, tools, { agentTag: index % 2 === 0 ? 'a' : 'b', humanInLoop: { approvalTimeout } });
    ids.push((await startCall(gate, refund(), { signal: detach.signal })).request.requestId);
    detach.abort(DETACH);
  }
  try {
    await body(app.service, ids, (ms) => {
      now += ms;
    });
  } finally {
    await app.service.close();
  }
}

/** The pages of a list, to its end. */
async function pagesOf(service: ApprovalService, query: Partial<InboxQuery>): Promise<string[][]> {
  const pages: string[][] = [];
  let cursor: string | undefined;
  do {
    const page = await inboxPage(service, { status: 'waiting', limit: 3, ...query, cursor });
    pages.push(page.records.map(({ requestId }) => requestId));
    cursor = page.cursor;
  } while (cursor !== undefined);
  return pages;
}

test('what waits comes by its deadline, page by page, also where many end at the same moment', () => {
  // More with one deadline than a page of a shard has.
  const timeouts = [9_000, 5_000, ...Array<number>(40).fill(7_000), 3_000, 8_000, 6_000];
  return withRequests(timeouts, async (service, ids) => {
    const at = (ms: number) => ids.filter((_, index) => timeouts[index] === ms).sort();
    const expected = [3_000, 5_000, 6_000, 7_000, 8_000, 9_000].flatMap(at);
    for (const limit of [1, 2, 3, 7, 100]) {
      const pages = await pagesOf(service, { limit });
      assert.deepEqual(pages.flat(), expected);
      assert.ok(
        pages.slice(0, -1).every((page) => page.length === limit),
        'only the last page is not full',
      );
      assert.notEqual(pages.at(-1)?.length, 0);
    }
    assert.deepEqual(
      (await pagesOf(service, { agentTag: 'b' })).flat(),
      expected.filter((id) => ids.indexOf(id) % 2),
    );
  });
});

test('the number that waits is exact up to its limit, without what has passed its deadline', () =>
  withRequests([2_000, ...Array<number>(40).fill(30_000)], async (service, _ids, tick) => {
    const counts = [1, 2, 39, 40, 41, 42, 1_000];
    const expected = (waiting: number) =>
      counts.map((max) => (max > waiting ? { waiting } : { waiting: max, atLeast: true }));
    assert.deepEqual(await Promise.all(counts.map((max) => countWaiting(service, max))), expected(41));
    tick(5_000);
    assert.deepEqual(await Promise.all(counts.map((max) => countWaiting(service, max))), expected(40));
    tick(30_000);
    assert.deepEqual(await countWaiting(service), { waiting: 0 });
  }));

test('a page has the number that waits, which is read from one shard where that or the page has enough', () =>
  withRequests([9_000], async (service, [id = '']) => {
    const { rows } = service;
    const page = rows.page.bind(rows);
    let shardsRead: number[] = [];
    rows.page = (index, query) => {
      if (query.anyOf || query.unconfirmed) shardsRead.push(query.anyOf?.length ?? 1);
      return page(index, query);
    };
    const read = async (query: Partial<InboxQuery>) => {
      shardsRead = [];
      const [, count] = await inboxPageAndCount(service, { status: 'waiting', limit: 3, ...query }, 30);
      return [count.waiting, ...shardsRead.sort((a, b) => b - a)];
    };
    assert.deepEqual(await read({}), [1, 16, 1]);
    assert.deepEqual(await read({ tool: 'other' }), [1, 16, 16, 1]);
    const row = await service.read(id);
    assert.ok(row);
    for (let index = 0; index < 30; index++)
      await rows.insert({ ...row.record, requestId: newRequestId(), shard: index < 6 ? 1 : 0 });
    assert.deepEqual(await read({}), [30, 16, 16, 1]);
    for (let index = 0; index < 6; index++) await rows.insert({ ...row.record, requestId: newRequestId(), shard: 0 });
    assert.deepEqual(await read({}), [30, 16, 1]);
  }));

test('what has passed its deadline does not wait', () =>
  withRequests([1_000, 10_000, 60_000], async (service, ids, tick) => {
    tick(20_000);
    assert.deepEqual(await pagesOf(service, {}), [[ids[2]]]);
    tick(60_000);
    assert.deepEqual(await pagesOf(service, {}), [[]]);
  }));

test('what does not wait any more comes the newest first', () =>
  withRequests([1_000, 1_000, 60_000, 1_000, 1_000, 1_000], async (service, ids, tick) => {
    tick(2_000);
    await service.clock.readNow();
    for (const id of ids) await service.getExpiringIfDue(id);
    const expected = ids.filter((_, index) => index !== 2).reverse();
    for (const limit of [1, 2, 5, 6]) {
      assert.deepEqual((await pagesOf(service, { status: 'rejected', limit })).flat(), expected);
    }
    assert.deepEqual((await pagesOf(service, { status: 'rejected', agentTag: 'b' })).flat(), [ids[5], ids[3], ids[1]]);
  }));

test('a filter looks at a thousand requests for a page, and the next page begins after them', () =>
  withRequests([1_000, 60_000], async (service, [first = '', last = '']) => {
    const found = await service.read(first);
    assert.ok(found);
    const rows = service.backend.records(approvals);
    for (let index = 0; index < 1_200; index++) {
      const requestId = `${first.slice(0, -12)}${index.toString(16).padStart(12, '0')}`;
      await rows.insert({
        ...found.record,
        requestId,
        shard: index % 16,
        expiresAt: new Date(found.record.expiresAt.getTime() + index),
      });
    }
    const page = await inboxPage(service, { status: 'waiting', agentTag: 'b', limit: 3 });
    assert.deepEqual(page.records, []);
    assert.ok(page.cursor);
    assert.deepEqual((await pagesOf(service, { agentTag: 'b' })).flat(), [last]);
  }));

test('a text is found in the tool, the agent, the reason and the id, in capitals or not', () =>
  withRequests([1_000, 2_000], async (service, [first = '', second = '']) => {
    const found = async (text: string) => (await pagesOf(service, { text })).flat();
    assert.deepEqual(await found('REFUND'), [first, second]);
    assert.deepEqual(await found(second.slice(-12).toUpperCase()), [second]);
    assert.deepEqual(await found('nothing like it'), []);
    assert.deepEqual((await pagesOf(service, { tool: 'refund' })).flat(), [first, second]);
    assert.deepEqual((await pagesOf(service, { tool: 'refun' })).flat(), []);
  }));

test('without a rule everybody may decide', () =>
  withRequests([1_000], async (service, ids) => {
    const decidableBy = createPrincipal({ id: 'ann', groups: [] }, 'token');
    assert.deepEqual((await pagesOf(service, { decidableBy })).flat(), ids);
  }));

test('a cursor that no page had is refused', () =>
  withRequests([], async (service) => {
    const id = 'apr_0192f0c1-7b1e-7cc0-8f3e-3a1f0d9b2c11';
    // The second but last one is in the year 10000, which a store may not know.
    for (const cursor of ['', 'x', '1.apr_', `253402300800000.${id}`, `99999999999999999.${id}`]) {
      await expectError(inboxPage(service, { status: 'waiting', limit: 1, cursor }), 'value_invalid');
    }
  }));

test('the list has links to the inboxes of other environments, which keep the filter', async () => {
  const environments = { prd: 'https://acme.example/svc/', test: undefined, dev: `${ORIGIN}/svc` };
  const opened = (body: (text: string) => void, server: ServerConfig) =>
    withInbox(
      async ({ signedIn }) => {
        const browser = await signedIn('cy');
        await browser.open(`${INBOX}?status=approved&agent=a%26b`);
        body(browser.page.text);
      },
      { ...SERVER, server },
    );
  const role = 'deciders';
  await opened((text) => assert.doesNotMatch(text, /Environment/), { role, environments: { dev: environments.dev } });
  await opened(
    (text) => {
      const [, links = ''] = /aria-label="Environment">(.*?)<\/nav>/s.exec(text) ?? [];
      const found = [...links.matchAll(/href="([^"]+)"([^>]*)>(\w+)/g)].map(([, ...parts]) => parts);
      const filter = '?status=approved&amp;agent=a%26b';
      assert.deepEqual(found, [
        [`${INBOX}${filter}`, ' aria-current="page"', 'dev'],
        [`https://acme.example/svc/inbox${filter}`, '', 'prd'],
      ]);
    },
    { role, environments },
  );
});
