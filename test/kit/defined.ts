import { checksum } from '../../core/migration/checksum.ts';
import type { Migration } from '../../core/migration/migration.ts';
import type { Defined } from '../../core/migration/reconcile.ts';

/** A migration that a test defines, as a file would. */
export function definedInCode(migration: Migration): Defined {
  return { tag: migration.tag, checksum: checksum(migration), migration };
}
