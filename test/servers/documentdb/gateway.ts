import { createServer, type Server, type Socket } from 'node:net';
import type { Document } from 'bson';
import { Pool, type PoolClient } from 'pg';
import { bare, handlerOf } from './commands.ts';
import { Cursors, opensCursor } from './cursors.ts';
import { commandError, writeErrorCode } from './errors.ts';
import { Transactions } from './transactions.ts';
import { type Answer, cut, decode, MAX_MESSAGE, type Request, readRequest, writeAnswer } from './wire.ts';

/** Sessions of PostgreSQL for all clients together. */
const SESSIONS = 40;
const WRITES: ReadonlySet<string> = new Set(['insert', 'update', 'delete']);

/**
 * MongoDB's wire protocol before the DocumentDB extension of PostgreSQL, so that the official driver can be tested
 * against a real engine where no mongod is. It is a test server: no authentication, no TLS, loopback only.
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
    // A session that dies is told of by the next command, idle or not.
    this.#pool.on('error', () => {});
    this.#pool.on('connect', (client) => void client.on('error', () => {}));
    this.#transactions = new Transactions(this.#pool);
    this.#server = createServer((socket) => this.#serve(socket));
  }

  /** The port it listens on, once PostgreSQL has answered. */
  async listen(port: number): Promise<number> {
    const { rows } = await this.#pool.query(
      "SELECT extversion, split_part(version(), ' ', 2) AS server FROM pg_extension WHERE extname = 'documentdb'",
    );
    if (!rows[0]) throw new Error('that PostgreSQL has no extension documentdb: CREATE EXTENSION documentdb CASCADE');
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
    const take = async (request: Request): Promise<void> => {
      const answer = await this.#answer(request.command);
      if (!request.silent && !socket.destroyed) socket.write(writeAnswer(request, answer));
    };
    socket.on('data', (chunk) => {
      try {
        const found = cut(rest.length === 0 ? chunk : Buffer.concat([rest, chunk]));
        rest = found.rest;
        for (const message of found.messages) {
          const request = readRequest(message);
          last = last.then(() => take(request)).catch(() => void socket.destroy());
        }
      } catch {
        // What is no message of the protocol has no answer in it either.
        socket.destroy();
      }
    });
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.#sockets.delete(socket));
  }

  async #answer(sent: Document): Promise<Answer> {
    try {
      return await this.#run(sent);
    } catch (error) {
      const inTransaction = sent.autocommit === false;
      if (inTransaction) await this.#transactions.abort(sent).catch(() => undefined);
      return commandError(error, inTransaction).answer();
    }
  }

  async #run(sent: Document): Promise<Answer> {
    const name = Object.keys(sent)[0] ?? '';
    const own = await this.#own(name, sent);
    if (own) return own;
    const database = String(sent.$db);
    const command = bare(sent);
    const pinned = await this.#transactions.of(sent);
    if (name === 'getMore') return this.#cursors.next(() => this.#pool.connect(), pinned, database, command);
    const client: PoolClient = pinned ?? (await this.#pool.connect());
    let kept = pinned !== undefined;
    try {
      if (opensCursor(name)) {
        const keep = () => {
          kept = true;
        };
        return await this.#cursors.first(client, database, name, command, pinned ? undefined : keep);
      }
      const answer = await handlerOf(name)({ client, database, command, sent });
      return WRITES.has(name) ? await this.#translated(sent, answer) : answer;
    } finally {
      if (!kept) client.release();
    }
  }

  /** Codes inside a bulk write, which the engine packs. */
  async #translated(sent: Document, answer: Answer): Promise<Answer> {
    const found = Buffer.isBuffer(answer) ? decode(answer) : answer;
    const errors = found.writeErrors as Document[] | undefined;
    if (!errors?.length) return answer;
    if (sent.autocommit === false) await this.#transactions.abort(sent);
    return { ...found, writeErrors: errors.map((error) => ({ ...error, code: writeErrorCode(Number(error.code)) })) };
  }

  /** What the gateway answers itself. */
  async #own(name: string, sent: Document): Promise<Document | undefined> {
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
        return this.#transactions.finish(sent, 'COMMIT');
      case 'abortTransaction':
        return this.#transactions.finish(sent, 'ROLLBACK');
      case 'endSessions':
        await this.#transactions.endSessions(sent.endSessions as Document[]);
        return { ok: 1 };
      case 'killCursors':
        return this.#cursors.kill(sent.cursors);
      default:
        return undefined;
    }
  }

  #hello(name: string): Document {
    return {
      [name === 'hello' ? 'isWritablePrimary' : 'ismaster']: true,
      helloOk: true,
      // What makes a driver use sessions, transactions and retryable writes without a replica set.
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
