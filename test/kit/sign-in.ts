import type { Page } from 'playwright-core';
import { approvalHandler } from '../../config/sdk/index.ts';
import type { ApprovalRequest } from '../../core/approval/request.ts';
import { callbackUrlOf, type GateUnderTest, withGate } from '../suites/gate-client.ts';
import { Browser, CLIENT, type RealProvider, startProvider } from './oidc.ts';

export const ORIGIN = 'https://shop.example';

interface SignInFixture extends GateUnderTest {
  readonly provider: RealProvider;
  /** What a real browser requests to sign in: the provider, and the host of the font on its pages. */
  readonly providerOrigins: readonly string[];
  readonly handler: (request: Request) => Promise<Response>;
  newBrowser(): Browser;
  /** A new request, its page open in the browser. */
  openRequest(browser: { open(url: string): Promise<unknown> }): Promise<ApprovalRequest>;
  statusOf(request: ApprovalRequest): Promise<readonly [status: string, decidedBy?: unknown]>;
}

/** Runs `body` with a tool that requires approval, and a provider at which people sign in. */
export async function withSignIn(
  body: (fixture: SignInFixture) => Promise<void>,
  { base = `${ORIGIN}/svc`, rules = [{ approve: [{ role: 'finance' }] }] as object[], more = {} as object } = {},
): Promise<void> {
  const provider = await startProvider(`${base}/approvals/signed-in`);
  const approvals = {
    callbackBase: base,
    oidc: {
      issuer: provider.issuer,
      clientId: CLIENT.id,
      clientSecret: CLIENT.secret,
      groups: 'groups',
      scopes: ['email', 'groups'],
    },
    roles: { finance: ['group:finance'] },
    rules,
    ...more,
  };
  try {
    await withGate({ approvals: approvals as never }, async (gate) => {
      const handler = approvalHandler(gate.svc);
      await body({
        ...gate,
        provider,
        providerOrigins: [provider.issuer, 'https://fonts.googleapis.com'],
        handler,
        newBrowser: () => new Browser({ [new URL(base).origin]: handler }),
        async openRequest(browser) {
          const { request } = await gate.refund({ orderId: '1', amount: 5, card: '4242' });
          const url = await callbackUrlOf(gate.svc, request);
          await browser.open(url.replace(`${ORIGIN}/svc`, base));
          return request;
        },
        async statusOf({ requestId }) {
          const { status, decidedBy } = await gate.svc.approvals.get(requestId);
          return decidedBy === undefined ? [status] : [status, decidedBy];
        },
      });
    });
  } finally {
    provider.close();
  }
}

/** Signs in from a page in a real browser, at the pages of the provider. */
export async function signInOn(page: Page, person: string): Promise<void> {
  await page.getByRole('link', { name: 'Sign in' }).click();
  await page.locator('[name=login]').fill(person);
  await page.locator('[name=password]').fill('x');
  await page.locator('[type=submit]').click();
  await page.locator('[value=consent] ~ [type=submit]').click();
  await page.getByText('Signed in as').waitFor();
}
