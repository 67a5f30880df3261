import type { StoreHome } from '../../core/approval/home.ts';
import type { UnderTest } from './suite.ts';

/** A store of its own: each connection to it is as good as another process. */
export interface Place {
  connect(): Promise<StoreHome>;
}

/** Where records are kept: a database, or whatever else gives `records`, `ensure`, `exclusively` and `now`. */
export interface StoreUnderTest extends UnderTest {
  /** Milliseconds in which a few writes are done, however busy the machine is; default 1,000. */
  readonly patienceMs?: number;
  /** A store that is new and empty. */
  fresh(): Promise<Place & { drop(): Promise<void> }>;
}
