import { setTimeout as wait } from 'node:timers/promises';
import type { Connection, ConnectOptions, Dialect } from '../../core/dialect.ts';
import { isSvcError } from '../../core/errors.ts';
import { Kernel } from '../../core/kernel.ts';
import type { Target } from '../../core/migration/target.ts';

const IN_USE_MS = 60_000;

/** Connects, and waits for a database that only one process at a time can open. */
export async function connectWhenFree(dialect: Dialect, url: string, options: ConnectOptions): Promise<Connection> {
  for (const deadline = Date.now() + IN_USE_MS; Date.now() < deadline; await wait(20)) {
    const connection = await connectUnlessInUse(dialect, url, options);
    if (connection) return connection;
  }
  throw new Error(`${dialect.identify(url)} is still in use by another process`);
}

/** Connects, or returns undefined if another process has opened a database that only one can open. */
export async function connectUnlessInUse(
  dialect: Dialect,
  url: string,
  options: ConnectOptions,
): Promise<Connection | undefined> {
  try {
    return await dialect.connect(url, options);
  } catch (error) {
    if (isSvcError(error) && error.code === 'database_in_use') return undefined;
    throw error;
  }
}

/** What a `MigrationEngine` needs, without a configuration. */
export function migrationTarget(dialect: Dialect, connection: Connection): Target {
  return { database: 'main', product: 'suite', env: 'dev', dialect, connection, hooks: new Kernel().hooks };
}
