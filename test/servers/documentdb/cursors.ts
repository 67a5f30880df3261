import type { Document, Long } from 'bson';
import type { PoolClient } from 'pg';
import { CommandError } from './errors.ts';
import { bson, bytesOf, first, hex } from './sql.ts';

/** A cursor between two pages. */
interface OpenCursor {
  readonly continuation: string;
  readonly namespace: string;
  /** Set if the engine keeps the cursor in its session, which must serve nothing else until the cursor is closed. */
  readonly client?: PoolClient;
}

const FIRST_PAGE: Readonly<Record<string, string>> = {
  find: 'find_cursor_first_page',
  aggregate: 'aggregate_cursor_first_page',
  listCollections: 'list_collections_cursor_first_page',
  listIndexes: 'list_indexes_cursor_first_page',
};

export const opensCursor = (name: string): boolean => Object.hasOwn(FIRST_PAGE, name);

/** Cursors of all clients: a driver may request the next page over another socket. */
export class Cursors {
  readonly #open = new Map<string, OpenCursor>();

  /** Calls `keepSession` if the session belongs to the cursor from now on. */
  async first(
    client: PoolClient,
    database: string,
    name: string,
    command: Document,
    keepSession: (() => void) | undefined,
  ): Promise<Buffer> {
    const call = `documentdb_api.${FIRST_PAGE[name]}($1, ${bson(2)})`;
    const text = `SELECT cursorpage::text AS page, continuation::text AS continuation, persistconnection AS kept, cursorid::text AS id FROM ${call}`;
    const row = await first(client, text, [database, hex(command)]);
    if (row.continuation !== null && row.id !== '0') {
      const isPersistent = row.kept === true && keepSession !== undefined;
      if (isPersistent) keepSession();
      this.#open.set(String(row.id), {
        continuation: String(row.continuation),
        namespace: `${database}.${String(command[name])}`,
        ...(isPersistent && { client }),
      });
    }
    return bytesOf(String(row.page));
  }

  async next(
    pool: () => Promise<PoolClient>,
    pinned: PoolClient | undefined,
    database: string,
    command: Document,
  ): Promise<Buffer> {
    const id = String(command.getMore as Long);
    const open = this.#open.get(id);
    if (!open) throw notFound(id);
    // Of two concurrent requests for one cursor, the second finds none.
    this.#open.delete(id);
    const client = open.client ?? pinned ?? (await pool());
    let isInUse = client === pinned;
    try {
      const text = `SELECT cursorpage::text AS page, continuation::text AS continuation FROM documentdb_api.cursor_get_more($1, ${bson(2)}, ${bson(3)})`;
      const row = await first(client, text, [database, hex(command), open.continuation]);
      if (row.continuation !== null) {
        this.#open.set(id, { ...open, continuation: String(row.continuation) });
        isInUse ||= open.client !== undefined;
      }
      return bytesOf(String(row.page));
    } finally {
      if (!isInUse) client.release();
    }
  }

  kill(ids: readonly Long[]): Document {
    const killed = ids.filter((id) => this.#forget(String(id)));
    return {
      cursorsKilled: killed,
      cursorsNotFound: ids.filter((id) => !killed.includes(id)),
      cursorsAlive: [],
      cursorsUnknown: [],
      ok: 1,
    };
  }

  #forget(id: string): boolean {
    const open = this.#open.get(id);
    // A session with an open portal cannot be reused.
    open?.client?.release(true);
    return this.#open.delete(id);
  }

  close(): void {
    for (const id of [...this.#open.keys()]) this.#forget(id);
  }
}

const notFound = (id: string) => new CommandError(43, 'CursorNotFound', `cursor id ${id} not found`);
