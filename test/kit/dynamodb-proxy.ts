import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request to DynamoDB that the proxy has received. */
export interface ProxiedRequest {
  /** For example `PutItem`. */
  readonly action: string;
  readonly body: string;
  /** Counts from 1. */
  readonly number: number;
  /** The time of its signature, in milliseconds since 1970. */
  readonly signedAt: number;
}

/**
 * What the proxy does with a request: forward it; reply with an AWS error without forwarding it; forward it and lose or
 * rewrite the response; or never reply.
 */
export type ProxyAction =
  | 'pass'
  | 'lose'
  | 'hang'
  | { readonly error: string; readonly status?: number; readonly message?: string }
  | { readonly rewrite: (answer: string) => string };

export interface Proxy {
  readonly port: number;
  /** Requests so far. */
  readonly count: () => number;
  close(): Promise<void>;
}

/** Starts a proxy that injects faults. `aheadMs` shifts the time in the Date header of responses. */
export async function startProxy(
  port: number,
  actionFor: (request: ProxiedRequest) => ProxyAction | Promise<ProxyAction>,
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
    const proxyAction = await actionFor({ action, body: body.toString(), number, signedAt });
    if (proxyAction === 'hang') return;
    const date = new Date(Date.now() + aheadMs).toUTCString();
    if (typeof proxyAction === 'object' && 'error' in proxyAction) {
      outgoing.writeHead(proxyAction.status ?? 400, { 'content-type': 'application/x-amz-json-1.0', date });
      const { error, message = 'an injected fault' } = proxyAction;
      outgoing.end(JSON.stringify({ __type: `com.amazonaws.dynamodb.v20120810#${error}`, message }));
      return;
    }
    const { method, url, headers } = incoming;
    const onward = request({ host: '127.0.0.1', port, method, path: url, headers });
    onward.on('error', () => outgoing.destroy());
    onward.end(body);
    const [answer] = (await once(onward, 'response')) as [IncomingMessage];
    if (proxyAction === 'lose') {
      answer.resume();
      await once(answer, 'end');
      outgoing.destroy();
      return;
    }
    if (typeof proxyAction === 'object') {
      const parts: Buffer[] = [];
      for await (const part of answer) parts.push(part as Buffer);
      // Without the original length and checksum.
      outgoing.writeHead(answer.statusCode ?? 500, { 'content-type': answer.headers['content-type'], date });
      outgoing.end(proxyAction.rewrite(Buffer.concat(parts).toString()));
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
