type Row = Readonly<Record<string, unknown>>;

/** A synchronous SQLite driver: `node:sqlite` if available, otherwise WebAssembly. */
export interface Driver {
  all(sql: string): readonly Row[];
  exec(sql: string): void;
  close(): void;
}

interface Builtin {
  readonly DatabaseSync: new (
    file: string,
  ) => Omit<Driver, 'all'> & { prepare(sql: string): { setReadBigInts(on: true): void; all(): Row[] } };
}

export async function openDriver(file: string): Promise<Driver> {
  const builtin = process.getBuiltinModule?.('node:sqlite') as unknown as Builtin | undefined;
  if (builtin === undefined) return new (await import('node-sqlite3-wasm')).default.Database(file) as unknown as Driver;
  const database = new builtin.DatabaseSync(file);
  const all = (sql: string) => {
    const statement = database.prepare(sql);
    statement.setReadBigInts(true);
    return statement
      .all()
      .map((row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, toNumberIfExact(value)])));
  };
  return { all, exec: (sql) => database.exec(sql), close: () => database.close() };
}

const toNumberIfExact = (value: unknown): unknown =>
  typeof value === 'bigint' && BigInt(Number(value)) === value ? Number(value) : value;
