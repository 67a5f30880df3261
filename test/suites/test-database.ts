import type { StorageBackend } from '../../core/approval/backend.ts';
import type { UnderTest } from './suite.ts';

/** A new database. */
export interface TestDatabase {
  readonly url: string;
  drop(): Promise<void>;
}

/** A new store. Each connection simulates another process. */
export interface TestStore {
  connect(): Promise<StorageBackend>;
}

/** A record store: a database, or anything else with `records`, `ensureTables`, `withLock` and `now`. */
export interface StoreUnderTest extends UnderTest {
  /** How long a few writes take at most on a busy machine, in milliseconds; default 1,000. */
  readonly maxWriteMs?: number;
  /** Creates an empty store. */
  createStore(): Promise<TestStore & { drop(): Promise<void> }>;
}
