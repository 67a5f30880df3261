import type { Dialect } from '../dialect.ts';
import { checksum } from './checksum.ts';
import type { Migration } from './migration.ts';
import { problems } from './problems.ts';
import { nowTag } from './tag.ts';

export const MigrationHelpers = {
  /** A tag `<YYYYMMDD>_<HHMMSS>_<name>` of this moment, in UTC; each a second later than the one before, at least. */
  generateTag: (name: string): string => nowTag(name),
  /** Whether the migration can be applied; `problems` says why not. */
  validate: (migration: unknown, dialect?: Dialect): boolean => problems(migration, dialect).length === 0,
  /** The reasons behind `validate`; with a dialect (`db.getAdapter().dialect`) what that engine refuses too. */
  problems,
  /** sha256, in hex, over the canonical JSON of tag, up and down. Throws `value_invalid` on what JSON would lose. */
  checksum: (migration: Migration): string => checksum(migration),
} as const;
