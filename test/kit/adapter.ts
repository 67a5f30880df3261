import type { Target } from '../../core/migration/target.ts';
import type { ConnectOptions, Dialect } from '../../core/dialect.ts';
import { Kernel } from '../../core/kernel.ts';

/** A connected database without a configuration: what an engine needs. */
export async function connectAdapter(
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
