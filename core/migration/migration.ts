import { createHash } from 'node:crypto';
import { SvcError } from '../errors.ts';
import { canonicalJson, isPlainObject } from '../json.ts';
import type { MigrationOperation, NamedFieldDefinition, OperationType } from '../schema/operation.ts';

/** A migration as stored in files and the history, and as returned by `build()` and `db.schema.*`. */
export interface Migration {
  readonly $schema?: string;
  readonly tag: string;
  readonly name: string;
  readonly description?: string;
  /** Automatic migrations repeat the properties of their operation: `type`, `collection`, `fields`, `field`. */
  readonly type?: OperationType;
  readonly collection?: string;
  readonly fields?: readonly NamedFieldDefinition[];
  readonly field?: NamedFieldDefinition | string;
  readonly up: readonly MigrationOperation[];
  readonly down: readonly MigrationOperation[];
  /** Why the migration cannot be rolled back; `down` is then empty, unless `irreversibleOn` is set. */
  readonly irreversible?: string;
  /** The dialects on which `irreversible` applies: on the others, `down` rolls the migration back. Absent: on all. */
  readonly irreversibleOn?: readonly string[];
  /** Data that `up` destroys or `down` cannot restore, one sentence each. */
  readonly lossy?: readonly string[];
  /** What `up` may do without a flag of the run: copy a whole table, which blocks writes to it; destroy data. */
  readonly allow?: readonly Permission[];
  /**
   * Whether tables are changed by statements during which they can be read and written, on an engine that has a choice. By
   * default, only tables with more than 10,000 rows are. Not part of the checksum.
   */
  readonly online?: boolean;
  /**
   * The tag of the migration that it completes: it drops what programs still used after that one. `svc db migrate` leaves it
   * until `svc db migrate contract`. Not part of the checksum.
   */
  readonly contracts?: string;
  /** What `svc db migrate lint` leaves out. Not part of the checksum. */
  readonly lintIgnore?: readonly LintIgnore[];
}

/** A finding of the linter that somebody has accepted, and why. */
export interface LintIgnore {
  /** The id or the name of the rule: `SVC101`. */
  readonly rule: string;
  readonly reason: string;
  /** The index in `up`; absent for all operations. */
  readonly operation?: number;
}

/** Why a migration cannot be rolled back on a dialect; undefined if it can. */
export function whyIrreversible({ irreversible, irreversibleOn }: Migration, dialect: string): string | undefined {
  return irreversibleOn === undefined || irreversibleOn.includes(dialect) ? irreversible : undefined;
}

/** `copy` also applies to `down`; `destructive` never does. */
export type Permission = 'copy' | 'destructive';

export const PERMISSIONS: readonly Permission[] = ['copy', 'destructive'];

/** sha256, in hex, of tag, up and down as written. Formatting, key order and line ends do not change it. */
export function checksum(migration: Pick<Migration, 'tag' | 'up' | 'down'>): string {
  const given: unknown = migration;
  if (!isPlainObject(given) || !Array.isArray(given.up) || !Array.isArray(given.down)) {
    throw new SvcError('migration_invalid', 'A checksum needs a migration: an object with tag, up and down.');
  }
  const { tag, up, down } = migration;
  return createHash('sha256').update(canonicalJson({ tag, up, down })).digest('hex');
}
