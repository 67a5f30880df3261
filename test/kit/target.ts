import type { ConnectOptions, Dialect } from '../../core/dialect.ts';
import { Kernel } from '../../core/kernel.ts';
import type { Target } from '../../core/migration/target.ts';

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

/** The names of the tables of a database, in order. */
export const tablesOf = async ({ connection }: Pick<Target, 'connection'>): Promise<string[]> =>
  [...(await connection.introspect()).keys()].sort();
