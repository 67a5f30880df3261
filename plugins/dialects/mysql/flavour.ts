import type { Traits } from './traits.ts';
import type { Version } from './version.ts';
import type { OpenWire } from './wire.ts';

/** What makes one of the two a dialect: its driver, its servers and the traits of its SQL. */
export interface Flavour {
  readonly name: 'mysql' | 'mariadb';
  readonly title: string;
  /** The other of the two, for whoever named the wrong one. */
  readonly other: { readonly name: string; readonly title: string };
  /** Of URLs, the one to recommend first. */
  readonly schemes: readonly string[];
  /** Whether `version()` is that of a server of this kind. */
  isMine(version: string): boolean;
  readonly oldest: Version;
  /** Compares byte by byte, trailing spaces too: keys of records differ by every character. */
  readonly binaryCollation: string;
  readonly open: OpenWire;
  readonly traits: Traits;
}
