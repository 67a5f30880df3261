import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface CutProxy {
  readonly port: number;
  /** Ends the connection when the client sends `text`: before the server hears of it, or once it has answered. */
  cut(text: string, when: 'before' | 'after'): void;
  /** From now on the server hears `other` where the client sends `text`, which is as long. */
  change(text: string, other: string): void;
  /** Does that when the client sends `text` for the first time, before the server hears of it. */
  before(text: string, act: () => Promise<unknown>): void;
  close(): void;
}

/** A network between a client and a server of this machine that fails at a chosen moment. */
export async function cutProxy(target: number): Promise<CutProxy> {
  let wanted: { readonly text: string; readonly when: 'before' | 'after' } | undefined;
  const changes = new Map<string, string>();
  const acts = new Map<string, () => Promise<unknown>>();
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
      let text = data.toString('latin1');
      for (const [one, other] of changes) text = text.replaceAll(one, other);
      const acting = [...acts].find(([one]) => text.includes(one));
      if (!acting) return void server.write(text, 'latin1');
      const [one, act] = acting;
      acts.delete(one);
      client.pause();
      void act().then(() => {
        server.write(text, 'latin1');
        client.resume();
      }, end);
    });
    server.on('data', (data) => (answerIsLost ? end() : client.write(data)));
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  return {
    port: (proxy.address() as AddressInfo).port,
    cut: (text, when) => {
      wanted = { text, when };
    },
    change: (text, other) => void changes.set(text, other),
    before: (text, act) => void acts.set(text, act),
    close() {
      for (const socket of open) socket.destroy();
      proxy.close();
    },
  };
}
