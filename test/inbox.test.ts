import * as assert from 'node:assert/strict';
import { gzipSync } from 'node:zlib';
import { HtmlForm } from './kit/html-form.ts';
import { approve, INBOX, withInbox } from './kit/inbox.ts';
import type { Browser } from './kit/oidc.ts';
import { ORIGIN, withSignIn } from './kit/sign-in.ts';
import { test } from './kit/test.ts';
import { callbackUrlOf } from './suites/gate-client.ts';

// People in the inbox, with a browser without scripts that follows redirects and keeps cookies.

test('a person signs in with a token, sees what waits, reads a request, approves it with a change, and signs out', () =>
  withInbox(async ({ signedIn, refund, svc, refunds }) => {
    const { request, outcome } = await refund({ orderId: '77', amount: 5 });
    const browser = await signedIn('ann@acme.example', 'finance');
    assert.equal(browser.page.status, 200);
    assert.doesNotMatch([...browser.cookiesOf(ORIGIN)].join(), /svcp_/, 'nobody who copies the cookie has the token');
    assert.match(browser.page.text, /<title>\(1\) Waiting for a decision · shop \(dev\)<\/title>/);
    assert.match(browser.page.text, /Signed in as ann@acme\.example/);
    await browser.follow('refund');
    assert.equal(browser.page.url, `${INBOX}/${request.requestId}`);
    assert.match(browser.page.text, /Pays money back\.[\s\S]*&quot;orderId&quot;: &quot;77&quot;/);
    const form = () => new HtmlForm(browser.page.text);
    const send = (fields: URLSearchParams) => browser.submit('name="view"', Object.fromEntries(fields));
    await send(form().fill('reason', 'half of it').fill('p.1', '-2').press('Approve'));
    assert.equal(browser.page.status, 422);
    assert.match(browser.page.text, /aria-invalid/);
    await send(form().fill('p.1', '2').press('Approve'));
    assert.match(
      browser.page.text,
      /<h1>Approve with changes: refund · payouts<\/h1>[\s\S]*>Waiting, [\s\S]*Nothing was decided yet[\s\S]*Your reason<\/h2>\s*<blockquote>half of it/,
    );
    await send(form().press('Back to the form'));
    await send(form().press('Approve'));
    await send(form().press('Approve with these changes'));
    assert.deepEqual([browser.page.status, browser.page.url], [200, `${INBOX}/${request.requestId}`]);
    assert.match(browser.page.text, /approved by ann@acme\.example[\s\S]*half of it/);
    assert.equal((await outcome).status, 'completed');
    assert.deepEqual(
      refunds.map((one) => ({ ...(one as object) })),
      [{ orderId: '77', amount: 2 }],
    );
    const { deciders, events } = await svc.approvals.get(request.requestId);
    assert.deepEqual(deciders, [{ id: 'ann@acme.example', groups: ['finance'], verifiedBy: 'token' }]);
    assert.equal(events.find(({ type }) => type === 'approved')?.from, 'inbox');
    await browser.follow('Inbox');
    assert.match(browser.page.text, /Nothing is waiting for a decision/);
    await browser.submit('value="sign-out"');
    assert.deepEqual([browser.page.status, browser.cookiesOf(ORIGIN).size], [401, 0]);
    assert.match(browser.page.text, /Sign in to the inbox/);
  }));

test('sensitive parameters are shown to who asks for them, and the history says so', () =>
  withInbox(async ({ signedIn, refund, svc }) => {
    const { request } = await refund({ orderId: '1', amount: 5, card: '4242-secret' });
    const browser = await signedIn('ann', 'finance');
    await browser.follow('refund');
    assert.doesNotMatch(browser.page.text, /4242-secret|name="view"/);
    await browser.submit('value="show"', { action: 'show' });
    assert.match(browser.page.text, /4242-secret[\s\S]*name="view"[\s\S]*revealed by ann/);
    await browser.submit('name="view"', { action: 'reject', reason: 'no' });
    assert.match(browser.page.text, /rejected by ann/);
    assert.doesNotMatch(browser.page.text, /4242-secret/, 'not after the decision');
    const { events } = await svc.approvals.get(request.requestId);
    assert.deepEqual(
      events.slice(0, 3).map(({ type, principal }) => [type, principal?.id]),
      [
        ['requested', undefined],
        ['revealed', 'ann'],
        ['rejected', 'ann'],
      ],
    );
  }));

test('the words of the model are shown as a quotation, with hidden characters written out, on both pages', () =>
  withInbox(async ({ signedIn, gate, svc, handler }) => {
    const modelText = 'The order arrived broken.\n<h2>Approved</h2> \u202e';
    const call = { tool: 'refund', parameters: { orderId: '7', amount: 5 }, executionId: 'one', toolCallId: '1' };
    await gate.run({ ...call, modelText }, { waitMs: 0 });
    const { records } = await svc.approvals.list();
    assert.equal(records.length, 1);
    const [record] = records;
    assert.ok(record && !('modelText' in record));
    const browser = await signedIn('ann', 'finance');
    assert.doesNotMatch(browser.page.text, /arrived broken/);
    await browser.follow('refund');
    const page = await handler(
      new Request(await callbackUrlOf(svc, record), { method: 'POST', body: new URLSearchParams({ action: 'show' }) }),
    );
    for (const text of [browser.page.text, await page.text()]) {
      assert.match(
        text,
        /What the model said before the call<\/h2>\s*<blockquote>The order arrived broken\.\n&lt;h2&gt;Approved&lt;\/h2&gt; \\u\{202e\}<\/blockquote>/,
      );
    }
    assert.equal((await svc.approvals.get(record.requestId)).modelText, modelText);
    await svc.approvals.signal({ signal: 'reject', payload: { requestId: record.requestId } }, { actor: 'me' });
  }));

test('who has no token, a wrong one, a revoked one or one of no member gets no list and no request', () =>
  withInbox(async ({ newBrowser, tokenOf, refund, svc, signedIn }) => {
    const { request } = await refund();
    const url = `${INBOX}/${request.requestId}`;
    const assertNothingShown = (browser: Browser, status: number) => {
      assert.equal(browser.page.status, status);
      assert.doesNotMatch(browser.page.text, /refund|payouts|1234/);
    };
    const browser = newBrowser();
    for (const page of [INBOX, url, `${INBOX}?status=approved`]) {
      await browser.open(page);
      assertNothingShown(browser, 401);
    }
    await browser.submit('name="token"', { token: 'svcp_wrong' });
    assertNothingShown(browser, 401);
    assert.match(browser.page.text, /role="alert">The token is not valid/);
    await browser.submit('name="token"', { token: await tokenOf('bo', 'sales') });
    assertNothingShown(browser, 403);
    assert.equal(browser.cookiesOf(ORIGIN).size, 0, 'nobody is signed in without access');
    const revoked = await signedIn('cy');
    assert.match(revoked.page.text, /refund/);
    for await (const { tokenId, principal } of svc.people.tokens()) {
      if (principal === 'cy') await svc.people.revokeToken(tokenId);
    }
    await revoked.open(url);
    assertNothingShown(revoked, 401);
    assert.match(revoked.page.text, /Your session has ended/);
  }));

test('a form decides only as the person whom its page has shown, from this site, and with the proof of its page', () =>
  withInbox(async ({ handler, signedIn, refund, svc }) => {
    const { request } = await refund();
    const browser = await signedIn('ann', 'finance');
    const cookie = [...browser.cookiesOf(ORIGIN)].map(([name, value]) => `${name}=${value}`).join('; ');
    await browser.follow('refund');
    const [, view = ''] = /name="view" value="([^"]+)"/.exec(browser.page.text) ?? [];
    const post = async (fields: object, headers: Record<string, string> = {}) => {
      const response = await handler(
        new Request(`${INBOX}/${request.requestId}`, {
          method: 'POST',
          headers: {
            cookie,
            'content-type': 'application/x-www-form-urlencoded',
            'sec-fetch-site': 'same-origin',
            ...headers,
          },
          body: new URLSearchParams({ action: 'approve', view, person: 'ann', ...fields }).toString(),
        }),
      );
      return [response.status, (await svc.approvals.get(request.requestId)).status];
    };
    assert.deepEqual(await post({}, { 'sec-fetch-site': 'cross-site' }), [403, 'waiting']);
    assert.deepEqual(await post({}, { 'sec-fetch-site': 'same-site' }), [403, 'waiting']);
    assert.deepEqual(await post({}, { 'content-type': 'text/plain' }), [400, 'waiting']);
    assert.deepEqual(await post({}, { cookie: '' }), [401, 'waiting']);
    assert.deepEqual(await post({ view: '' }), [400, 'waiting']);
    assert.deepEqual(await post({ view: `${view.slice(0, 20)}${view[20] === 'x' ? 'y' : 'x'}${view.slice(21)}` }), [
      400,
      'waiting',
    ]);
    assert.deepEqual(await post({ person: 'bo' }), [401, 'waiting']);
    assert.deepEqual(await post({ person: '' }), [401, 'waiting']);
    assert.deepEqual(await post({ action: 'approved' }), [400, 'waiting']);
    assert.deepEqual(await post({ modifiedParams: '{"amount":-1}' }), [422, 'waiting']);
    assert.deepEqual(await post({}), [303, 'approved']);
    assert.deepEqual(await post({ action: 'reject' }), [409, 'approved'], 'a late form gets what was decided');
  }));

test('what the model writes stays text', () =>
  withInbox(async ({ signedIn, refund }) => {
    const { request } = await refund({ orderId: '"><script>alert(1)</script>', amount: 1 });
    const browser = await signedIn('<b>ann</b>', 'finance');
    for (const url of [INBOX, `${INBOX}/${request.requestId}`, `${INBOX}?text=%22%3E%3Cscript%3E&agent=%3Cb%3E`]) {
      await browser.open(url);
      assert.equal(browser.page.status, 200);
      assert.doesNotMatch(browser.page.text, /<script>(?!\(\(\) => \{\n {2}const main)|<b>/);
    }
  }));

test('the page of a request has the newest calls of its execution, and says if there are more', () =>
  withInbox(async ({ signedIn, gate, refund }) => {
    const browser = await signedIn('ann', 'finance');
    const open = async (calls: number) => {
      const { request } = await refund();
      const { executionId } = request;
      for (let call = 0; call < calls; call++) {
        const parameters = { orderId: `${call}`, amount: 5 };
        await gate.run({ tool: 'refund', parameters, executionId, toolCallId: `${call}` }, { waitMs: 0 });
      }
      await browser.open(`${INBOX}/${request.requestId}`);
      const [, list = ''] = browser.page.text.split('Other calls of this execution');
      return [[...list.matchAll(/<li><a /g)].length, list.includes('Older calls are not listed here.')];
    };
    assert.deepEqual(await open(0), [0, false]);
    assert.deepEqual(await open(49), [49, false]);
    assert.deepEqual(await open(50), [50, true]);
  }));

test('the pages have one script of their own, and a browser loads at most 8 KiB for it', () =>
  withInbox(async ({ signedIn, refund }) => {
    const { request } = await refund();
    const browser = await signedIn('ann', 'finance');
    for (const url of [INBOX, `${INBOX}/${request.requestId}`]) {
      await browser.open(url);
      const scripts = [...browser.page.text.matchAll(/<script>(.*?)<\/script>/gs)].map(([, script = '']) => script);
      assert.equal(scripts.length, 1);
      assert.ok(gzipSync(scripts.join()).length <= 8 * 1024);
      assert.doesNotMatch(browser.page.text, /<(?:script|link|img|iframe|video|audio)[^>]* (?:src|href)="(?!data:)/);
    }
  }));

test('in the list, the name of a parameter does not look like other parameters', () =>
  withInbox(async ({ signedIn, svc }) => {
    const tool = { tag: 'pay', inputSchema: { type: 'object' }, requiresConfirmation: true, handler: async () => null };
    const gate = svc.gate({ agentTag: 'payouts', tools: [tool], humanInLoop: { enabled: true } } as never);
    const call = {
      tool: 'pay',
      parameters: { 'amount=5 note': 'x', amount: 500 },
      executionId: 'one',
      toolCallId: '1',
    };
    await gate.run(call, { waitMs: 0 });
    const browser = await signedIn('ann', 'finance');
    assert.match(browser.page.text, /<code>&quot;amount=5 note&quot;=&quot;x&quot; amount=500<\/code>/);
  }));

test('the filter is in the URL; a query that is not known is refused', () =>
  withInbox(async ({ signedIn, refund }) => {
    await refund({ orderId: '1', amount: 1 });
    const browser = await signedIn('ann', 'finance');
    const count = async (query: string) => {
      await browser.open(`${INBOX}?${query}`);
      return browser.page.status === 200 ? [...browser.page.text.matchAll(/<li>/g)].length : browser.page.status;
    };
    for (const query of [
      '',
      'agent=payouts',
      'tool=refund',
      'text=pays',
      'mine=1',
      'mine=0',
      'status=waiting&agent=',
    ]) {
      assert.equal(await count(query), query === 'text=pays' ? 0 : 1, query);
    }
    await browser.open(`${INBOX}?status=waiting&tool=other`);
    await browser.follow('Clear the filter');
    assert.equal(browser.page.url, `${INBOX}?status=waiting`);
    for (const query of ['agent=other', 'tool=other', 'status=approved']) assert.equal(await count(query), 0, query);
    for (const query of ['status=x', 'limit=1', 'agent=a&agent=b', 'cursor=x', 'mine=yes'])
      assert.equal(await count(query), 400, query);
  }));

test('more than a page of requests is read page by page', () =>
  withInbox(async ({ signedIn, refund }) => {
    const ids = await Promise.all(
      Array.from({ length: 25 }, async () => (await refund({ orderId: '1', amount: 1 })).request.requestId),
    );
    const browser = await signedIn('ann', 'finance');
    const shown = () => [...browser.page.text.matchAll(/inbox\/(apr_[^"]+)"/g)].map(([, id]) => id);
    const first = shown();
    assert.equal(first.length, 20);
    await browser.follow('Next page');
    assert.deepEqual([...first, ...shown()].sort(), ids.sort());
    assert.doesNotMatch(browser.page.text, /Next page/);
    await browser.follow('First page');
    assert.deepEqual(shown(), first);
  }));

test('a change of a sensitive parameter is named, and its value is shown to who asks, also after the decision', () =>
  withInbox(async ({ signedIn, refund, svc }) => {
    const { request } = await refund({ orderId: '1', amount: 5, card: '4242-secret' });
    await svc.approvals.signal(
      { signal: 'approve', payload: { requestId: request.requestId, modifiedParams: { card: '5353-secret' } } },
      { actor: 'elsewhere', reviewToken: (await svc.approvals.get(request.requestId, { reveal: true })).reviewToken },
    );
    const browser = await signedIn('ann', 'finance');
    await browser.open(`${INBOX}/${request.requestId}`);
    assert.match(browser.page.text, /<h2>Changes<\/h2>\s*<p>card: changed, and masked here\.<\/p>/);
    assert.doesNotMatch(browser.page.text, /\d-secret/);
    await browser.submit('value="show"', { action: 'show' });
    assert.match(browser.page.text, /4242-secret[\s\S]*5353-secret/);
  }));

test('who comes back from the provider with the wrong state keeps nobody else from signing in', () =>
  withSignIn(
    async ({ newBrowser, handler }) => {
      const begun = await handler(new Request(`${INBOX}?sign-in=1&text=${'x'.repeat(9_000)}`));
      const cookie = begun.headers
        .getSetCookie()
        .map((line) => line.split(';')[0])
        .join('; ');
      assert.notEqual(cookie, '', 'also for a page with a long URL');
      const back = new Request(`${ORIGIN}/svc/approvals/signed-in?code=x&state=wrong`, { headers: { cookie } });
      let status = 401;
      for (let tries = 0; tries < 700; tries++) status = (await handler(back)).status;
      assert.equal(status, 429);
      const browser = newBrowser();
      await browser.open(INBOX);
      await browser.signIn('ann');
      assert.equal(browser.page.status, 200);
    },
    { more: { server: { role: 'finance' } } },
  ));

test('where there is a provider, a person signs in there and is back on the page that they asked for', () =>
  withSignIn(
    async ({ newBrowser, refund }) => {
      const { request } = await refund({ orderId: '1', amount: 5 });
      const browser = newBrowser();
      await browser.open(`${INBOX}/${request.requestId}`);
      assert.equal(browser.page.status, 401);
      await browser.signIn('ann');
      assert.equal(browser.page.url, `${INBOX}/${request.requestId}`);
      await approve(browser);
      assert.match(browser.page.text, /approved by ann@acme\.example/);
      await browser.open(INBOX);
      await browser.submit('value="sign-out"');
      assert.equal(browser.page.status, 401);
      const other = newBrowser();
      await other.open(INBOX);
      await other.signIn('bo');
      assert.equal(other.page.status, 403);
      await other.submit('value="sign-out"');
      assert.equal(other.cookiesOf(ORIGIN).size, 0);
    },
    { more: { server: { role: 'finance' } } },
  ));

test('without approvals.server there is no inbox', () =>
  withInbox(
    async ({ newBrowser }) => {
      const browser = newBrowser();
      await browser.open(INBOX);
      assert.equal(browser.page.status, 404);
    },
    { callbackBase: `${ORIGIN}/svc` },
  ));
