import type { Connection, ConnectOptions } from '../../core/dialect.ts';
import { connectWhenFree } from './connect-when-free.ts';
import type { DialectUnderTest, StoredRow } from './dialect-under-test.ts';
import { RunningCalls } from './running-calls.ts';
import { type DialectProcess, startDialectProcess } from './start-dialect-process.ts';
import type { DeclareCase } from './suite.ts';
import type { TestDatabase } from './test-database.ts';

type OnDatabase<F> = F extends (...args: [...infer Rest, TestDatabase]) => infer Result ? (...args: Rest) => Result : F;
type DatabaseFunctions = Pick<DialectUnderTest, 'insert' | 'read' | 'clear' | 'raw' | 'addUnsupportedObject'>;

/** A dialect under test, whose functions act on one database. */
export type EngineOnDatabase = Omit<DialectUnderTest, keyof DatabaseFunctions> & {
  readonly [Name in keyof DatabaseFunctions]: OnDatabase<DatabaseFunctions[Name]>;
};

/** An empty database. What a case opens and starts ends with it. */
export interface CaseDatabase extends TestDatabase {
  readonly engine: EngineOnDatabase;
  connect(options?: ConnectOptions): Promise<Connection>;
  /** Starts another process with the dialect. `environment` is added to that of this process. */
  start(environment?: NodeJS.ProcessEnv): DialectProcess;
}

export type DeclareDialectCase = (
  name: string,
  promise: string,
  body: (database: CaseDatabase) => Promise<void>,
  timeoutMs?: number,
) => void;

/** As `CaseDatabase`, with a connection. */
interface ConnectedDatabase extends Pick<CaseDatabase, 'url' | 'engine'> {
  readonly connection: Connection;
  connectAgain(options?: ConnectOptions): Promise<Connection>;
}

export type DeclareConnectedCase = (
  name: string,
  promise: string,
  body: (database: ConnectedDatabase) => Promise<void>,
  timeoutMs?: number,
) => void;

export const connectedCase =
  (on: DeclareDialectCase): DeclareConnectedCase =>
  (name, promise, body, timeoutMs) =>
    on(
      name,
      promise,
      async ({ url, engine, connect }) => body({ url, engine, connection: await connect(), connectAgain: connect }),
      timeoutMs,
    );

export function dialectCase(declare: DeclareCase, engine: DialectUnderTest): DeclareDialectCase {
  return (name, promise, body, timeoutMs) => {
    const calls = new RunningCalls();
    const runCase = () => withDatabase(engine, body, calls);
    declare(name, runCase, {
      promise,
      running: () => calls.describe(),
      ...(timeoutMs !== undefined && { timeoutMs }),
    });
  };
}

/** Runs work on a new database. */
export async function withDatabase<T>(
  engine: DialectUnderTest,
  work: (database: CaseDatabase) => Promise<T>,
  calls = new RunningCalls(),
): Promise<T> {
  const database = await engine.createDatabase();
  const { url } = database;
  const opened: Connection[] = [];
  const started: DialectProcess[] = [];
  try {
    return await work({
      ...database,
      engine: engineOn(engine, database),
      async connect(options = {}) {
        const connection = await connectWhenFree(engine.dialect, url, { ...engine.options, ...options });
        opened.push(connection);
        return calls.track(connection);
      },
      start(environment) {
        const child = startDialectProcess(engine, environment);
        started.push(child);
        return child;
      },
    });
  } finally {
    for (const connection of opened) await connection.close().catch(() => undefined);
    for (const child of started) await child.kill();
    await database.drop();
  }
}

function engineOn(given: DialectUnderTest, database: TestDatabase): EngineOnDatabase {
  const { addUnsupportedObject, ...engine } = given;
  return {
    ...engine,
    insert: (...args) => engine.insert(...args, database),
    read: async (...args) => (await engine.read(...args, database)).map(withBytes),
    clear: (...args) => engine.clear(...args, database),
    raw: (collection) => engine.raw(collection, database),
    ...(addUnsupportedObject && {
      addUnsupportedObject: (...args) => addUnsupportedObject.call(given, ...args, database),
    }),
  };
}

/** Drivers return bytes as different arrays, such as an `Int8Array`. */
function withBytes(row: StoredRow): StoredRow {
  const values = Object.entries(row).map(([name, value]) => [name, ArrayBuffer.isView(value) ? bytesOf(value) : value]);
  return Object.fromEntries(values);
}

const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);
