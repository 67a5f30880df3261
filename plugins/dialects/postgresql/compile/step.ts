import type { RawSql, SqlText } from '../../sql/statement.ts';

/** What a statement does, as the journal stores it. */
export type PostgresqlStep = Text | RawSql | DropInvalidIndex | Fill;

interface Text extends SqlText {
  /** A table with many rows, of which it writes or reads each one under a lock that blocks others. */
  readonly copies?: string;
  /** It writes all rows, which `copies` says of large tables only. */
  readonly rewrites?: true;
  /** The field whose type changes, if only the server knows whether it writes the rows: it does not for a domain of the same type. */
  readonly retypes?: Retyped;
  /** It changes nothing, and fails if there are rows that a later statement would not allow. */
  readonly onlyChecks?: true;
}

export interface Retyped {
  readonly table: string;
  readonly column: string;
  /** Without a length, a precision or a collation. */
  readonly type: string;
}

/** The `repair` of CREATE INDEX CONCURRENTLY, which leaves an invalid index if it fails. */
export interface DropInvalidIndex {
  readonly kind: 'dropInvalidIndex';
  readonly index: string;
  readonly table: string;
}

/** Sets a column where it is null, in batches. */
export interface Fill {
  readonly kind: 'fill';
  readonly table: string;
  readonly column: string;
  /** An expression, computed for each row. */
  readonly value: string;
  /** It may be null, and the row is then left as it is. */
  readonly isNullable: boolean;
}
