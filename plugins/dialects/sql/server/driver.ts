import { SerialQueue } from '../../../shared/serial-queue.ts';
import type { ExecSql, Result } from '../session.ts';
import type { QueryAll } from './catalog-rows.ts';
import type { RejectedStatements } from './rejected-statements.ts';

/** A session of a server, whose functions are never called concurrently. They throw the errors of the engine as they are. */
export interface SqlServer {
  /** Product and version of the server, for people. */
  readonly server: string;
  /**
   * Runs one statement. `count` is the number of rows that an INSERT, UPDATE or DELETE affected, 0 if it affected none; of all
   * other statements, only `rows` is read. Integers in rows are numbers or bigints, bytes are a `Uint8Array`, timestamps are
   * dates, and JSON is text.
   */
  exec(text: string): Promise<Result>;
  /** The results of several queries, in one round trip if the driver can. Default: one after the other. */
  queryAll?(texts: readonly string[]): Promise<readonly Result[]>;
  /**
   * Runs `work` in a transaction, which it commits or rolls back. Default: the statements BEGIN, COMMIT and ROLLBACK. It reads what
   * other sessions have committed in the meantime (READ COMMITTED): the row of the migration lock is renewed while it is open.
   */
  transaction?<T>(work: () => Promise<T>): Promise<T>;
  /** Called once. */
  close(): Promise<void>;
}

/** A session whose calls wait for each other. */
export interface ServerSession {
  readonly server: string;
  readonly exec: ExecSql;
  readonly queryAll: QueryAll;
  /** Runs `work` without statements of other callers in between. */
  exclusive<T>(work: (exec: ExecSql) => Promise<T>): Promise<T>;
  transaction<T>(work: (exec: ExecSql, queryAll: QueryAll) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

export function serverSession(server: SqlServer, { remember }: Pick<RejectedStatements, 'remember'>): ServerSession {
  const queue = new SerialQueue();
  const sendOne = (text: string) => remember(text, () => server.exec(text));
  const send: ExecSql = async (text) => [await sendOne(text)];
  const oneByOne = async (texts: readonly string[]) => {
    const results: Result[] = [];
    for (const text of texts) results.push(await sendOne(text));
    return results;
  };
  const withStatements = async <T>(work: () => Promise<T>): Promise<T> => {
    await server.exec('BEGIN');
    try {
      const result = await work();
      await server.exec('COMMIT');
      return result;
    } catch (error) {
      // A failed COMMIT can have ended the transaction.
      await server.exec('ROLLBACK').catch(() => undefined);
      throw error;
    }
  };
  const queryAll: QueryAll = async (texts) =>
    (await (server.queryAll?.(texts) ?? oneByOne(texts))).map(({ rows }) => rows);
  let closed: Promise<void> | undefined;
  return {
    server: server.server,
    exec: (text) => queue.run(() => send(text)),
    queryAll: (texts) => queue.run(() => queryAll(texts)),
    exclusive: (work) => queue.run(() => work(send)),
    transaction: <T>(work: (exec: ExecSql, queryAll: QueryAll) => Promise<T>) =>
      queue.run(() => {
        const inTransaction = () => work(send, queryAll);
        return server.transaction ? server.transaction(inTransaction) : withStatements(inTransaction);
      }),
    close() {
      closed ??= queue.run(() => server.close());
      return closed;
    },
  };
}
