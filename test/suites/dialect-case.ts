import type { Connection, ConnectOptions } from '../../core/dialect.ts';
import { connectWhenFree } from './connect-when-free.ts';
import type { DialectUnderTest } from './dialect-under-test.ts';
import { type DialectProcess, startDialectProcess } from './start-dialect-process.ts';
import type { DeclareCase } from './suite.ts';

/** An empty database. What a case opens and starts ends with it. */
export interface CaseDatabase {
  readonly url: string;
  connect(options?: ConnectOptions): Promise<Connection>;
  /** Starts another process with the dialect. */
  start(): DialectProcess;
}

export type DeclareDialectCase = (
  name: string,
  promise: string,
  body: (database: CaseDatabase) => Promise<void>,
  timeoutMs?: number,
) => void;

export function dialectCase(declare: DeclareCase, engine: DialectUnderTest): DeclareDialectCase {
  return (name, promise, body, timeoutMs) => {
    const runCase = () => withDatabase(engine, body);
    declare(name, runCase, { promise, ...(timeoutMs !== undefined && { timeoutMs }) });
  };
}

/** Runs work on a new database. */
export async function withDatabase<T>(
  engine: DialectUnderTest,
  work: (database: CaseDatabase) => Promise<T>,
): Promise<T> {
  const { url, drop } = await engine.createDatabase();
  const opened: Connection[] = [];
  const started: DialectProcess[] = [];
  try {
    return await work({
      url,
      async connect(options = {}) {
        const connection = await connectWhenFree(engine.dialect, url, { ...engine.options, ...options });
        opened.push(connection);
        return connection;
      },
      start() {
        const child = startDialectProcess(engine);
        started.push(child);
        return child;
      },
    });
  } finally {
    for (const connection of opened) await connection.close().catch(() => undefined);
    for (const child of started) await child.kill();
    await drop();
  }
}
