import type { StorageBackend } from '../../core/approval/backend.ts';
import type { UnderTest } from './suite.ts';

/** A database that is new, and its removal. */
export interface TestDatabase {
  readonly url: string;
  drop(): Promise<void>;
}

/** A store of its own: each connection to it is as good as another process. */
export interface TestStore {
  connect(): Promise<StorageBackend>;
}

/** Where records are kept: a database, or whatever else gives `records`, `ensureTables`, `withLock` and `now`. */
export interface StoreUnderTest extends UnderTest {
  /** Milliseconds in which a few writes are done, however busy the machine is; default 1,000. */
  readonly patienceMs?: number;
  /** A store that is new and empty. */
  createStore(): Promise<TestStore & { drop(): Promise<void> }>;
}
