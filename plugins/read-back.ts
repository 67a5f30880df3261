import type { Assignment } from '../core/dialect.ts';
import { SvcError } from '../core/errors.ts';

/** The fields that an assignment reads. */
export const sourcesOf = (assignment: Assignment): readonly string[] =>
  'concat' in assignment ? assignment.concat.flatMap((part) => ('field' in part ? [part.field] : [])) : [];

/**
 * Where an update goes through a table piece by piece, what is met again after a crash or a lost answer has the new values
 * already. Throws `update_invalid` for one that would read them.
 */
export function refuseReadBack(set: readonly Assignment[]): void {
  const read = new Set(set.flatMap(sourcesOf));
  const both = set.find(({ field }) => read.has(field));
  if (!both) return;
  throw new SvcError('update_invalid', `${both.field}: $CONCAT reads a field that the same update sets.`, {
    why: 'The update goes piece by piece, and one that is met again would be read as it has become.',
    state: 'Nothing was changed.',
    next: ['Set each with an update of its own; what reads itself goes by way of another field.'],
  });
}
