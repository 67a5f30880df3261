import * as assert from 'node:assert/strict';
import { svc as run, startCli } from './kit/cli.ts';
import { testGateAndProject } from './kit/gate-and-project.ts';
import { Browser } from './kit/oidc.ts';
import { assertExit, type Project } from './kit/project.ts';
import type { GateUnderTest } from './suites/gate-client.ts';

// `svc approvals inbox`, with a store that another process has requests in.

interface Inbox extends GateUnderTest {
  readonly shop: Project;
  /** Starts the command, for `body` with the link that it prints; then stops it. */
  opened(
    body: (link: string, stderr: () => string) => Promise<void>,
    env?: Readonly<Record<string, string>>,
  ): Promise<void>;
}

function test(name: string, body: (inbox: Inbox) => Promise<void>): void {
  testGateAndProject(name, ({ gate, shop }) =>
    body({
      ...gate,
      shop,
      async opened(visit, env) {
        const running = startCli(['approvals', 'inbox'], shop.root, [], env);
        await running.untilStderr('/inbox?link=');
        const [link = ''] = /http:\S+/.exec(running.stderr()) ?? [];
        try {
          await visit(link, running.stderr);
        } finally {
          running.child.kill('SIGTERM');
        }
        assertExit(await running.ended);
      },
    }),
  );
}

/** As in a pipeline whose secret is not set: nobody's token. */
const EMPTY = { SVC_TOKEN: '' };

test('one browser gets in by the link, once, and decides as on the command line', ({ opened, refund, svc }) =>
  opened(async (link, stderr) => {
    const inbox = link.replace(/\?.*/, '');
    const { origin, pathname } = new URL(inbox);
    const { request, outcome } = await refund({ orderId: '7', amount: 5 });
    assert.equal((await fetch(link, { method: 'HEAD', redirect: 'manual' })).status, 401, 'looking does not use it up');
    const browser = new Browser();
    for (const url of [
      origin,
      `${origin}/inbox`,
      `${link.slice(0, -5)}${link.at(-5) === 'x' ? 'y' : 'x'}${link.slice(-4)}`,
    ]) {
      await browser.open(url);
      assert.equal(browser.page.status, 401, url);
    }
    const entered = await fetch(link, { redirect: 'manual' });
    const [cookie = ''] = entered.headers.getSetCookie();
    assert.ok(cookie.includes(`; Path=${pathname.replace(/\/inbox$/, '')};`), 'no other port of this host gets it');
    const [name = '', value = ''] = cookie.split(/[=;]/);
    browser.setCookie(origin, name, value);
    await browser.open(link);
    assert.deepEqual([browser.page.status, browser.page.url], [200, inbox], 'the same browser may open it again');
    assert.match(browser.page.text, /Signed in as command line, [\s\S]*refund/);
    const second = new Browser();
    for (const url of [link, inbox, `${inbox}/${request.requestId}`]) {
      await second.open(url);
      assert.equal(second.page.status, 401, url);
      assert.doesNotMatch(second.page.text, /refund|payouts/);
    }
    await browser.follow('refund');
    await browser.submit('name="view"', { action: 'approve', reason: 'fine' });
    assert.match(browser.page.text, /approved by command line, /);
    assert.equal((await outcome).status, 'completed');
    const { decidedBy, deciders } = await svc.approvals.get(request.requestId);
    assert.match(decidedBy ?? '', /^command line, /);
    assert.equal(deciders, undefined, 'nobody was verified');
    assert.match(stderr(), /Nobody verifies who you are.*SVC_TOKEN/);
  }, EMPTY));

test('with SVC_TOKEN, its owner decides', async ({ opened, refund, svc }) => {
  const { token } = await svc.people.createToken({ id: 'ann', groups: [] }, { validForMs: 600_000 });
  const { request, outcome } = await refund({ orderId: '7', amount: 5 });
  await opened(
    async (link, stderr) => {
      assert.doesNotMatch(stderr(), /Nobody verifies/);
      const browser = new Browser();
      await browser.open(link);
      assert.match(browser.page.text, /Signed in as ann/);
      await browser.follow('refund');
      await browser.submit('name="view"', { action: 'reject', reason: 'no' });
    },
    { SVC_TOKEN: token },
  );
  assert.equal((await outcome).status, 'rejected');
  const { deciders } = await svc.approvals.get(request.requestId);
  assert.deepEqual(deciders, [{ id: 'ann', groups: [], verifiedBy: 'token' }]);
});

test('it does not start with a token that is not valid, nor for an agent', async ({ shop }) => {
  const invalid = await run(['approvals', 'inbox'], { cwd: shop.root, env: { SVC_TOKEN: 'svcp_wrong' } });
  assert.deepEqual([invalid.status, invalid.stdout], [2, '']);
  assert.match(invalid.stderr, /token_invalid/);
  const agent = await run(['approvals', 'inbox', '--env', 'prd'], { cwd: shop.root, env: { CLAUDECODE: '1' } });
  assert.match(agent.stderr, /agent_may_not_decide/);
});
