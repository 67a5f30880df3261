import type { Migration } from '../../core/migration/migration.ts';
import { checksum } from '../../core/migration/migration.ts';
import type { DefinedMigration } from '../../core/migration/reconcile.ts';

/** A migration that a test defines, as a file would. */
export function definedInCode(migration: Migration): DefinedMigration {
  return { tag: migration.tag, checksum: checksum(migration), migration };
}
