import { SvcError } from '../../../../core/errors.ts';
import type { RecordColumn, RecordValue } from '../../../../core/records.ts';
import { columnType } from '../compile/types.ts';

export const recordColumnType = ({ type }: RecordColumn): string => columnType({ type });

/** Throws `value_invalid` for a number out of range. */
export function encodeColumn(value: unknown, { type }: RecordColumn, name: string): unknown {
  if (value === null || value === undefined) return null;
  switch (type) {
    case 'json':
      return JSON.stringify(value);
    case 'bigint':
      if (!Number.isSafeInteger(value)) throw notStorable(name, value);
      return BigInt(value as number);
    case 'integer':
      // The driver would truncate a fraction silently.
      if (typeof value !== 'number' || (value | 0) !== value) throw notStorable(name, value);
      return value;
    default:
      return value;
  }
}

export function decodeColumn(value: unknown, { type }: RecordColumn): RecordValue {
  if (value === null || value === undefined) return null;
  switch (type) {
    case 'json':
      return JSON.parse(value as string) as RecordValue;
    case 'bigint':
      return Number(value);
    default:
      return value as RecordValue;
  }
}

function notStorable(name: string, value: unknown): SvcError {
  return new SvcError('value_invalid', `The value ${String(value)} cannot be stored as ${name}.`, {
    why: 'It is not a whole number in the range of the column.',
  });
}

/** The order of Cassandra: null first, strings by bytes. */
export function compareValues(a: RecordValue, b: RecordValue): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? -1 : 1;
  if (typeof a === 'string' && typeof b === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b));
  const [one, other] = [Number(a), Number(b)];
  return one < other ? -1 : one > other ? 1 : 0;
}
