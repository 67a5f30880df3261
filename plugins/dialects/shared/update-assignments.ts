import type { Assignment } from '../../../core/dialect.ts';
import { SvcError } from '../../../core/errors.ts';

/** The fields an assignment reads. */
export const sourceFields = (assignment: Assignment): readonly string[] =>
  'concat' in assignment ? assignment.concat.flatMap((part) => ('field' in part ? [part.field] : [])) : [];

/**
 * An update that works in batches may process a row again after a crash or a lost response, when it already has the new
 * values. Throws `update_invalid` if the update reads a field it sets.
 */
export function assertNoSelfReads(set: readonly Assignment[]): void {
  const read = new Set(set.flatMap(sourceFields));
  const both = set.find(({ field }) => read.has(field));
  if (!both) return;
  throw new SvcError('update_invalid', `${both.field}: $CONCAT reads a field that the same update sets.`, {
    why: 'The update works in batches. A row processed again after an interruption would be read with its new values.',
    state: 'Nothing was changed.',
    next: ['Set each field in a separate update. For a field that reads itself, use another field in between.'],
  });
}
