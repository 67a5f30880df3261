import * as assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import type { ApprovalsConfig } from '../config/define.ts';
import type { Svc } from '../config/sdk/index.ts';
import { DEFAULT_WIDTH } from '../core/display/fold.ts';
import { jsonLines } from '../core/display/json.ts';
import { chromiumTests } from './kit/chromium.ts';
import { withHostileRequest } from './kit/hostile-request.ts';
import { assertPresentable } from './kit/page-checks.ts';
import { ORIGIN } from './kit/sign-in.ts';
import { test } from './kit/test.ts';
import { withGate } from './suites/gate-client.ts';

// Texts of models in the inbox, in a real browser: markup, and letters that are written from right to left.

const INBOX = `${ORIGIN}/svc/inbox`;
const SERVER: ApprovalsConfig = { roles: { finance: ['group:finance'] }, server: { role: 'finance' } };

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();

async function signIn(page: Page, svc: Svc): Promise<void> {
  const { token } = await svc.people.createToken({ id: 'ann', groups: ['finance'] }, { validForMs: 600_000 });
  await page.goto(INBOX);
  await page.getByLabel('Token').fill(token);
  await press(page, 'Sign in with the token');
  await page.getByText('Signed in as ann').waitFor();
}

/** Texts of an element as they are drawn, from left to right; each occurs in it once. */
function asDrawn(page: Page, selector: string, texts: readonly string[]): Promise<readonly string[]> {
  return page.evaluate(`{
    const root = document.querySelector(${JSON.stringify(selector)});
    const nodes = [];
    for (let walker = document.createTreeWalker(root, 4); walker.nextNode(); ) nodes.push(walker.currentNode);
    const leftOf = (text) => {
      const node = nodes.find(({ data }) => data.includes(text));
      const range = new Range();
      range.setStart(node, node.data.indexOf(text));
      range.setEnd(node, node.data.indexOf(text) + text.length);
      return range.getBoundingClientRect().left;
    };
    const places = ${JSON.stringify(texts)}.map((text) => [leftOf(text), text]);
    places.sort(([one], [other]) => one - other).map(([, text]) => text);
  }`);
}

chromiumTests('texts in the inbox', (withPage) => {
  test('whatever a model writes is text on every page, and fits 320 pixels', () =>
    withHostileRequest(
      ({ svc, request, payloads }) =>
        withPage({ handler: svc.approvals.inbox() }, async (page) => {
          const assertHarmless = async () => {
            assert.equal(await page.locator('img, svg, iframe, [onload], [onerror]').count(), 0);
            assert.equal(await page.locator('script').count(), 1);
            assert.equal(await page.evaluate('"ran" in window'), false);
          };
          await signIn(page, svc);
          await page.locator('.requests').waitFor();
          await assertHarmless();
          await assertPresentable(page, 'inbox-hostile-list');
          await page.goto(`${INBOX}/${request.requestId}`);
          await page.getByText('Change the parameters').click();
          const shown = await page.locator('body').innerText();
          for (const payload of payloads) assert.ok(shown.includes(payload), payload);
          await assertHarmless();
          await assertPresentable(page, 'inbox-hostile');
          await page.getByLabel('Reason').fill(payloads.join(''));
          await press(page, 'Approve');
          await page.locator('.state').getByText('run: done').waitFor();
          await page.getByRole('heading', { name: 'Result' }).waitFor();
          await assertHarmless();
          await page.goto(`${INBOX}?status=approved`);
          await page.locator('.requests').waitFor();
          await assertHarmless();
        }),
      SERVER,
    ));

  test('letters that are written from right to left move nothing that is not of their text', () =>
    withGate({ approvals: SERVER }, async ({ svc }) => {
      const inputSchema = { type: 'object', properties: { note: { type: 'string' } } };
      const tool = { tag: 'pay', inputSchema, requiresConfirmation: true, handler: async () => null };
      const gate = svc.gate({ agentTag: 'payouts', tools: [tool], humanInLoop: { enabled: true } } as never);
      const parameters = { note: 'החזר', סכום: 4711, list: ['אבג', 815, 'דהו'], long: 'ארוך "'.repeat(40) };
      gate.run({ tool: 'pay', parameters, modelText: 'שלום.' }).catch(() => undefined);
      await withPage({ handler: svc.approvals.inbox() }, async (page) => {
        await signIn(page, svc);
        await page.getByRole('link', { name: 'pay' }).waitFor();
        const inList = ['note=', 'החזר', 'סכום', '4711', 'list=', 'אבג', '815', 'דהו', ']'];
        assert.deepEqual(await asDrawn(page, '.requests code', inList), inList);
        await page.getByRole('link', { name: 'pay' }).click();
        await page.locator('pre').waitFor();
        assert.deepEqual(await asDrawn(page, 'pre', ['סכום', '4711']), ['סכום', '4711']);
        assert.equal(await page.locator('pre').textContent(), jsonLines(parameters, DEFAULT_WIDTH).join('\n'));
        assert.equal(await page.locator('bdi').filter({ hasText: '↪' }).count(), 0);
        assert.deepEqual(
          await asDrawn(page, 'blockquote', ['.', 'שלום']),
          ['.', 'שלום'],
          'a sentence ends at the left',
        );
        await page.getByText('Change the parameters').click();
        await page.getByLabel('Reason').fill('בסדר.');
        for (const name of ['note', 'Reason']) {
          await page.getByLabel(name, { exact: true }).focus();
          assert.equal(await page.evaluate('getComputedStyle(document.activeElement).direction'), 'rtl', name);
        }
      });
    }));
});
