import type { EmbeddedDatabase } from '@svc/sdk/dialect';

type Row = Readonly<Record<string, unknown>>;

/** A synchronous SQLite driver. */
interface Driver {
  all(sql: string): readonly Row[];
  exec(sql: string): void;
  close(): void;
}

/** The part of `node:sqlite` that is used here. */
interface Builtin {
  readonly DatabaseSync: new (
    file: string,
  ) => Omit<Driver, 'all'> & { prepare(sql: string): { setReadBigInts(on: true): void; all(): Row[] } };
}

export async function openDatabase(file: string): Promise<EmbeddedDatabase> {
  const driver = await openDriver(file);
  driver.exec('PRAGMA foreign_keys = ON');
  return {
    server: `SQLite ${driver.all('SELECT sqlite_version() AS version')[0]?.version}`,
    exec: (sql) => ({ rows: driver.all(sql), count: Number(driver.all('SELECT changes() AS n')[0]?.n) }),
    script: (sql) => driver.exec(sql),
    close: () => driver.close(),
  };
}

/** `node:sqlite` if this Node has it, otherwise WebAssembly. */
async function openDriver(file: string): Promise<Driver> {
  const builtin = process.getBuiltinModule?.('node:sqlite') as unknown as Builtin | undefined;
  if (builtin === undefined) return new (await import('node-sqlite3-wasm')).default.Database(file) as unknown as Driver;
  const database = new builtin.DatabaseSync(file);
  const all = (sql: string) => {
    const statement = database.prepare(sql);
    statement.setReadBigInts(true);
    return statement.all();
  };
  return { all, exec: (sql) => database.exec(sql), close: () => database.close() };
}
