import { Command, Option } from 'clipanion';
import type { Runtime } from '../../../config/load/runtime.ts';
import type { Approvals } from '../../../config/sdk/approvals.ts';
import { assertNoAgentDecides } from '../../agent.ts';
import { ApprovalsCommand } from '../../approvals/command.ts';
import { currentPerson } from '../../approvals/decide.ts';
import { portOf, startServer } from '../../approvals/server.ts';
import type { CommandResult } from '../../base.ts';
import { openBrowser } from '../../people/open-browser.ts';
import { canPrompt } from '../../prompt.ts';

const HOST = '127.0.0.1';
const UNVERIFIED =
  'Nobody verifies who you are, so most rules do not count your decisions: set SVC_TOKEN to a token of svc people token create.';

export default class ApprovalsInbox extends ApprovalsCommand {
  static override paths = [['approvals', 'inbox']];
  static override stopping = 'finishing what was received, then stopping';
  static override printsJsonLines = true;
  static override usage = Command.Usage({
    description: 'Opens the inbox in the browser of this machine, until it is stopped.',
    details:
      'You decide as on the command line: as the owner of SVC_TOKEN, or as a user of this machine. The link lets in one browser, and only from this machine. ' +
      'For other people, set approvals.server and run `svc approvals serve`.',
    examples: [
      ['In the browser', 'svc approvals inbox'],
      ['Print the link only', 'svc approvals inbox --no-open'],
    ],
  });

  port = Option.String('--port', '0', { description: 'The port to listen on. Default: a free one.' });
  printsLink = Option.Boolean('--no-open', false, { description: 'Prints the link without opening the browser.' });

  async work(approvals: Approvals, runtime: Runtime): Promise<CommandResult> {
    assertNoAgentDecides(runtime);
    const { openLocalInbox } = await import('../../../config/sdk/callback/inbox/local-inbox.ts');
    let handler: (request: Request) => Promise<Response> = async () => new Response(null, { status: 503 });
    const server = await startServer({
      host: HOST,
      port: portOf(this.port),
      handler: (request) => handler(request),
      isReady: () => approvals.list({ limit: 1 }),
    });
    try {
      const inbox = await openLocalInbox(runtime, {
        origin: server.url,
        decider: currentPerson(),
        stopping: this.signal,
      });
      handler = inbox.handler;
      this.note(`The inbox is at ${inbox.url}`);
      if (currentPerson().token === undefined) this.note(UNVERIFIED);
      if (this.json) this.jsonLine({ event: 'listening', url: inbox.url });
      if (!this.printsLink && canPrompt(this)) {
        await openBrowser(inbox.url).catch(() =>
          this.note('The browser could not be opened: open that address yourself.'),
        );
      }
      await this.untilStopped();
    } finally {
      await server.close();
    }
    return { data: { url: server.url, event: 'stopped' } };
  }
}
