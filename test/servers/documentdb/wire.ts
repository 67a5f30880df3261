import { type Document, deserialize, serialize } from 'bson';

const OP_REPLY = 1;
const OP_QUERY = 2004;
const OP_MSG = 2013;
const HEADER = 16;
export const MAX_MESSAGE = 48_000_000;
const CHECKSUM_PRESENT = 1 << 0;
const MORE_TO_COME = 1 << 1;

/** One request of a client: the command of its body and its document sequences. */
export interface Request {
  readonly id: number;
  readonly command: Document;
  /** Sent as OP_QUERY, as the first hello is; the reply uses the same form. */
  readonly legacy: boolean;
  /** The client expects no reply. */
  readonly noReply: boolean;
}

/** A document, or its bytes as the engine encoded them. */
export type Answer = Document | Buffer;

/** Splits received bytes into messages; `rest` is the incomplete last one. */
export function splitMessages(bytes: Buffer): { messages: Buffer[]; rest: Buffer } {
  const messages: Buffer[] = [];
  let at = 0;
  while (bytes.length - at >= HEADER) {
    const length = bytes.readInt32LE(at);
    if (length < HEADER || length > MAX_MESSAGE) throw new Error(`a message of ${length} bytes`);
    if (bytes.length - at < length) break;
    messages.push(bytes.subarray(at, at + length));
    at += length;
  }
  return { messages, rest: bytes.subarray(at) };
}

export function readRequest(message: Buffer): Request {
  const id = message.readInt32LE(4);
  const code = message.readInt32LE(12);
  if (code === OP_QUERY) {
    const name = message.indexOf(0, HEADER + 4);
    return { id, command: decode(message.subarray(name + 9)), legacy: true, noReply: false };
  }
  if (code !== OP_MSG) throw new Error(`the message type ${code}`);
  const flags = message.readUInt32LE(HEADER);
  const end = message.length - (flags & CHECKSUM_PRESENT ? 4 : 0);
  let command: Document = {};
  const sequences: [string, Document[]][] = [];
  for (let at = HEADER + 4; at < end; ) {
    const kind = message.readUInt8(at);
    const size = message.readInt32LE(at + 1);
    const section = message.subarray(at + 1, at + 1 + size);
    if (kind === 0) command = decode(section);
    else if (kind === 1) sequences.push(readSequence(section));
    else throw new Error(`a section of kind ${kind}`);
    at += 1 + size;
  }
  return {
    id,
    command: { ...command, ...Object.fromEntries(sequences) },
    legacy: false,
    noReply: (flags & MORE_TO_COME) !== 0,
  };
}

function readSequence(section: Buffer): [string, Document[]] {
  const end = section.indexOf(0, 4);
  const documents: Document[] = [];
  for (let at = end + 1; at < section.length; at += section.readInt32LE(at))
    documents.push(decode(section.subarray(at)));
  return [section.toString('utf8', 4, end), documents];
}

/** Keeps BSON types, so that encoding the document again yields the same bytes. */
export function decode(bytes: Buffer): Document {
  return deserialize(bytes.subarray(0, bytes.readInt32LE(0)), {
    promoteValues: false,
    promoteBuffers: false,
    bsonRegExp: true,
  });
}

export function encode(document: Document): Buffer {
  return Buffer.from(serialize(document, { ignoreUndefined: false }));
}

let replies = 0;

export function writeAnswer({ id, legacy }: Request, answer: Answer): Buffer {
  const body = Buffer.isBuffer(answer) ? answer : encode(answer);
  const prefix = legacy ? replyPrefix() : Buffer.from([0, 0, 0, 0, 0]);
  const header = Buffer.alloc(HEADER);
  replies = (replies + 1) & 0x7fffffff;
  header.writeInt32LE(HEADER + prefix.length + body.length, 0);
  header.writeInt32LE(replies, 4);
  header.writeInt32LE(id, 8);
  header.writeInt32LE(legacy ? OP_REPLY : OP_MSG, 12);
  return Buffer.concat([header, prefix, body]);
}

/** Flags, cursor id, starting from, number of documents. */
function replyPrefix(): Buffer {
  const prefix = Buffer.alloc(20);
  prefix.writeInt32LE(1, 16);
  return prefix;
}

/** A request for tests of what no driver would send. */
export function writeRequest(id: number, command: Document): Buffer {
  return writeAnswer({ id: 0, command: {}, legacy: false, noReply: false }, command).fill(
    Buffer.from(Int32Array.of(id).buffer),
    4,
    8,
  );
}
