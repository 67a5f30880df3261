import { approvalHandler } from '../../config/sdk/index.ts';
import type { ApprovalRequest } from '../../core/approval/request.ts';
import { callbackUrlOf, type GateUnderTest, withGate } from '../suites/gate-client.ts';
import { Browser, CLIENT, type RealProvider, startProvider } from './oidc.ts';

export const ORIGIN = 'https://shop.example';

interface SignInFixture extends GateUnderTest {
  readonly provider: RealProvider;
  readonly handler: (request: Request) => Promise<Response>;
  newBrowser(): Browser;
  /** A new request, its page open in the browser. */
  openRequest(browser: Browser): Promise<ApprovalRequest>;
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
