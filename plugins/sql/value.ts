import { SvcError } from '../../core/errors.ts';
import type { Json } from '../../core/json.ts';
import { CLOCK, ELAPSED, type RecordColumn, type RecordValue } from '../../core/records.ts';
import type { Grammar } from './grammar.ts';

/** What differs between engines when records are written. */
export interface RecordGrammar extends Pick<Grammar, 'quote' | 'columnType' | 'literal'> {
  /** The engine's clock at this moment, and not at the start of the transaction. */
  readonly clock: string;
  /** Milliseconds since the segment began. */
  readonly elapsed: string;
  /** What the driver gives for a column, as the record has it. */
  read(value: unknown, column: RecordColumn): RecordValue;
}

/** The value of a record's column as SQL. */
export function recordValue(
  grammar: RecordGrammar,
  value: RecordValue | typeof CLOCK | typeof ELAPSED | undefined,
  { type }: RecordColumn,
): string {
  if (value === undefined || value === null) return 'NULL';
  if (value === CLOCK) return grammar.clock;
  if (value === ELAPSED) return grammar.elapsed;
  if (typeof value === 'symbol') throw new SvcError('value_invalid', 'A record has a symbol where a value is wanted.');
  if (type === 'timestamp') return grammar.literal((value as Date).toISOString(), { type });
  return grammar.literal(value as Json, { type });
}

/** What most drivers give for a column, as the record has it. */
export function readValue(value: unknown, { type }: RecordColumn): RecordValue {
  if (value === null || value === undefined) return null;
  switch (type) {
    case 'bigint':
    case 'integer':
    case 'double':
      return Number(value);
    case 'timestamp':
      return value instanceof Date ? value : new Date(String(value));
    default:
      return value as RecordValue;
  }
}
