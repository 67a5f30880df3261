import { Command, Option } from 'clipanion';
import type { Runtime } from '../../../config/load/runtime.ts';
import type { Approvals } from '../../../config/sdk/approvals.ts';
import { inboxUrl } from '../../../config/sdk/callback/inbox/inbox-url.ts';
import { localPort } from '../../../core/url.ts';
import { ApprovalsCommand } from '../../approvals/command.ts';
import type { RunnerEvent } from '../../approvals/plan-runner.ts';
import type { SealEvent } from '../../approvals/regular-seals.ts';
import { portOf, startServer } from '../../approvals/server.ts';
import type { CommandResult } from '../../base.ts';
import { errorLines, errorObject, plural } from '../../output.ts';

/** Links lead to the port of a local `callbackBase`, where no proxy listens. */
const defaultPort = ({ config }: Runtime): number => {
  const base = config.approvals?.callbackBase;
  return (base === undefined ? undefined : localPort(base)) ?? 8787;
};

export default class ApprovalsServe extends ApprovalsCommand {
  static override stopping = 'finishing what was received, then stopping';
  static override paths = [['approvals', 'serve']];
  static override printsJsonLines = true;
  static override usage = Command.Usage({
    description:
      'Serves the approval callback, the buttons of channels, the HTTP API and the inbox over HTTP until it is stopped.',
    details:
      'Run it behind a TLS proxy at approvals.callbackBase. /healthz reports that the server runs, /readyz that the store responds. With approvals.server, people decide in the inbox at {callbackBase}/inbox, and over HTTP. It also consumes decisions from the broker of approvals.decisions, gives reminders and escalations to approvals.channels if no process of the agent does, and seals the audit every so often if approvals.seals is set.',
    examples: [
      ['On this machine', 'svc approvals serve'],
      ['In a container', 'svc approvals serve --host 0.0.0.0 --port 8080'],
      ['Also apply approved migrations, where only this process has the password', 'svc approvals serve --migrate'],
    ],
  });

  host = Option.String('--host', '127.0.0.1', { description: 'The address to listen on. Default: 127.0.0.1.' });
  port = Option.String('--port', {
    description:
      'The port to listen on. Default: that of approvals.callbackBase if it is a URL of this machine, otherwise 8787; 0 chooses a free one.',
  });
  migrate = Option.Boolean('--migrate', false, {
    description:
      'Also applies the migrations of all databases, also in a protected environment; what needs approval is requested and waits. The environment needs `approval`.',
  });

  async work(approvals: Approvals, runtime: Runtime): Promise<CommandResult> {
    const runner = this.migrate ? await import('../../approvals/plan-runner.ts') : undefined;
    runner?.assertPlansApproved(runtime);
    const [
      { openCallback },
      { pressUrls },
      { consumeDecisions, decisionQueue },
      { channelRoutes },
      { regularSeals },
      runtimes,
    ] = await Promise.all([
      import('../../../config/sdk/callback/handler.ts'),
      import('../../../config/sdk/callback/presses.ts'),
      import('../../../config/sdk/broker-decisions.ts'),
      import('../../../config/sdk/delivery-routes.ts'),
      import('../../approvals/regular-seals.ts'),
      import('../../../config/sdk/approval-runtime.ts'),
    ]);
    const [{ notices }, routes] = await Promise.all([runtimes.openApprovals(runtime), channelRoutes(runtime)]);
    notices.addFallback(routes);
    const sealing = await regularSeals(runtime);
    const peers = new WeakMap<Request, string>();
    const stopping = new AbortController();
    const handler = await openCallback(runtime, {
      peerOf: (request) => peers.get(request),
      stopping: stopping.signal,
    });
    const server = await startServer({
      host: this.host,
      port: this.port === undefined ? defaultPort(runtime) : portOf(this.port),
      handler(request, peer) {
        if (peer !== undefined) peers.set(request, peer);
        return handler(request);
      },
      isReady: () => approvals.list({ limit: 1 }),
    });
    const queue = decisionQueue(runtime);
    const stopDecisions = await consumeDecisions(runtime, (sentence) => this.warn(sentence));
    this.note(`Listening on ${server.url}`);
    const inbox = inboxUrl(runtime.config);
    if (inbox !== undefined) this.note(`The inbox is at ${inbox}`);
    for (const { name, url } of await pressUrls(runtime))
      this.note(`Presses of the channel "${name}" arrive at ${url}`);
    const { decisions } = runtime.config.approvals ?? {};
    if (decisions) this.note(`Consuming decisions from the queue ${queue} of the broker "${decisions.broker}"`);
    if (this.json) this.jsonLine({ event: 'listening', url: server.url });
    const stopped = this.untilStopped();
    const ending = new AbortController();
    const work = [
      runner?.runPlans(runtime, this.signal, (event) => this.#report(event, runtime)),
      sealing?.(ending.signal, (event) => this.#reportSeal(event)),
    ];
    try {
      // What fails ends the server.
      await Promise.race([stopped, ...work.map((one) => one?.then(() => stopped) ?? stopped)]);
    } finally {
      // Event streams have no end of their own.
      stopping.abort();
      await Promise.all([server.close(), stopDecisions?.()]);
      // After the last decision, so that it is sealed too.
      ending.abort();
    }
    await Promise.all(work);
    return { data: { url: server.url, event: 'stopped' } };
  }

  #reportSeal(event: SealEvent): void {
    if (event.event === 'sealed') {
      const { last, requests } = event;
      this.note(`Seal ${last}: ${plural(requests, 'request')} with new events`);
      if (this.json) this.jsonLine(event);
      return;
    }
    const error = this.completed(event.error);
    this.note('The audit could not be sealed:');
    for (const line of errorLines(error, this.context.colors.stderr)) this.note(line);
    if (this.json) this.jsonLine({ ...event, error: errorObject(error) });
  }

  #report(event: RunnerEvent, { env }: Runtime): void {
    const label = `${event.database} (${env})`;
    switch (event.event) {
      case 'waiting':
        this.note(`${label}: waiting for approval of ${event.requestId}, which is open until ${event.expiresAt}`);
        break;
      case 'migrated':
        this.note(`${label}: applied ${event.migrations.join(', ')}`);
        break;
      case 'failed':
        this.note(`${label}:`);
        for (const line of errorLines(this.completed(event.error), this.context.colors.stderr)) this.note(line);
    }
    if (!this.json) return;
    this.jsonLine(event.event === 'failed' ? { ...event, error: errorObject(this.completed(event.error)) } : event);
  }
}
