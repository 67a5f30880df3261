import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request as the service receives it. */
export interface HttpRequest {
  readonly method: string;
  /** The path and query. */
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export interface WebhookReceiver {
  readonly url: string;
  /** Every request, oldest first. */
  readonly received: readonly HttpRequest[];
  /** The number of requests that are not answered and whose connection is open. */
  pending(): number;
  close(): void;
}

type Answer = (response: ServerResponse, attempt: number, request: HttpRequest) => void;

/** A server that receives webhooks and answers with a status, or with a function. */
export async function startWebhookReceiver(answer: number | Answer): Promise<WebhookReceiver> {
  const received: HttpRequest[] = [];
  let pending = 0;
  const server = createServer(async (request, response) => {
    pending += 1;
    response.once('close', () => {
      pending -= 1;
    });
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const { method = '', url: path = '', headers } = request;
    const one = { method, path, headers, body: Buffer.concat(parts).toString('utf8') };
    received.push(one);
    if (typeof answer === 'function') answer(response, received.length, one);
    else response.writeHead(answer).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/approvals`,
    received,
    pending: () => pending,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
