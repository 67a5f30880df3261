import * as assert from 'node:assert/strict';
import { EventReader } from './kit/event-reader.ts';
import { INBOX, SERVER } from './kit/inbox.ts';
import { Browser } from './kit/oidc.ts';
import { ownServer, unavailable } from './kit/own-postgresql.ts';
import { LONG } from './kit/project.ts';
import { ORIGIN } from './kit/sign-in.ts';
import { test } from './kit/test.ts';
import { withGate } from './suites/gate-client.ts';

// The server of the store is killed while people use the inbox.

const NOT_AVAILABLE = /The approval store, or what verifies people, is not available\./;

const name = 'while the store is down, who signs in, reads or decides gets a clear page; afterwards nothing is lost';
const missing = unavailable();
if (missing !== undefined) test.skip(name, missing);
else
  test(
    name,
    async () => {
      const store = await ownServer();
      try {
        const config = { databases: { main: { dialect: 'postgresql', url: { dev: store.url() } } } };
        const approvals = { ...SERVER, store: { database: 'main' } };
        await withGate({ approvals, config } as never, async ({ svc, refund, refunds }) => {
          const handler = svc.approvals.handler();
          const newBrowser = () => new Browser({ [ORIGIN]: handler });
          const tokenOf = async (id: string) =>
            (await svc.people.createToken({ id, groups: ['finance'] }, { validForMs: 600_000 })).token;
          const [ann, bo, cy] = [newBrowser(), newBrowser(), newBrowser()];
          const [annToken, boToken] = [await tokenOf('ann'), await tokenOf('bo')];
          await ann.open(INBOX);
          await ann.submit('name="token"', { token: annToken });
          const { request, outcome } = await refund({ orderId: '1', amount: 5 });
          await ann.open(`${INBOX}/${request.requestId}`);
          const decision = ann.page;
          const cookies = [...ann.cookiesOf(ORIGIN)];
          const headers = { cookie: cookies.map(([name, value]) => `${name}=${value}`).join('; ') };
          await bo.open(INBOX);

          const reader = new EventReader(await handler(new Request(`${INBOX}/events`, { headers })));
          await reader.take(1);
          await store.kill();
          // Who is not signed in needs no store to be asked to.
          assert.equal((await cy.open(INBOX)).status, 401);
          const [opened, api] = await Promise.all([
            handler(new Request(INBOX, { headers })),
            handler(new Request(`${ORIGIN}/svc/api/v1/count`, { headers: { authorization: `Bearer ${annToken}` } })),
            bo.submit('name="token"', { token: boToken }),
            ann.submit('name="view"', { action: 'approve', reason: 'fine' }),
          ]);
          assert.equal(opened.status, 503);
          const page = await opened.text();
          assert.match(page, NOT_AVAILABLE);
          assert.match(page, /Reload this page in a moment\./);
          assert.doesNotMatch(page, /decided/);
          assert.ok(Number(opened.headers.get('retry-after')) > 0);
          assert.equal(api.status, 503);
          assert.match(await api.text(), /^\{"error":"store_unavailable"/);
          for (const { page } of [ann, bo]) {
            assert.equal(page.status, 503);
            assert.match(page.text, NOT_AVAILABLE);
            assert.match(page.text, /the browser sends what you entered again/);
          }
          assert.deepEqual([...bo.cookiesOf(ORIGIN)], [], 'nobody is signed in');
          assert.deepEqual([...ann.cookiesOf(ORIGIN)], cookies, 'nobody is signed out');

          // Open pages say so too: they load nothing as long as nothing changes.
          while ((await reader.take(1))[0]?.type !== 'outage');
          await store.start();
          assert.equal((await reader.take(1))[0]?.type, 'changed');
          await reader.close();
          assert.equal((await ann.open(INBOX)).status, 200);
          assert.match(ann.page.text, /refund/);
          await bo.open(INBOX);
          await bo.submit('name="token"', { token: boToken });
          assert.equal(bo.page.status, 200);
          assert.match(bo.page.text, /Signed in as bo/);
          // The same form again, as a reload sends it.
          ann.page = decision;
          await ann.submit('name="view"', { action: 'approve', reason: 'fine' });
          assert.equal(ann.page.status, 200);
          assert.equal((await outcome).status, 'completed');
          assert.equal(refunds.length, 1);
          const { status, decidedBy, decisionReason } = await svc.approvals.get(request.requestId);
          assert.deepEqual([status, decidedBy, decisionReason], ['approved', 'ann', 'fine']);
        });
      } finally {
        await store.remove();
      }
    },
    LONG,
  );
