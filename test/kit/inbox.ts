import type { ApprovalsConfig } from '../../config/define.ts';
import { type GateUnderTest, withGate } from '../suites/gate-client.ts';
import { Browser } from './oidc.ts';
import { ORIGIN } from './sign-in.ts';

export const INBOX = `${ORIGIN}/svc/inbox`;
export const SERVER: ApprovalsConfig = {
  roles: { deciders: ['group:finance', 'user:cy'], heads: ['group:heads'] },
  server: { role: 'deciders' },
};

interface InboxFixture extends GateUnderTest {
  readonly handler: (request: Request) => Promise<Response>;
  newBrowser(): Browser;
  tokenOf(id: string, ...groups: string[]): Promise<string>;
  /** A browser with the list, signed in with a token. */
  signedIn(id: string, ...groups: string[]): Promise<Browser>;
}

/** Runs `body` with a tool that requires approval, and an inbox for the people of `deciders`. */
export async function withInbox(
  body: (inbox: InboxFixture) => Promise<void>,
  approvals: ApprovalsConfig = SERVER,
): Promise<void> {
  await withGate({ approvals }, async (gate) => {
    const handler = gate.svc.approvals.handler();
    const newBrowser = () => new Browser({ [ORIGIN]: handler });
    const tokenOf = async (id: string, ...groups: string[]) =>
      (await gate.svc.people.createToken({ id, groups }, { validForMs: 60_000 })).token;
    await body({
      ...gate,
      handler,
      newBrowser,
      tokenOf,
      async signedIn(id, ...groups) {
        const browser = newBrowser();
        await browser.open(INBOX);
        await browser.submit('name="token"', { token: await tokenOf(id, ...groups) });
        return browser;
      },
    });
  });
}

/** Sends the form of the page that is open, as it is but for these fields. */
export const approve = (browser: Browser, fields = {}): Promise<unknown> =>
  browser.submit('name="view"', { action: 'approve', ...fields });
