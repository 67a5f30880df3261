import { createServer, type Server, type Socket } from 'node:net';
import type { Document } from 'bson';
import { Pool, type PoolClient } from 'pg';
import { engineCommand, handlerOf } from './commands.ts';
import { Cursors, opensCursor } from './cursors.ts';
import { commandError, writeErrorCode } from './errors.ts';
import { Transactions } from './transactions.ts';
import { type Answer, decode, MAX_MESSAGE, type Request, readRequest, splitMessages, writeAnswer } from './wire.ts';

/** PostgreSQL sessions shared by all clients. */
const SESSIONS = 40;
const WRITES: ReadonlySet<string> = new Set(['insert', 'update', 'delete']);

/**
 * MongoDB's wire protocol in front of the DocumentDB extension of PostgreSQL, so that the official driver can be tested
 * against a real engine without mongod. A test server: no authentication, no TLS, loopback only.
 */
export class Gateway {
  readonly #pool: Pool;
  readonly #cursors = new Cursors();
  readonly #transactions: Transactions;
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;
  #engine = '';

  constructor(postgresql: string) {
    this.#pool = new Pool({ connectionString: postgresql, max: SESSIONS, connectionTimeoutMillis: 10_000 });
    // The next command reports a lost session.
    this.#pool.on('error', () => {});
    this.#pool.on('connect', (client) => void client.on('error', () => {}));
    this.#transactions = new Transactions(this.#pool);
    this.#server = createServer((socket) => this.#serve(socket));
  }

  /** Returns the port it listens on, once PostgreSQL has answered. */
  async listen(port: number): Promise<number> {
    const { rows } = await this.#pool.query(
      "SELECT extversion, split_part(version(), ' ', 2) AS server FROM pg_extension WHERE extname = 'documentdb'",
    );
    if (!rows[0]) throw new Error('the PostgreSQL server lacks the extension: CREATE EXTENSION documentdb CASCADE');
    this.#engine = `DocumentDB ${rows[0].extversion} on PostgreSQL ${rows[0].server}`;
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject).listen(port, '127.0.0.1', resolve);
    });
    const address = this.#server.address();
    return typeof address === 'object' && address ? address.port : port;
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    this.#cursors.close();
    await this.#transactions.close().catch(() => undefined);
    await this.#pool.end();
    await closed;
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    let rest: Buffer = Buffer.alloc(0);
    let last: Promise<void> = Promise.resolve();
    const handle = async (request: Request): Promise<void> => {
      const answer = await this.#answer(request.command);
      if (!request.noReply && !socket.destroyed) socket.write(writeAnswer(request, answer));
    };
    socket.on('data', (chunk) => {
      try {
        const found = splitMessages(rest.length === 0 ? chunk : Buffer.concat([rest, chunk]));
        rest = found.rest;
        for (const message of found.messages) {
          const request = readRequest(message);
          last = last.then(() => handle(request)).catch(() => void socket.destroy());
        }
      } catch {
        // The protocol has no reply to a malformed message.
        socket.destroy();
      }
    });
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.#sockets.delete(socket));
  }

  async #answer(received: Document): Promise<Answer> {
    try {
      return await this.#run(received);
    } catch (error) {
      const inTransaction = received.autocommit === false;
      if (inTransaction) await this.#transactions.abort(received).catch(() => undefined);
      return commandError(error, inTransaction).answer();
    }
  }

  async #run(received: Document): Promise<Answer> {
    const name = Object.keys(received)[0] ?? '';
    const localAnswer = await this.#answerLocally(name, received);
    if (localAnswer) return localAnswer;
    const database = String(received.$db);
    const command = engineCommand(received);
    const pinned = await this.#transactions.sessionOf(received);
    if (name === 'getMore') return this.#cursors.next(() => this.#pool.connect(), pinned, database, command);
    const client: PoolClient = pinned ?? (await this.#pool.connect());
    let isInUse = pinned !== undefined;
    try {
      if (opensCursor(name)) {
        const keepSession = () => {
          isInUse = true;
        };
        return await this.#cursors.first(client, database, name, command, pinned ? undefined : keepSession);
      }
      const answer = await handlerOf(name)({ client, database, command, received });
      return WRITES.has(name) ? await this.#unpackWriteErrors(received, answer) : answer;
    } finally {
      if (!isInUse) client.release();
    }
  }

  /** Unpacks the error codes of a bulk write. */
  async #unpackWriteErrors(received: Document, answer: Answer): Promise<Answer> {
    const found = Buffer.isBuffer(answer) ? decode(answer) : answer;
    const errors = found.writeErrors as Document[] | undefined;
    if (!errors?.length) return answer;
    if (received.autocommit === false) await this.#transactions.abort(received);
    return { ...found, writeErrors: errors.map((error) => ({ ...error, code: writeErrorCode(Number(error.code)) })) };
  }

  /** Commands that the gateway answers itself. */
  async #answerLocally(name: string, received: Document): Promise<Document | undefined> {
    switch (name) {
      case 'hello':
      case 'isMaster':
      case 'ismaster':
        return this.#hello(name);
      case 'ping':
        await this.#pool.query('SELECT 1');
        return { ok: 1 };
      case 'buildInfo':
      case 'buildinfo':
        return { version: '7.0.0', versionArray: [7, 0, 0, 0], gateway: this.#engine, modules: [], bits: 64, ok: 1 };
      case 'commitTransaction':
        return this.#transactions.finish(received, 'COMMIT');
      case 'abortTransaction':
        return this.#transactions.finish(received, 'ROLLBACK');
      case 'endSessions':
        await this.#transactions.endSessions(received.endSessions as Document[]);
        return { ok: 1 };
      case 'killCursors':
        return this.#cursors.kill(received.cursors);
      default:
        return undefined;
    }
  }

  #hello(name: string): Document {
    return {
      [name === 'hello' ? 'isWritablePrimary' : 'ismaster']: true,
      helloOk: true,
      // Makes a driver use sessions, transactions and retryable writes without a replica set.
      msg: 'isdbgrid',
      maxBsonObjectSize: 16_777_216,
      maxMessageSizeBytes: MAX_MESSAGE,
      maxWriteBatchSize: 100_000,
      localTime: new Date(),
      logicalSessionTimeoutMinutes: 30,
      minWireVersion: 0,
      maxWireVersion: 21,
      readOnly: false,
      gateway: this.#engine,
      ok: 1,
    };
  }
}
