import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request on its way to DynamoDB. */
export interface Passing {
  /** `PutItem` and the like. */
  readonly action: string;
  readonly body: string;
  /** From 1 on. */
  readonly number: number;
  /** Milliseconds since 1970, as its signature says. */
  readonly signedAt: number;
}

/**
 * What becomes of it: passed on; answered with an error of AWS and not passed on; passed on and its answer lost or told
 * otherwise; or never answered.
 */
export type Fate =
  | 'pass'
  | 'lose'
  | 'hang'
  | { readonly error: string; readonly status?: number; readonly message?: string }
  | { readonly retold: (answer: string) => string };

export interface Proxy {
  readonly port: number;
  /** Requests so far. */
  readonly count: () => number;
  close(): Promise<void>;
}

/** Stands before a server, whose clock is `aheadMs` before ours, and does to requests what happens to them on bad days. */
export async function badDay(
  port: number,
  fate: (passing: Passing) => Fate | Promise<Fate>,
  aheadMs = 0,
): Promise<Proxy> {
  let number = 0;
  const server = createServer((incoming, outgoing) => void handle(incoming, outgoing).catch(() => outgoing.destroy()));
  const handle = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const action = String(incoming.headers['x-amz-target'] ?? '').split('.')[1] ?? '';
    number += 1;
    const signed = String(incoming.headers['x-amz-date']);
    const signedAt = Date.parse(signed.replace(/^(....)(..)(..T..)(..)/, '$1-$2-$3:$4:'));
    const decided = await fate({ action, body: body.toString(), number, signedAt });
    if (decided === 'hang') return;
    const date = new Date(Date.now() + aheadMs).toUTCString();
    if (typeof decided === 'object' && 'error' in decided) {
      outgoing.writeHead(decided.status ?? 400, { 'content-type': 'application/x-amz-json-1.0', date });
      const { error, message = 'a bad day' } = decided;
      outgoing.end(JSON.stringify({ __type: `com.amazonaws.dynamodb.v20120810#${error}`, message }));
      return;
    }
    const { method, url, headers } = incoming;
    const onward = request({ host: '127.0.0.1', port, method, path: url, headers });
    onward.on('error', () => outgoing.destroy());
    onward.end(body);
    const [answer] = (await once(onward, 'response')) as [IncomingMessage];
    if (decided === 'lose') {
      answer.resume();
      await once(answer, 'end');
      outgoing.destroy();
      return;
    }
    if (typeof decided === 'object') {
      const parts: Buffer[] = [];
      for await (const part of answer) parts.push(part as Buffer);
      // Its length and checksum are those of what was said.
      outgoing.writeHead(answer.statusCode ?? 500, { 'content-type': answer.headers['content-type'], date });
      outgoing.end(decided.retold(Buffer.concat(parts).toString()));
      return;
    }
    outgoing.writeHead(answer.statusCode ?? 500, { ...answer.headers, date });
    answer.pipe(outgoing);
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    count: () => number,
    async close() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}
