import { Command, Option } from 'clipanion';
import type { Approvals } from '../../../config/approvals.ts';
import { SvcError } from '../../../core/errors.ts';
import { ApprovalsCommand } from '../../approvals/command.ts';
import { listen } from '../../approvals/listen.ts';
import type { Answer } from '../../base.ts';

export default class ApprovalsServe extends ApprovalsCommand {
  static override paths = [['approvals', 'serve']];
  static override usage = Command.Usage({
    description: 'Answers the callback of webhooks over HTTP, until it is stopped.',
    details:
      'Put it behind what ends TLS, where approvals.callbackBase leads. /healthz says that it runs, /readyz that the store answers. Decisions from the broker of approvals.decisions are taken too.',
    examples: [
      ['On this machine', 'svc approvals serve'],
      ['In a container', 'svc approvals serve --host 0.0.0.0 --port 8080'],
    ],
  });

  host = Option.String('--host', '127.0.0.1', { description: 'Default 127.0.0.1.' });
  port = Option.String('--port', '8787', { description: 'Default 8787; 0 takes a free one.' });

  async work(approvals: Approvals): Promise<Answer> {
    const { openCallback } = await import('../../../config/callback/open.ts');
    const handler = await openCallback(await this.runtime());
    const server = await listen({
      host: this.host,
      port: portOf(this.port),
      handler,
      isReady: () => approvals.list({ limit: 1 }),
    });
    const stopDecisions = await approvals.takeDecisions();
    this.note(`Listening on ${server.url}`);
    if (this.json) this.jsonLine({ event: 'listening', url: server.url });
    await new Promise<void>((stopped) => {
      if (this.signal.aborted) stopped();
      else this.signal.addEventListener('abort', () => stopped(), { once: true });
    });
    await Promise.all([server.close(), stopDecisions?.()]);
    return { data: { url: server.url, event: 'stopped' } };
  }
}

function portOf(text: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port < 65_536) return port;
  throw new SvcError('usage', `--port takes a port, not "${text}".`);
}
