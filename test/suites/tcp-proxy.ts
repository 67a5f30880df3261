import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { freePort } from './free-port.ts';

/** A TCP proxy that can disconnect or freeze, which simulates a broker that is down or does not respond. */
export interface TcpProxy {
  readonly host: string;
  readonly port: number;
  /** Ends every connection and accepts no new one. */
  disconnect(): void;
  connect(): Promise<void>;
  /** Keeps connections and accepts new ones, but forwards nothing until `connect` is called. */
  freeze(): void;
  /** Freezes the present connections for good, without ending them. New ones work, as after a server was replaced. */
  stall(): void;
  /** The number of open connections of clients. */
  connections(): number;
}

/** Creates a proxy, which is disconnected until `connect` is called. */
export async function startTcpProxy(host: string, port: number): Promise<TcpProxy> {
  const ownPort = await freePort();
  const sockets = new Set<Socket>();
  const clients = new Set<Socket>();
  const stalled = new WeakSet<Socket>();
  let listening: Server | undefined;
  let isFrozen = false;

  const forward = (client: Socket): void => {
    const server = connect(port, host);
    clients.add(client);
    client.on('close', () => clients.delete(client));
    const pairs = [
      [client, server],
      [server, client],
    ] as const;
    for (const [one, other] of pairs) {
      sockets.add(one);
      one
        .on('error', () => other.destroy())
        .on('close', () => {
          sockets.delete(one);
          other.destroy();
        });
      one.on('data', (data) => {
        if (!isFrozen && !stalled.has(one)) other.write(data);
      });
    }
  };
  const disconnect = (): void => {
    listening?.close();
    listening = undefined;
    for (const socket of sockets) socket.destroy();
  };

  return {
    host: '127.0.0.1',
    port: ownPort,
    disconnect,
    async connect() {
      isFrozen = false;
      // What was not forwarded is lost, so existing connections must end.
      disconnect();
      listening = createServer(forward).listen(ownPort, '127.0.0.1');
      await once(listening, 'listening');
    },
    freeze() {
      isFrozen = true;
    },
    stall() {
      for (const socket of sockets) stalled.add(socket);
    },
    connections: () => clients.size,
  };
}
