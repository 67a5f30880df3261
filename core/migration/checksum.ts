import { createHash } from 'node:crypto';
import { canonicalJson } from '../json.ts';
import type { Migration } from './migration.ts';

/** sha256, in hex, of tag, up and down as they are written: formatting, key order and line ends do not change it. */
export function checksum({ tag, up, down }: Pick<Migration, 'tag' | 'up' | 'down'>): string {
  return createHash('sha256').update(canonicalJson({ tag, up, down })).digest('hex');
}
