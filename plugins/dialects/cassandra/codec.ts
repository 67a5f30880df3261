import { SvcError } from '../../../core/errors.ts';
import type { RecordColumn, RecordValue } from '../../../core/records.ts';
import { columnType } from './types.ts';

export const recordType = ({ type }: RecordColumn): string => columnType({ type });

/** The value of a record's column as the driver takes it. */
export function encodeRecord(value: unknown, { type }: RecordColumn, name: string): unknown {
  if (value === null || value === undefined) return null;
  switch (type) {
    case 'json':
      return JSON.stringify(value);
    case 'bigint':
      if (!Number.isSafeInteger(value)) throw unfit(name, value);
      return BigInt(value as number);
    case 'integer':
      // The driver cuts what is no whole number and does not say so.
      if (typeof value !== 'number' || (value | 0) !== value) throw unfit(name, value);
      return value;
    default:
      return value;
  }
}

/** What the driver gives for a column, as the record has it. */
export function decodeRecord(value: unknown, { type }: RecordColumn): RecordValue {
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

function unfit(name: string, value: unknown): SvcError {
  return new SvcError('value_invalid', `The value ${String(value)} cannot be stored as ${name}.`, {
    why: 'It is not a whole number in the range of the column.',
  });
}
