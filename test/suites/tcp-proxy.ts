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
  /**
   * Disconnects when clients have sent this many more pieces of data, and resolves then. Of half a piece, only the beginning is
   * forwarded.
   */
  disconnectAfter(pieces: number): Promise<void>;
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
  /** How many more pieces of data clients may send. */
  let remaining = Number.POSITIVE_INFINITY;
  let onSpent = (): void => {};

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
        if (isFrozen || stalled.has(one)) return;
        if (one === server) {
          other.write(data);
          return;
        }
        const part = Math.min(1, remaining);
        remaining -= part;
        if (part > 0) other.write(data.subarray(0, Math.floor(part * data.length)));
        if (remaining === 0) onSpent();
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
      remaining = Number.POSITIVE_INFINITY;
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
    async disconnectAfter(pieces) {
      remaining = pieces;
      await new Promise<void>((resolve) => {
        onSpent = resolve;
      });
      // The server handles what it has received, and closes its side.
      const servers = [...sockets].filter((socket) => !clients.has(socket));
      await Promise.all(servers.map((server) => new Promise((closed) => server.on('close', closed).end())));
      disconnect();
    },
    connections: () => clients.size,
  };
}
