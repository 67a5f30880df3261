import { createHash } from 'node:crypto';
import { SvcError } from '../errors.ts';

export type NameSuffix = 'idx' | 'key' | 'fkey' | 'check' | 'pkey';

/** Every engine of ours takes a name of so many bytes (PostgreSQL's limit, the shortest of those that have constraints). */
export const PORTABLE_BYTES = 63;

/**
 * `<table>_<columns>_<suffix>`; over the limit it is cut, never inside a character, and ends in the first eight
 * hexadecimal digits of the full name's sha256: the same everywhere and every time.
 */
export function derivedName(
  table: string,
  columns: readonly string[],
  suffix: NameSuffix,
  maxBytes: number = PORTABLE_BYTES,
): string {
  const full = [table, ...columns, suffix].join('_');
  if (Buffer.byteLength(full) <= maxBytes) return full;
  const ending = `_${createHash('sha256').update(full).digest('hex').slice(0, 8)}`;
  let kept = '';
  let bytes = Buffer.byteLength(ending);
  for (const character of full) {
    bytes += Buffer.byteLength(character);
    if (bytes > maxBytes) break;
    kept += character;
  }
  return kept + ending;
}

/** Refuses what no engine can store as a name; limits of length and character are the dialect's. */
export function checkName(name: unknown, kind: string): asserts name is string {
  const why = nameProblem(name);
  if (why === undefined) return;
  throw new SvcError('name_invalid', `${JSON.stringify(name) ?? 'undefined'} cannot be the name of a ${kind}.`, {
    why,
    next: ['Choose another name.'],
  });
}

/** The same for a table, whose name may not be one of ours. */
export function checkTableName(name: unknown): asserts name is string {
  checkName(name, 'table');
  if (!name.startsWith('_svc_')) return;
  throw new SvcError('name_invalid', `"${name}" cannot be the name of a table.`, {
    why: 'Names that begin with _svc_ are kept for the tables of svc itself.',
    next: ['Choose another name.'],
  });
}

function nameProblem(name: unknown): string | undefined {
  if (typeof name !== 'string') return 'A name is a string.';
  if (name === '') return 'It is empty.';
  if (name.includes('\0')) return 'It contains a NUL character.';
  if (/\p{Surrogate}/u.test(name)) return 'It contains half of a surrogate pair.';
  return undefined;
}
