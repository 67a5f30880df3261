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

/** Whether the TLS handshake failed: the certificate was rejected, or the server has no TLS. */
export function isTlsError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as { readonly code?: unknown };
  const named = typeof code === 'string' && /CERT|SELF_SIGNED|UNABLE_TO_|_TLS_|_SSL_|EPROTO/.test(code);
  return named || /certificate|\b(?:ssl|tls)\b/i.test(error.message);
}

/** What to do if a table to be created exists. Keeping it comes first, because its rows may be the only copy. */
export const TABLE_EXISTS_REMEDIES: readonly string[] = [
  'Adopt the existing table: svc db schema pull, then svc db migrate baseline',
  'If this migration was written by pull: svc db migrate baseline',
  'Or use another name, or drop the existing table.',
];
