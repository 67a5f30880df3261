import { SvcError } from '../../../core/errors.ts';
import type { RecordColumn, RecordValue } from '../../../core/records.ts';

export function cursorOf(sort: RecordValue, key: string): string {
  return Buffer.from(JSON.stringify([sort, key])).toString('base64url');
}

/** Throws `value_invalid` for what no page gave. */
export function cursorValues(
  cursor: string,
  type: RecordColumn['type'] | undefined,
): { readonly sort: RecordValue; readonly key: string } {
  try {
    const [sort, key, ...more] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown[];
    if (sort !== undefined && typeof key === 'string' && more.length === 0) {
      return { sort: type === 'timestamp' && sort !== null ? new Date(String(sort)) : (sort as RecordValue), key };
    }
  } catch {
    // Told below, as for a cursor of another shape.
  }
  throw new SvcError('value_invalid', 'The cursor is not one that a page gave.');
}
