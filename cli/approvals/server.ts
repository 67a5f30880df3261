import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { HttpBindings } from '@hono/node-server';
import { SvcError } from '../../core/errors.ts';

export interface RunningServer {
  readonly url: string;
  /** Stops listening and waits for open requests. */
  close(): Promise<void>;
}

export interface ServerOptions {
  readonly host: string;
  readonly port: number;
  /** `peer`: the address that the connection comes from. */
  readonly handler: (request: Request, peer: string | undefined) => Promise<Response>;
  /** Throws if the store does not respond. */
  readonly isReady: () => Promise<unknown>;
}

/** How long `close` waits for open requests. */
const SHUTDOWN_GRACE_MS = 10_000;
const READY_TIMEOUT_MS = 5_000;
/** `/readyz` asks the store at most once in this time. */
const READY_TTL_MS = 1_000;
/** Enough for a body of 64 KiB over a slow line, too little for clients that only hold connections open. */
const TIMEOUTS = { headersTimeout: 10_000, requestTimeout: 15_000, connectionsCheckingInterval: 1_000 };
/** Twice as many as there may be event streams. */
const MAX_CONNECTIONS = 4_000;

/** Starts the HTTP server. Throws `port_unavailable`. */
export async function startServer({ host, port, handler, isReady }: ServerOptions): Promise<RunningServer> {
  const [{ Hono }, { createAdaptorServer }] = await Promise.all([import('hono'), import('@hono/node-server')]);
  const app = new Hono<{ Bindings: HttpBindings }>();
  app.get('/healthz', (context) => context.text('ok\n'));
  const responds = readiness(isReady);
  app.get('/readyz', async (context) =>
    (await responds()) ? context.text('ready\n') : context.text('the store does not respond\n', 503),
  );
  app.all('*', (context) => handler(context.req.raw, context.env.incoming.socket.remoteAddress));
  const server = createAdaptorServer({ fetch: app.fetch, serverOptions: TIMEOUTS }) as Server;
  server.maxConnections = MAX_CONNECTIONS;
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

/** The value of --port. Throws `usage`. */
export function portOf(text: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port < 65_536) return port;
  throw new SvcError('usage', `--port must be a port number, not "${text}".`);
}

/** Whether the store responds. Calls within `READY_TTL_MS`, and while the store is being asked, share one answer. */
function readiness(isReady: () => Promise<unknown>): () => Promise<boolean> {
  let last: { readonly since: number; readonly answer: Promise<boolean> } | undefined;
  let isPending = false;
  return () => {
    if (last && (isPending || performance.now() - last.since < READY_TTL_MS)) return last.answer;
    isPending = true;
    const asked = isReady().finally(() => {
      isPending = false;
    });
    const timeout = new Promise<never>((_, reject) =>
      AbortSignal.timeout(READY_TIMEOUT_MS).addEventListener('abort', reject),
    );
    const answer = Promise.race([asked, timeout]).then(
      () => true,
      () => false,
    );
    last = { since: performance.now(), answer };
    return answer;
  };
}
