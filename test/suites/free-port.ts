import { once } from 'node:events';
import { createServer } from 'node:net';

/** Returns the first free port of `wanted`, or any free port. */
export async function freePort(...wanted: readonly number[]): Promise<number> {
  for (const port of [...wanted, 0]) {
    const server = createServer();
    try {
      // All addresses: a server on another one may be the one that answers on localhost.
      server.listen({ port, host: '0.0.0.0', exclusive: true });
      await once(server, 'listening');
      const address = server.address();
      if (typeof address === 'object' && address) return address.port;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    } finally {
      await new Promise((closed) => server.close(closed));
    }
  }
  throw new Error('no free port');
}
