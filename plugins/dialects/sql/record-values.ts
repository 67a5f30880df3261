import { SvcError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json.ts';
import {
  CLOCK,
  type Clock,
  columnOf,
  ELAPSED,
  type Elapsed,
  type RecordColumn,
  type RecordValue,
  type RecordWrite,
} from '../../../core/records.ts';
import type { NameLimit } from '../../../core/schema/names.ts';
import type { Grammar } from './grammar.ts';

/** The differences between SQL engines for records. */
export interface RecordGrammar extends Pick<Grammar, 'quoteIdentifier' | 'columnType' | 'literal'> {
  /**
   * An SQL expression for the engine's moment, evaluated when the statement runs. In many engines `now()` is the time at
   * which the transaction began.
   */
  readonly clock: string;
  /** An SQL expression for the milliseconds since the segment began. */
  readonly elapsed: string;
  /** A list of texts as one literal, for `key = ANY(list)`; default `key IN (…)`, whose text depends on how many there are. */
  anyOf?(literals: readonly string[]): string;
  /** The end of a SELECT that returns at most this many rows; default `LIMIT count`. Others write `FETCH FIRST … ROWS ONLY`. */
  limit?(count: number): string;
  /** The engine cannot compare rows as in `(a, b) < (1, 2)`. */
  readonly comparesRows?: false;
  /** What follows FROM in a query that needs one row of anything; default `(SELECT 1 AS svc_one) AS svc_row`. Others have `dual`. */
  readonly oneRow?: string;
  /** Names of indexes are shortened to this; default 63 bytes. */
  readonly names?: NameLimit;
  /** The engine has no IF NOT EXISTS. Creating what exists must fail with `collection_exists` or `index_exists`. */
  readonly ifNotExists?: false;
  /** Adds a column in ALTER TABLE; default `ADD COLUMN`. Others write `ADD`. */
  readonly addColumn?: string;
  /** A text as a value in the order of its UTF-8 bytes, for an engine that compares texts in another one. */
  textOrder?(text: string): string;
  /** Converts the driver's value of a column. */
  read(value: unknown, column: RecordColumn): RecordValue;
}

export const limitSql = ({ limit }: Pick<RecordGrammar, 'limit'>, count: number): string =>
  limit?.(count) ?? `LIMIT ${count}`;
export const oneRowSql = ({ oneRow }: Pick<RecordGrammar, 'oneRow'>): string =>
  oneRow ?? '(SELECT 1 AS svc_one) AS svc_row';

/** The value of a record column as SQL. */
export function recordLiteral(
  grammar: RecordGrammar,
  value: RecordValue | Clock | Elapsed | undefined,
  { type }: RecordColumn,
): string {
  if (value === undefined || value === null) return 'NULL';
  if (value === CLOCK) return grammar.clock;
  if (value === ELAPSED) return grammar.elapsed;
  if (typeof value === 'symbol') throw new SvcError('value_invalid', 'A record has a symbol in place of a value.');
  if (type === 'timestamp') return grammar.literal((value as Date).toISOString(), { type });
  return grammar.literal(value as Json, { type });
}

/**
 * Converts the value most drivers return for a column. A text in a column of JSON is parsed: a driver that has parsed it
 * already needs a `read` of its own for these columns.
 */
export function readRecordColumn(value: unknown, { type }: RecordColumn): RecordValue {
  if (value === null || value === undefined) return null;
  switch (type) {
    case 'bigint':
    case 'integer':
    case 'double':
      return Number(value);
    case 'timestamp':
      return value instanceof Date ? value : new Date(String(value));
    case 'json':
      return typeof value === 'string' ? (JSON.parse(value) as RecordValue) : (value as RecordValue);
    default:
      return value as RecordValue;
  }
}

/** Columns with CLOCK or ELAPSED, which the engine fills in. */
export function engineFilledColumns({ record }: RecordWrite): string[] {
  return Object.keys(record).filter((column) => record[column] === CLOCK || record[column] === ELAPSED);
}

/** The values the engine filled in, from the written row. */
export function engineFilledValues(
  grammar: RecordGrammar,
  write: RecordWrite,
  row: Readonly<Record<string, unknown>>,
): Record<string, Date | number> {
  return Object.fromEntries(
    engineFilledColumns(write).map((name) => [
      name,
      grammar.read(row[name], columnOf(write.definition, name)) as Date | number,
    ]),
  );
}
