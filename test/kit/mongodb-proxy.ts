import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { Document } from 'mongodb';
import { type Request, readRequest, splitMessages, writeAnswer } from '../servers/documentdb/wire.ts';

/** A command from the client. Monitoring commands of the driver are not counted. */
export interface ProxiedCommand {
  readonly number: number;
  readonly name: string;
  readonly command: Document;
}

/**
 * What the proxy does with a command: forward it; never reply; forward it and lose the response with the connection, or
 * add a write concern error to it; reply with an error code; or reply with a document.
 */
export type ProxyAction =
  | 'pass'
  | 'hang'
  | 'lose'
  | 'unconfirmed'
  | { readonly code: number; readonly errmsg?: string; readonly labels?: readonly string[] }
  | { readonly answer: Document };

export interface MongoProxy {
  readonly url: string;
  count(): number;
  close(): Promise<void>;
}

const UNCONFIRMED = { code: 64, errmsg: 'waiting for replication timed out', errInfo: { wtimeout: true } };

const MONITORING_COMMANDS: ReadonlySet<string> = new Set(['hello', 'isMaster', 'ismaster']);

/** Starts a proxy to a MongoDB server that injects faults. `answered` is called when the server begins to answer a command. */
export async function startMongoProxy(
  target: string,
  decide: (command: ProxiedCommand) => ProxyAction | undefined,
  answered?: (command: ProxiedCommand) => void,
): Promise<MongoProxy> {
  const { hostname, port, pathname } = new URL(target);
  const open = new Set<Socket>();
  let count = 0;
  const server = createServer((client) => {
    const upstream = connect(Number(port || 27017), hostname);
    let losesAnswer = false;
    let unanswered: ProxiedCommand | undefined;
    let rest: Buffer = Buffer.alloc(0);
    let unconfirmed: Request | undefined;
    let answer: Buffer = Buffer.alloc(0);
    const end = () => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on('error', end).on('close', () => {
        open.delete(socket);
        end();
      });
    }
    upstream.on('data', (data) => {
      if (unanswered) answered?.(unanswered);
      unanswered = undefined;
      if (losesAnswer) return end();
      if (!unconfirmed) return client.write(data);
      const { messages, rest } = splitMessages(Buffer.concat([answer, data]));
      answer = rest;
      const [message] = messages;
      if (!message) return undefined;
      const rewritten = { ...readRequest(message).command, writeConcernError: UNCONFIRMED };
      const request = unconfirmed;
      unconfirmed = undefined;
      return client.write(writeAnswer(request, rewritten));
    });
    client.on('data', (chunk) => {
      const found = splitMessages(Buffer.concat([rest, chunk]));
      rest = found.rest;
      for (const message of found.messages) {
        const request = readRequest(message);
        const name = Object.keys(request.command)[0] ?? '';
        const number = MONITORING_COMMANDS.has(name) ? 0 : ++count;
        unanswered = { number, name, command: request.command };
        const action = number > 0 ? decide(unanswered) : 'pass';
        if (action === 'hang') return;
        if (typeof action === 'object' && 'answer' in action) {
          client.write(writeAnswer(request, { ok: 1, ...action.answer }));
          continue;
        }
        if (typeof action === 'object') {
          const { code, errmsg = 'an injected fault', labels = [] } = action;
          client.write(writeAnswer(request, { ok: 0, code, codeName: `Location${code}`, errmsg, errorLabels: labels }));
          continue;
        }
        losesAnswer ||= action === 'lose';
        if (action === 'unconfirmed') unconfirmed = request;
        upstream.write(message);
      }
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `mongodb://127.0.0.1:${(server.address() as AddressInfo).port}${pathname}`,
    count: () => count,
    async close() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
