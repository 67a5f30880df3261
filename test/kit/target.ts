import type { ConnectOptions, Dialect } from '../../core/dialect.ts';
import { Kernel } from '../../core/kernel.ts';
import type { Target } from '../../core/migration/target.ts';
import type { TestDatabase } from '../suites/test-database.ts';

/** Connects to a database without a configuration. */
export async function connectTarget(
  dialect: Dialect,
  url: string,
  {
    product = 'shop',
    env = 'dev',
    database = 'main',
    kernel = new Kernel(),
    ...options
  }: Partial<Target> & { kernel?: Kernel } & ConnectOptions = {},
): Promise<Target> {
  return { database, product, env, dialect, connection: await dialect.connect(url, options), hooks: kernel.hooks };
}

/** Runs `body` on a new database, which is dropped afterwards. */
export async function withFreshTarget(
  dialect: Dialect,
  { url, drop }: TestDatabase,
  body: (target: Target) => Promise<void>,
): Promise<void> {
  const target = await connectTarget(dialect, url);
  try {
    await body(target);
  } finally {
    await target.connection.close();
    await drop();
  }
}

/** The names of the tables of a database, in order. */
export const tablesOf = async ({ connection }: Pick<Target, 'connection'>): Promise<string[]> =>
  [...(await connection.introspect()).keys()].sort();
