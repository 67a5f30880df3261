import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SvcError } from '../../core/errors.ts';

export interface Listener {
  readonly url: string;
  /** Lets requests that are being answered end. */
  close(): Promise<void>;
}

export interface Listening {
  readonly host: string;
  readonly port: number;
  readonly handler: (request: Request) => Promise<Response>;
  /** Throws while the store does not answer. */
  readonly isReady: () => Promise<unknown>;
}

/** How long requests that are being answered may take when it stops. */
const GRACE_MS = 10_000;
const READY_MS = 5_000;

/** A server on one port. Throws `port_unavailable`. */
export async function listen({ host, port, handler, isReady }: Listening): Promise<Listener> {
  const [{ Hono }, { createAdaptorServer }] = await Promise.all([import('hono'), import('@hono/node-server')]);
  const app = new Hono();
  app.get('/healthz', (context) => context.text('ok\n'));
  app.get('/readyz', async (context) => {
    const late = new Promise<never>((_, reject) => AbortSignal.timeout(READY_MS).addEventListener('abort', reject));
    return Promise.race([isReady(), late]).then(
      () => context.text('ready\n'),
      () => context.text('the store does not answer\n', 503),
    );
  });
  app.all('*', (context) => handler(context.req.raw));
  const server = createAdaptorServer({ fetch: app.fetch }) as Server;
  server.listen(port, host);
  await once(server, 'listening').catch((error: Error) => {
    throw new SvcError('port_unavailable', `The port ${port} of ${host} cannot be used.`, {
      why: error.message,
      next: ['Take another one with --port.'],
    });
  });
  const { address, port: taken, family } = server.address() as AddressInfo;
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${taken}`,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeIdleConnections();
      const timer = setTimeout(() => server.closeAllConnections(), GRACE_MS);
      await closed;
      clearTimeout(timer);
    },
  };
}
