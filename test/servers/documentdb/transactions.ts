import type { Binary, Document, Long } from 'bson';
import type { Pool, PoolClient } from 'pg';
import { CommandError } from './errors.ts';

interface Running {
  readonly number: string;
  readonly client: PoolClient;
  readonly ending: NodeJS.Timeout;
}

/** A transaction whose client has gone holds its documents so long, as on mongod. */
const LIFETIME_MS = 60_000;

/** The transaction of each session: a session of PostgreSQL from its first command to its last. */
export class Transactions {
  readonly #pool: Pool;
  readonly #running = new Map<string, Running>();
  /** The last one that each session committed: a driver that lost the answer commits again. */
  readonly #committed = new Map<string, string>();

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** The session of PostgreSQL that a command of a transaction belongs to; undefined for a command outside. */
  async of(command: Document): Promise<PoolClient | undefined> {
    if (command.autocommit !== false) return undefined;
    const session = idOf(command);
    const number = String(command.txnNumber as Long);
    const running = this.#running.get(session);
    if (command.startTransaction) {
      if (running) await this.#end(session, 'ROLLBACK');
      const client = await this.#pool.connect();
      // A snapshot, and no waiting for a write that came in between: as near to mongod as it goes.
      await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
      const ending = setTimeout(() => void this.#end(session, 'ROLLBACK').catch(() => undefined), LIFETIME_MS).unref();
      this.#running.set(session, { number, client, ending });
      return client;
    }
    if (running?.number === number) return running.client;
    throw gone(number);
  }

  async finish(command: Document, how: 'COMMIT' | 'ROLLBACK'): Promise<Document> {
    const session = idOf(command);
    const number = String(command.txnNumber as Long);
    if (this.#running.get(session)?.number === number) {
      await this.#end(session, how);
      if (how === 'COMMIT') this.#committed.set(session, number);
    } else if (how === 'ROLLBACK' || this.#committed.get(session) !== number) throw gone(number);
    return { ok: 1 };
  }

  /** An error ends the transaction, as it does on mongod. */
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

  async #end(session: string, how: 'COMMIT' | 'ROLLBACK'): Promise<void> {
    const running = this.#running.get(session);
    if (!running) return;
    this.#running.delete(session);
    clearTimeout(running.ending);
    try {
      await running.client.query(how);
      running.client.release();
    } catch (error) {
      running.client.release(true);
      throw error;
    }
  }
}

/** Names a write that a driver may send twice; the engine applies it once. */
export function retryId(command: Document): string | null {
  return command.txnNumber === undefined || command.autocommit === false
    ? null
    : `${idOf(command)}:${String(command.txnNumber as Long)}`;
}

const keyOf = (id: Binary): string => Buffer.from(id.buffer).toString('hex');
const idOf = (command: Document): string => keyOf((command.lsid as { id: Binary }).id);

const gone = (number: string) =>
  new CommandError(
    251,
    'NoSuchTransaction',
    `Given transaction number ${number} does not match any in-progress transactions.`,
    ['TransientTransactionError'],
  );
