import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { freePort } from './free-port.ts';

/** A way to a server of TCP that can be shut, so that a broker seems to be gone, or to say nothing more. */
export interface TcpProxy {
  readonly host: string;
  readonly port: number;
  /** Ends every connection; nobody comes through any more. */
  disconnect(): void;
  connect(): Promise<void>;
  /** Connections stay and new ones are taken, but nothing passes until it is opened again. */
  freeze(): void;
}

/** Shut at first. */
export async function startTcpProxy(host: string, port: number): Promise<TcpProxy> {
  const own = await freePort();
  const inside = new Set<Socket>();
  let listening: Server | undefined;
  let isFrozen = false;

  const enter = (client: Socket): void => {
    const server = connect(port, host);
    const pairs = [
      [client, server],
      [server, client],
    ] as const;
    for (const [one, other] of pairs) {
      inside.add(one);
      one
        .on('error', () => other.destroy())
        .on('close', () => {
          inside.delete(one);
          other.destroy();
        });
      one.on('data', (data) => {
        if (!isFrozen) other.write(data);
      });
    }
  };
  const disconnect = (): void => {
    listening?.close();
    listening = undefined;
    for (const socket of inside) socket.destroy();
  };

  return {
    host: '127.0.0.1',
    port: own,
    disconnect,
    async connect() {
      isFrozen = false;
      // What was swallowed meanwhile is lost: whoever was inside begins anew.
      disconnect();
      listening = createServer(enter).listen(own, '127.0.0.1');
      await once(listening, 'listening');
    },
    freeze() {
      isFrozen = true;
    },
  };
}
