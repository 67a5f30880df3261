import { createHash } from 'node:crypto';
import { SvcError } from '../errors.ts';
import { canonicalJson, isPlainObject } from '../json.ts';
import type { Migration } from './migration.ts';

/** sha256, in hex, of tag, up and down as they are written: formatting, key order and line ends do not change it. */
export function checksum(migration: Pick<Migration, 'tag' | 'up' | 'down'>): string {
  const given: unknown = migration;
  if (!isPlainObject(given) || !Array.isArray(given.up) || !Array.isArray(given.down)) {
    throw new SvcError('migration_invalid', 'A checksum is of a migration: an object with tag, up and down.');
  }
  const { tag, up, down } = migration;
  return createHash('sha256').update(canonicalJson({ tag, up, down })).digest('hex');
}
