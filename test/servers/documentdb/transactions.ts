import type { Binary, Document, Long } from 'bson';
import type { Pool, PoolClient } from 'pg';
import { CommandError } from './errors.ts';

interface Running {
  readonly number: string;
  readonly client: PoolClient;
  readonly ending: NodeJS.Timeout;
}

/** How long a transaction whose client has gone locks its documents, as in mongod. */
const LIFETIME_MS = 60_000;

/** The open transaction of each MongoDB session, each in its own PostgreSQL session. */
export class Transactions {
  readonly #pool: Pool;
  readonly #running = new Map<string, Running>();
  /** The last transaction that each session committed: a driver that lost the reply commits again. */
  readonly #committed = new Map<string, string>();

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** The PostgreSQL session of a command in a transaction; undefined for other commands. */
  async sessionOf(command: Document): Promise<PoolClient | undefined> {
    if (command.autocommit !== false) return undefined;
    const session = idOf(command);
    const number = String(command.txnNumber as Long);
    const running = this.#running.get(session);
    if (command.startTransaction) {
      if (running) await this.#end(session, 'ROLLBACK');
      const client = await this.#pool.connect();
      // A snapshot that fails on concurrent writes: the closest PostgreSQL comes to mongod.
      await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
      const ending = setTimeout(() => void this.#end(session, 'ROLLBACK').catch(() => undefined), LIFETIME_MS).unref();
      this.#running.set(session, { number, client, ending });
      return client;
    }
    if (running?.number === number) return running.client;
    throw noSuchTransaction(number);
  }

  async finish(command: Document, statement: 'COMMIT' | 'ROLLBACK'): Promise<Document> {
    const session = idOf(command);
    const number = String(command.txnNumber as Long);
    if (this.#running.get(session)?.number === number) {
      await this.#end(session, statement);
      if (statement === 'COMMIT') this.#committed.set(session, number);
    } else if (statement === 'ROLLBACK' || this.#committed.get(session) !== number) throw noSuchTransaction(number);
    return { ok: 1 };
  }

  /** Rolls back after an error, as mongod does. */
  async abort(command: Document): Promise<void> {
    await this.#end(idOf(command), 'ROLLBACK');
  }

  async endSessions(sessions: readonly Document[]): Promise<void> {
    for (const { id } of sessions) {
      this.#committed.delete(keyOf(id as Binary));
      await this.#end(keyOf(id as Binary), 'ROLLBACK');
    }
  }

  async close(): Promise<void> {
    for (const session of [...this.#running.keys()]) await this.#end(session, 'ROLLBACK');
  }

  async #end(session: string, statement: 'COMMIT' | 'ROLLBACK'): Promise<void> {
    const running = this.#running.get(session);
    if (!running) return;
    this.#running.delete(session);
    clearTimeout(running.ending);
    try {
      await running.client.query(statement);
      running.client.release();
    } catch (error) {
      running.client.release(true);
      throw error;
    }
  }
}

/** Identifies a write that a driver may retry; the engine applies it once. */
export function retryId(command: Document): string | null {
  return command.txnNumber === undefined || command.autocommit === false
    ? null
    : `${idOf(command)}:${String(command.txnNumber as Long)}`;
}

const keyOf = (id: Binary): string => Buffer.from(id.buffer).toString('hex');
const idOf = (command: Document): string => keyOf((command.lsid as { id: Binary }).id);

const noSuchTransaction = (number: string) =>
  new CommandError(
    251,
    'NoSuchTransaction',
    `Given transaction number ${number} does not match any in-progress transactions.`,
    ['TransientTransactionError'],
  );
