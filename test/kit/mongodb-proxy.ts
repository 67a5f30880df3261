import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { Document } from 'mongodb';
import { cut, type Request, readRequest, writeAnswer } from '../servers/documentdb/wire.ts';

/** A command on its way to the server; the driver's own looking after the server is not counted. */
export interface Passing {
  readonly number: number;
  readonly name: string;
  readonly command: Document;
}

/**
 * What becomes of it: it arrives, it never does, its answer is lost with the connection or says that the other members did
 * not confirm it in time, or it is refused with a code, or answered without the server.
 */
export type Fate =
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

const WATCHING: ReadonlySet<string> = new Set(['hello', 'isMaster', 'ismaster']);

/** A network between a client and a MongoDB server that looks into every message. */
export async function mongoProxy(target: string, decide: (passing: Passing) => Fate | undefined): Promise<MongoProxy> {
  const { hostname, port, pathname } = new URL(target);
  const open = new Set<Socket>();
  let count = 0;
  const server = createServer((client) => {
    const upstream = connect(Number(port || 27017), hostname);
    let lose = false;
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
      if (lose) return end();
      if (!unconfirmed) return client.write(data);
      const { messages, rest } = cut(Buffer.concat([answer, data]));
      answer = rest;
      const [message] = messages;
      if (!message) return undefined;
      const told = { ...readRequest(message).command, writeConcernError: UNCONFIRMED };
      const request = unconfirmed;
      unconfirmed = undefined;
      return client.write(writeAnswer(request, told));
    });
    client.on('data', (chunk) => {
      const found = cut(Buffer.concat([rest, chunk]));
      rest = found.rest;
      for (const message of found.messages) {
        const request = readRequest(message);
        const name = Object.keys(request.command)[0] ?? '';
        const number = WATCHING.has(name) ? 0 : ++count;
        const fate = number > 0 ? decide({ number, name, command: request.command }) : 'pass';
        if (fate === 'hang') return;
        if (typeof fate === 'object' && 'answer' in fate) {
          client.write(writeAnswer(request, { ok: 1, ...fate.answer }));
          continue;
        }
        if (typeof fate === 'object') {
          const { code, errmsg = 'refused on the way', labels = [] } = fate;
          client.write(writeAnswer(request, { ok: 0, code, codeName: `Location${code}`, errmsg, errorLabels: labels }));
          continue;
        }
        lose ||= fate === 'lose';
        if (fate === 'unconfirmed') unconfirmed = request;
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
