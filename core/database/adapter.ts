import type { Connection, Dialect } from '../dialect.ts';
import type { Kernel } from '../kernel.ts';

/** What an engine needs of a connected database: `db.getAdapter()`. */
export interface Adapter {
  /** The database's tag in the configuration. */
  readonly database: string;
  readonly product: string;
  readonly env: string;
  readonly dialect: Dialect;
  readonly connection: Connection;
  readonly hooks: Kernel['hooks'];
}
