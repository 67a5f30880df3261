import { connect } from 'node:net';
import type { Engine } from './engine.ts';

/** Logs in and returns the server's version; throws if it is not a server of that engine that the tests can use. */
export const handshake = (engine: Engine, url: string): Promise<string> => HANDSHAKES[engine](url);

const HANDSHAKES: Readonly<Record<Engine, (url: string) => Promise<string>>> = {
  postgresql,
  mysql: async (url) => {
    const version = await mysqlVersion(url);
    if (/mariadb/i.test(version)) throw new Error(`it is MariaDB ${version}`);
    return version;
  },
  mariadb: async (url) => {
    const version = await mysqlVersion(url);
    if (!/mariadb/i.test(version)) throw new Error(`it is MySQL ${version}`);
    return version;
  },
  mongodb,
  dynamodb,
  cassandra,
  rabbitmq,
};

async function postgresql(connectionString: string): Promise<string> {
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: ANSWER_TIMEOUT_MS });
  client.on('error', () => {});
  try {
    await client.connect();
    return String((await client.query('SHOW server_version')).rows[0]?.server_version);
  } finally {
    await client.end().catch(() => {});
  }
}

/** Reads the greeting first: the driver waits forever on a port that sends none. */
async function mysqlVersion(url: string): Promise<string> {
  const { hostname, port } = new URL(url);
  await withSocket(hostname, Number(port || 3306), async (send) => {
    const greeting = await send(Buffer.alloc(0), 5, (head) => 4 + head.readUIntLE(0, 3));
    if (greeting[4] !== 10) throw new Error('it does not speak the protocol');
  });
  const { createConnection } = await import('mysql2/promise');
  const connection = await createConnection({
    uri: url.replace(/^mariadb:/, 'mysql:'),
    connectTimeout: ANSWER_TIMEOUT_MS,
  });
  connection.on('error', () => {});
  try {
    const [rows] = await connection.query('SELECT VERSION() AS version');
    return String((rows as { version: string }[])[0]?.version);
  } finally {
    connection.destroy();
  }
}

async function mongodb(url: string): Promise<string> {
  const { BSON } = await import('mongodb');
  const command = BSON.serialize({ buildInfo: 1, $db: 'admin' });
  const head = Buffer.alloc(21);
  head.writeInt32LE(head.length + command.length, 0);
  head.writeInt32LE(2013, 12);
  const [host = '', port] = (/^mongodb:\/\/(?:[^@/]*@)?([^,/?]+)/.exec(url)?.[1] ?? '').split(':');
  return withSocket(host, Number(port ?? 27017), async (send) => {
    const answer = await send(Buffer.concat([head, command]), 16, (bytes) => bytes.readInt32LE(0));
    if (answer.readInt32LE(12) !== 2013) throw new Error('it does not speak the protocol');
    return String(BSON.deserialize(answer.subarray(21)).version);
  });
}

/** Plain HTTP: the AWS SDK is slow to load and retries for too long. */
async function dynamodb(url: string): Promise<string> {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/x-amz-json-1.0',
      'x-amz-target': 'DynamoDB_20120810.ListTables',
      authorization:
        'AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0',
    },
    body: '{"Limit":1}',
    signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
  });
  const text = await response.text();
  if (!response.ok || !text.includes('TableNames')) throw new Error(`HTTP ${response.status} ${text.slice(0, 200)}`);
  return response.headers.get('server') ?? 'answers';
}

/** Sends OPTIONS of the native protocol; the node replies SUPPORTED as soon as it serves clients. */
async function cassandra(url: string): Promise<string> {
  const [host = '', port] = url.split(':');
  return withSocket(host, Number(port ?? 9042), async (send) => {
    const answer = await send(Buffer.from([4, 0, 0, 0, 5, 0, 0, 0, 0]), 9, (bytes) => 9 + bytes.readUInt32BE(5));
    if (answer[0] !== 0x84 || answer[4] !== 6) throw new Error('it does not speak the protocol');
    return `CQL ${/CQL_VERSION.{4}([\d.]+)/s.exec(answer.toString('latin1'))?.[1]}`;
  });
}

/** Opens AMQP 0-9-1 up to Tune, which only follows an accepted login. */
async function rabbitmq(url: string): Promise<string> {
  const { hostname, port, username, password } = new URL(url);
  const login = Buffer.from(`\0${decodeURIComponent(username || 'guest')}\0${decodeURIComponent(password || 'guest')}`);
  const length = (size: number) => [size >>> 24, (size >>> 16) & 255, (size >>> 8) & 255, size & 255];
  const frameLength = (head: Buffer) => 8 + head.readUInt32BE(3);
  return withSocket(hostname, Number(port || 5672), async (send) => {
    const start = await send(Buffer.from('AMQP\0\0\x09\x01'), 7, frameLength);
    if (start.readUInt32BE(7) !== 0x000a000a) throw new Error('it does not speak the protocol');
    const body = Buffer.concat([
      Buffer.from('\0\x0a\0\x0b\0\0\0\0\x05PLAIN'),
      Buffer.from(length(login.length)),
      login,
      Buffer.from('\x05en_US'),
    ]);
    const startOk = Buffer.concat([Buffer.from([1, 0, 0, ...length(body.length)]), body, Buffer.from([0xce])]);
    const tune = await send(startOk, 7, frameLength);
    if (tune.readUInt32BE(7) !== 0x000a001e)
      throw new Error(`it rejects the login: ${tune.toString('latin1', 14, 120)}`);
    return /versionS.{4}([\d.]+)/s.exec(start.toString('latin1'))?.[1] ?? 'answers';
  });
}

/** Sends bytes and returns the frame received in reply; `length` computes its length from its first `head` bytes. */
type SendFrame = (bytes: Uint8Array, head: number, length: (head: Buffer) => number) => Promise<Buffer>;

/** Long enough for a server on a busy machine, short enough for a port that never replies. */
const ANSWER_TIMEOUT_MS = 15_000;
/** No greeting is longer: a longer one belongs to another protocol. */
const MAX_FRAME_BYTES = 1_048_576;

/** Exchanges raw frames: drivers retry for long, and some hang if the port speaks another protocol. */
async function withSocket<T>(address: string, port: number, work: (send: SendFrame) => Promise<T>): Promise<T> {
  const socket = connect(port, address);
  const late = new Error(`no answer within ${ANSWER_TIMEOUT_MS} ms`);
  const timer = setTimeout(() => socket.destroy(late), ANSWER_TIMEOUT_MS);
  const send: SendFrame = (bytes, head, length) =>
    new Promise((resolve, reject) => {
      let received = Buffer.alloc(0);
      const read = (part: Buffer): void => {
        received = Buffer.concat([received, part]);
        if (received.length < head) return;
        const frame = length(received);
        if (frame < head || frame > MAX_FRAME_BYTES)
          reject(new Error(`it answers ${JSON.stringify(received.toString('latin1', 0, 40))}`));
        else if (received.length >= frame) resolve(received.subarray(0, frame));
      };
      socket.removeAllListeners().on('data', read).on('error', reject);
      socket.on('close', () => reject(new Error('it closed the connection')));
      socket.write(bytes);
    });
  try {
    return await work(send);
  } finally {
    clearTimeout(timer);
    socket.removeAllListeners().on('error', () => {});
    socket.destroy();
  }
}
