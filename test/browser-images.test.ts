import * as assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import type { Gate } from '../config/sdk/gate.ts';
import { definePlugin } from '../core/plugin.ts';
import { chromiumTests } from './kit/chromium.ts';
import { ORIGIN } from './kit/sign-in.ts';
import { test } from './kit/test.ts';
import { withGate } from './suites/gate-client.ts';

// The images of docs/reference/inbox.md: `SVC_SCREENSHOTS=docs/images npm test -- browser-images` takes them again.

const INBOX = `${ORIGIN}/svc/inbox`;
const WIDE = { width: 1100, height: 760 };
const PHONE = { width: 420, height: 760 };
/** As wide as the page that shows them is in most browsers: they are not scaled again. */
const SCALE = 0.8;
const MARGIN = 14;
const MINUTE_MS = 60_000;

/** The page from the top of one element to the end of another, by their selectors, into the folder `SVC_SCREENSHOTS`. */
async function image(page: Page, name: string, first: string, last: string): Promise<void> {
  const folder = process.env.SVC_SCREENSHOTS;
  if (folder === undefined || folder === '') return;
  await page.evaluate('scrollTo(0, 0)');
  const [start, end] = await Promise.all([first, last].map((one) => page.locator(one).last().boundingBox()));
  assert.ok(start && end);
  const y = Math.max(0, start.y - MARGIN);
  const clip = {
    x: 0,
    y,
    scale: SCALE,
    width: page.viewportSize()?.width ?? 0,
    height: end.y + end.height + MARGIN - y,
  };
  const session = await page.context().newCDPSession(page);
  const format = { format: 'webp', quality: 24, captureBeyondViewport: true } as const;
  const { data } = await session.send('Page.captureScreenshot', { ...format, clip });
  await session.detach();
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${name}.webp`), Buffer.from(data, 'base64'));
}

const REASONS: Readonly<Record<string, string>> = {
  refund: 'A refund of more than 100 EUR needs a person.',
  reorder_stock: 'An order of more than 1,000 EUR needs a person.',
  send_newsletter: 'A message to all customers needs a person.',
};

const policy = definePlugin({
  name: 'shop-policy',
  apply: ({ hooks }) =>
    hooks.beforeToolCall.tap('shop-policy', (review) =>
      review.requireApproval(REASONS[review.call.tool] ?? 'A person decides.'),
    ),
});

const text = { type: 'string', required: true } as const;
const TOOLS: readonly { readonly agentTag: string; readonly minutes: number; readonly tool: object }[] = [
  {
    agentTag: 'support',
    minutes: 15,
    tool: {
      tag: 'refund',
      description: 'Pays money back to the card of a customer. Cannot be undone.',
      inputSchema: {
        type: 'object',
        properties: {
          customer: { type: 'string', description: 'who gets the money' },
          orderId: { type: 'string', pattern: '^A-[0-9]{5}$' },
          amount: { type: 'number', minimum: 0.01, maximum: 500, description: 'in EUR, at most 500' },
          cause: { enum: ['damaged', 'late', 'wrong item', 'goodwill'] },
        },
        required: ['customer', 'orderId', 'amount', 'cause'],
        additionalProperties: false,
      },
    },
  },
  {
    agentTag: 'warehouse',
    minutes: 95,
    tool: {
      tag: 'reorder_stock',
      description: 'Orders goods from a supplier.',
      parameters: { supplier: text, article: text, quantity: { type: 'integer', required: true } },
    },
  },
  {
    agentTag: 'marketing',
    minutes: 26 * 60,
    tool: {
      tag: 'send_newsletter',
      description: 'Sends a message to all customers.',
      parameters: { subject: text, segment: text },
    },
  },
];

const CALLS: readonly { readonly parameters: object; readonly modelText: string }[] = [
  {
    parameters: { customer: 'Maria Keller', orderId: 'A-10482', amount: 149.9, cause: 'damaged' },
    modelText:
      'Maria Keller writes that her floor lamp arrived with a broken arm, and attached two photos. The order is six days old, so the 30 days for returns have not passed. I will refund the full price of 149.90 EUR to the card she paid with.',
  },
  {
    parameters: { supplier: 'Nordlicht GmbH', article: 'LMP-204 floor lamp, brass', quantity: 60 },
    modelText: 'Only four brass lamps are left, and nine were sold last week.',
  },
  {
    parameters: { subject: 'Free shipping this weekend', segment: 'all customers' },
    modelText: 'The campaign starts on Saturday.',
  },
];

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();

chromiumTests('the images of the docs', (withPage) => {
  test('a refund of an agent: in the list, its request, a value that is not allowed, and how it was decided', () =>
    withGate(
      {
        approvals: { roles: { finance: ['group:finance'] }, server: { role: 'finance' } },
        config: { product: 'acme-shop', plugins: [policy] } as never,
      },
      async ({ svc }) => {
        const outcomes = TOOLS.map(async ({ agentTag, minutes, tool }, at) => {
          const humanInLoop = { enabled: true, approvalTimeout: minutes * MINUTE_MS };
          const tools = [{ ...tool, handler: async () => ({ refundId: 're_3PkW8x', status: 'paid' }) }];
          const gate: Gate = svc.gate({ agentTag, tools, humanInLoop } as never);
          const requester = 'jonas.weber@acme.example';
          const { tag } = tool as { tag: string };
          return gate.run({ tool: tag, model: 'openai/gpt-5', requester, ...CALLS[at] } as never);
        });
        for (const outcome of outcomes) outcome.catch(() => undefined);
        const person = { id: 'ann.lee@acme.example', groups: ['finance'] };
        const { token } = await svc.people.createToken(person, { validForMs: 600_000 });
        await withPage({ handler: svc.approvals.inbox() }, async (page) => {
          await page.setViewportSize(WIDE);
          await page.emulateMedia({ colorScheme: 'light' });
          await page.goto(INBOX);
          await page.getByLabel('Token').fill(token);
          await press(page, 'Sign in with the token');
          await page.getByRole('link', { name: 'send_newsletter' }).waitFor();
          await page.mouse.move(0, 0);
          await image(page, 'inbox-list', 'header', '.requests');
          await page.setViewportSize(PHONE);
          await page.emulateMedia({ colorScheme: 'dark' });
          await image(page, 'inbox-phone-dark', 'header', '.requests li:nth-of-type(2)');
          await page.setViewportSize(WIDE);
          await page.emulateMedia({ colorScheme: 'light' });
          await page.getByRole('link', { name: 'refund' }).click();
          await page.getByText('The order is six days old').waitFor();
          await image(page, 'inbox-request', 'header', 'button[value=reject]');
          await page.getByText('Change the parameters').click();
          await page.getByLabel('amount', { exact: true }).fill('1499.90');
          await press(page, 'Approve');
          await page.locator('.field').getByText('must be at most 500').waitFor();
          await image(page, 'inbox-problem', 'details', 'button[value=reject]');
          await page.getByLabel('amount', { exact: true }).fill('129.90');
          await page.getByLabel('Reason').fill('The lamp was on offer: she paid 129.90.');
          await press(page, 'Approve');
          await press(page, 'Approve with these changes');
          await page.locator('.state').getByText('approved by ann.lee@acme.example, run: done').waitFor();
          await image(page, 'inbox-decided', 'header', '.diff');
        });
        assert.equal((await outcomes[0])?.status, 'completed');
      },
    ));
});
