import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface FaultProxy {
  readonly port: number;
  /** Ends the connection when the client sends `text`: before it is forwarded, or when the server responds. */
  disconnectOn(text: string, when: 'before' | 'after'): void;
  /** Replaces `text` with `other`, which has the same length, in everything that the client sends. */
  replace(text: string, other: string): void;
  /** Calls `act` before the first message that contains `text` is forwarded. */
  runBefore(text: string, action: () => Promise<unknown>): void;
  close(): void;
}

/** Starts a proxy to a local server that injects faults. */
export async function startFaultProxy(target: number): Promise<FaultProxy> {
  let disconnect: { readonly text: string; readonly when: 'before' | 'after' } | undefined;
  const changes = new Map<string, string>();
  const actions = new Map<string, () => Promise<unknown>>();
  const open = new Set<Socket>();
  const proxy = createServer((client) => {
    const server = connect(target, '127.0.0.1');
    const end = () => {
      client.destroy();
      server.destroy();
    };
    let answerIsLost = false;
    for (const socket of [client, server]) {
      open.add(socket);
      socket.on('error', end).on('close', () => {
        open.delete(socket);
        end();
      });
    }
    client.on('data', (data) => {
      if (disconnect && data.includes(disconnect.text)) {
        const { when } = disconnect;
        disconnect = undefined;
        if (when === 'before') return end();
        answerIsLost = true;
      }
      let text = data.toString('latin1');
      for (const [one, other] of changes) text = text.replaceAll(one, other);
      const matching = [...actions].find(([one]) => text.includes(one));
      if (!matching) return void server.write(text, 'latin1');
      const [one, action] = matching;
      actions.delete(one);
      client.pause();
      void action().then(() => {
        server.write(text, 'latin1');
        client.resume();
      }, end);
    });
    server.on('data', (data) => (answerIsLost ? end() : client.write(data)));
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  return {
    port: (proxy.address() as AddressInfo).port,
    disconnectOn: (text, when) => {
      disconnect = { text, when };
    },
    replace: (text, other) => void changes.set(text, other),
    runBefore: (text, action) => void actions.set(text, action),
    close() {
      for (const socket of open) socket.destroy();
      proxy.close();
    },
  };
}
