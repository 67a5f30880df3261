import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SvcError } from '../../core/errors.ts';

export interface RunningServer {
  readonly url: string;
  /** Stops listening and waits for open requests. */
  close(): Promise<void>;
}

export interface ServerOptions {
  readonly host: string;
  readonly port: number;
  readonly handler: (request: Request) => Promise<Response>;
  /** Throws if the store does not respond. */
  readonly isReady: () => Promise<unknown>;
}

/** How long `close` waits for open requests. */
const SHUTDOWN_GRACE_MS = 10_000;
const READY_TIMEOUT_MS = 5_000;

/** Starts the HTTP server. Throws `port_unavailable`. */
export async function startServer({ host, port, handler, isReady }: ServerOptions): Promise<RunningServer> {
  const [{ Hono }, { createAdaptorServer }] = await Promise.all([import('hono'), import('@hono/node-server')]);
  const app = new Hono();
  app.get('/healthz', (context) => context.text('ok\n'));
  app.get('/readyz', async (context) => {
    const timeout = new Promise<never>((_, reject) =>
      AbortSignal.timeout(READY_TIMEOUT_MS).addEventListener('abort', reject),
    );
    return Promise.race([isReady(), timeout]).then(
      () => context.text('ready\n'),
      () => context.text('the store does not respond\n', 503),
    );
  });
  app.all('*', (context) => handler(context.req.raw));
  const server = createAdaptorServer({ fetch: app.fetch }) as Server;
  server.listen(port, host);
  await once(server, 'listening').catch((error: Error) => {
    throw new SvcError('port_unavailable', `The server cannot listen on port ${port} of ${host}.`, {
      why: error.message,
      next: ['Use another port with --port.'],
    });
  });
  const { address, port: boundPort, family } = server.address() as AddressInfo;
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${boundPort}`,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeIdleConnections();
      const timer = setTimeout(() => server.closeAllConnections(), SHUTDOWN_GRACE_MS);
      await closed;
      clearTimeout(timer);
    },
  };
}
