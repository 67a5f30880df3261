import type { RecordValue } from '../../../core/records.ts';

/** As the engine orders values of one column: text by its bytes. */
export function compare(a: RecordValue, b: RecordValue): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? -1 : 1;
  if (typeof a === 'string' && typeof b === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b));
  const [one, other] = [Number(a), Number(b)];
  return one < other ? -1 : one > other ? 1 : 0;
}
