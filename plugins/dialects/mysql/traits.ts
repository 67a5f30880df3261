import type { Constraint } from '../../../core/schema/model.ts';
import type { CatalogDefault } from './default.ts';
import type { Version } from './version.ts';

/** Where the SQL of MySQL and MariaDB differs: a word or a function each, never a question who it is. */
export interface Traits {
  /** The dialect. */
  readonly name: string;
  readonly title: string;
  /** For tables of a database whose own character set cannot hold every text. */
  readonly collation: string;
  /** Clauses that an older server takes and does not carry out. */
  readonly since: readonly { readonly version: Version; readonly clause: RegExp; readonly what: string }[];
  /** The first version that has random bytes. */
  readonly randomSince: Version;
  readonly dropCheck: 'DROP CHECK' | 'DROP CONSTRAINT';
  /** A new column copies the table where its default is an expression. */
  readonly copiesForExpressions: boolean;
  /** A check in a column's definition is a part of it: MODIFY without it drops it. Else it is one of the table's. */
  readonly ownsColumnChecks: boolean;
  /** A column that is required and set at every update gets the moment zero for a default where it has none. */
  readonly inventsZero: boolean;
  /** The type of a column at an end of a foreign key does not change at all, else not into one that does not fit the other end. */
  readonly fixesKeyTypes: boolean;
  /** The name of a check stands for it in the whole database, else in its table. */
  readonly sharesCheckNames: boolean;
  /** What stands behind the name of the table in the names of constraints that are renamed with it. */
  readonly carries: Readonly<Partial<Record<Constraint['type'], string>>>;
  /**
   * Statements as one, which the server answers once: it stops at the first that fails, as it does where it takes them
   * one by one. Absent where it knows no such block.
   */
  readonly block?: (statements: string) => string;
  /** The last moment that a column of timestamps holds, in UTC: an expression. */
  readonly lastTimestamp: string;
  /** Holds for a JSON text that is an array; the column is quoted. */
  arrayCheck(column: string): string;
  readonly json: {
    /** True where a column holds the same JSON as a literal, however the two are written. */
    same(column: string, literal: string): string;
    /** The first version that knows it. */
    readonly since?: Version;
    /** A literal that orders as JSON; absent where only texts have an order. */
    ordered?(literal: string): string;
  };
  readonly catalog: {
    /** Of `information_schema.statistics s`: says why svc does not make such an index, NULL where it does. */
    readonly oddIndex: string;
    /** Gives `t` (table), `n` (name), `e` (expression), `odd` and `own` (1 for a part of a column) of every check. */
    readonly checks: string;
    /** Of `information_schema.columns c`: the attribute of a spatial column that its type does not tell; NULL for none. */
    readonly spatial: string;
    /** There are question marks in it where expressions have letters that its own character set lacks. */
    readonly marksExpressions: boolean;
    /** An expression as it was written. */
    expression(text: string): string;
    default(value: string | null, extra: string): CatalogDefault | undefined;
    /** The same of what SHOW CREATE TABLE has behind DEFAULT. */
    shownDefault(text: string): CatalogDefault | undefined;
  };
}
