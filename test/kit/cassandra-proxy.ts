import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

const HEADER_BYTES = 9;
const OPCODE = { error: 0x00, query: 0x07, result: 0x08, prepare: 0x09, execute: 0x0a } as const;
const PREPARED = 4;

/** The bodies of errors after their code and message, as the protocol has them. */
const DETAILS: Readonly<Record<number, Buffer>> = {
  // LOCAL_QUORUM, none of one node answered, no data.
  4608: Buffer.from([0, 6, 0, 0, 0, 0, 0, 0, 0, 1, 0]),
};

export const OVERLOADED = 0x1001;
export const READ_TIMEOUT = 0x1200;

export interface CassandraProxy {
  readonly port: number;
  close(): Promise<void>;
}

/**
 * Starts a proxy to a node that answers a prepared statement with an error instead of forwarding it, where `errorFor` returns the code
 * of one. `pageSize` is undefined for a statement without one.
 */
export async function startCassandraProxy(
  target: number,
  errorFor: (cql: string, pageSize: number | undefined) => number | undefined,
): Promise<CassandraProxy> {
  const open = new Set<Socket>();
  /** By the id of the statement. */
  const prepared = new Map<string, string>();
  const server = createServer((client) => {
    const node = connect(target, '127.0.0.1');
    /** The statements that are being prepared, by their stream. */
    const preparing = new Map<number, string>();
    const end = () => {
      client.destroy();
      node.destroy();
    };
    for (const socket of [client, node]) {
      open.add(socket);
      socket.on('error', end).on('close', () => {
        open.delete(socket);
        end();
      });
    }
    onFrames(client, (frame) => {
      const opcode = frame.readUInt8(4);
      const body = frame.subarray(HEADER_BYTES);
      if (opcode === OPCODE.prepare) preparing.set(frame.readInt16BE(2), body.toString('utf8', 4));
      if (opcode === OPCODE.execute) {
        const idEnd = 2 + body.readUInt16BE(0);
        const code = errorFor(prepared.get(body.toString('hex', 2, idEnd)) ?? '', pageSizeOf(body.subarray(idEnd)));
        if (code !== undefined) return void client.write(errorFrame(frame, code));
      }
      node.write(frame);
    });
    onFrames(node, (frame) => {
      const cql = preparing.get(frame.readInt16BE(2));
      const body = frame.subarray(HEADER_BYTES);
      if (cql !== undefined && frame.readUInt8(4) === OPCODE.result && body.readInt32BE(0) === PREPARED) {
        prepared.set(body.toString('hex', 6, 6 + body.readUInt16BE(4)), cql);
        preparing.delete(frame.readInt16BE(2));
      }
      client.write(frame);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Calls `handle` with each whole frame of protocol version 4 or earlier. */
function onFrames(socket: Socket, handle: (frame: Buffer) => void): void {
  let rest: Buffer = Buffer.alloc(0);
  socket.on('data', (chunk) => {
    rest = Buffer.concat([rest, chunk as Buffer]);
    while (rest.length >= HEADER_BYTES && rest.length >= HEADER_BYTES + rest.readInt32BE(5)) {
      const end = HEADER_BYTES + rest.readInt32BE(5);
      handle(rest.subarray(0, end));
      rest = rest.subarray(end);
    }
  });
}

/** The parameters of an execution: consistency, flags, values, page size. */
function pageSizeOf(parameters: Buffer): number | undefined {
  const flags = parameters.readUInt8(2);
  if ((flags & 0x04) === 0) return undefined;
  let at = 3;
  if ((flags & 0x01) !== 0) {
    const count = parameters.readUInt16BE(at);
    at += 2;
    for (let index = 0; index < count; index += 1) at += 4 + Math.max(0, parameters.readInt32BE(at));
  }
  return parameters.readInt32BE(at);
}

function errorFrame(request: Buffer, code: number): Buffer {
  const message = Buffer.from('an injected fault');
  const head = Buffer.alloc(6);
  head.writeInt32BE(code, 0);
  head.writeUInt16BE(message.length, 4);
  const body = Buffer.concat([head, message, DETAILS[code] ?? Buffer.alloc(0)]);
  const frame = Buffer.alloc(HEADER_BYTES);
  frame.writeUInt8(request.readUInt8(0) | 0x80, 0);
  frame.writeInt16BE(request.readInt16BE(2), 2);
  frame.writeUInt8(OPCODE.error, 4);
  frame.writeInt32BE(body.length, 5);
  return Buffer.concat([frame, body]);
}
