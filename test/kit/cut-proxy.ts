import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface CutProxy {
  readonly port: number;
  /** Ends the connection when the client sends `text`: before the server hears of it, or once it has answered. */
  cut(text: string, when: 'before' | 'after'): void;
  close(): void;
}

/** A network between a client and a server of this machine that fails at a chosen moment. */
export async function cutProxy(target: number): Promise<CutProxy> {
  let wanted: { readonly text: string; readonly when: 'before' | 'after' } | undefined;
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
      if (wanted && data.includes(wanted.text)) {
        const { when } = wanted;
        wanted = undefined;
        if (when === 'before') return end();
        answerIsLost = true;
      }
      server.write(data);
    });
    server.on('data', (data) => (answerIsLost ? end() : client.write(data)));
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  return {
    port: (proxy.address() as AddressInfo).port,
    cut: (text, when) => {
      wanted = { text, when };
    },
    close() {
      for (const socket of open) socket.destroy();
      proxy.close();
    },
  };
}
