import type { Constraint } from '../../../core/schema/model.ts';
import type { Result } from '../sql/session.ts';
import type { CatalogDefault } from './catalog/catalog-table.ts';
import type { Settings } from './connection/settings.ts';
import type { Address } from './connection/url.ts';

/** One of the two dialects, MySQL or MariaDB: its driver, its servers and its SQL. */
export interface Variant {
  readonly name: 'mysql' | 'mariadb';
  readonly title: string;
  /** The other one, for an error that recommends it. */
  readonly other: { readonly name: string; readonly title: string };
  /** Accepted URL schemes; errors recommend the first. */
  readonly schemes: readonly string[];
  /** Whether `version()` belongs to such a server. */
  matchesVersion(version: string): boolean;
  readonly minimumVersion: Version;
  /** Compares byte by byte, trailing spaces included, as record keys do. */
  readonly binaryCollation: string;
  readonly open: OpenDriver;
  readonly traits: Traits;
}

/** The differences between the SQL of MySQL and MariaDB. No other code distinguishes the two. */
export interface Traits {
  /** The dialect's name. */
  readonly name: string;
  readonly title: string;
  /** For tables in a database with a character set that cannot store every character. */
  readonly tableCollation: string;
  /** Older servers accept DESC in an index and ignore it. */
  readonly descendingIndexesSince?: Version;
  readonly randomBytesSince: Version;
  /** CREATE OR REPLACE exists for routines, triggers and events. */
  readonly replacesRoutines: boolean;
  readonly dropCheck: 'DROP CHECK' | 'DROP CONSTRAINT';
  /** A generated column and a check follow the new name of a column that they read. Otherwise the rename is rejected. */
  readonly followsRenames: boolean;
  /** Adding a column with an expression as its default copies the table. */
  readonly copiesForExpressionDefaults: boolean;
  /** The default of a text or a blob may be a literal. Otherwise it is an expression. */
  readonly hasLongLiterals: boolean;
  /** A check can be declared and not enforced. */
  readonly hasUnenforcedChecks: boolean;
  /** What the catalog has for a foreign key without actions. SHOW CREATE TABLE has the others. */
  readonly unshownAction: 'NO ACTION' | 'RESTRICT';
  /** A check in a column definition belongs to the column, and a MODIFY without it drops it. Otherwise it is a table check. */
  readonly hasColumnChecks: boolean;
  /** A required ON UPDATE column without a default gets the date zero as its default. */
  readonly addsZeroDefault: boolean;
  /** The column types of a foreign key cannot change at all. Otherwise they can change to a comparable type. */
  readonly locksForeignKeyTypes: boolean;
  /** The name of a check is unique in the database. Otherwise it is unique in its table. */
  readonly hasDatabaseWideCheckNames: boolean;
  /** The suffix after the table's name in the names of constraints that are renamed with the table. */
  readonly renamedConstraintSuffixes: Readonly<Partial<Record<Constraint['type'], string>>>;
  /**
   * Wraps statements into one, which has a single result and stops at the first failure. Absent if the server
   * has no such block.
   */
  readonly compoundStatement?: (statements: string) => string;
  /** A column that becomes JSON keeps of a decimal what a double does. */
  readonly jsonRoundsDecimals: boolean;
  /** The last value of a timestamp column, in UTC, as an expression. */
  readonly maxTimestamp: string;
  /** The condition for a JSON array in a quoted column. */
  arrayCheck(column: string): string;
  readonly json: {
    /** The condition for a column equal to a JSON literal, independent of the spelling of the two. */
    equals(column: string, literal: string): string;
    /** The first version with such a function. */
    readonly equalsSince?: Version;
    /** A literal with the order of JSON values. Absent if JSON is stored and ordered as a string. */
    orderable?(literal: string): string;
  };
  /** Sequences, which defaults may call. */
  readonly hasSequences: boolean;
  readonly catalog: {
    /** For `information_schema.tables t`: whether it is a table that svc can create. */
    readonly isTable: string;
    /** For `information_schema.statistics s`: the expression in place of a column, or NULL. */
    readonly indexExpression: string;
    /** For `information_schema.statistics s`: whether queries do not use the index. */
    readonly isHiddenIndex: string;
    /** The word for such an index. */
    readonly hiddenIndex: string;
    /** Returns `t` (table), `n` (name), `e` (expression), `native` (what follows it) and `of_column` (1 for a column's check). */
    readonly checksQuery: string;
    /** For `information_schema.columns c`: a spatial column's attribute that is not part of its type, or NULL. */
    readonly spatialAttribute: string;
    /** For `information_schema.columns c`: the database whose name the default may contain, or NULL. */
    readonly databaseInDefault: string;
    /** Expressions contain question marks in place of characters that the catalog's character set does not have. */
    readonly expressionsLoseCharacters: boolean;
    /** An expression as it was written. */
    decodeExpression(text: string): string;
    parseDefault(value: string | null, extra: string): CatalogDefault | undefined;
    /** Parses what follows DEFAULT in SHOW CREATE TABLE. */
    parseShownDefault(text: string): CatalogDefault | undefined;
  };
}

export type Version = readonly [major: number, minor: number, patch: number];

/** `10.11.6-MariaDB-log` as 10, 11 and 6. */
export function parseVersion(text: string): Version {
  const [, major, minor, patch] = /(\d+)\.(\d+)\.(\d+)/.exec(text.replace(/^5\.5\.5-/, '')) ?? [];
  return [Number(major ?? 0), Number(minor ?? 0), Number(patch ?? 0)];
}

export function isBefore(version: Version, other: Version): boolean {
  const at = version.findIndex((part, index) => part !== other[index]);
  return at >= 0 && (version[at] ?? 0) < (other[at] ?? 0);
}

/** The part of a driver's connection that a session needs. */
export interface DriverConnection {
  /** Runs one or several statements and returns the result of each. Integers beyond a safe number are strings. */
  query(text: string): Promise<readonly Result[]>;
  /** Without a listener, losing an idle connection ends the process with both drivers. */
  onLost(listener: (error: Error) => void): void;
  /** Closes it at once. The running query rejects with `error`. */
  abandon(error: Error): void;
  /** Does not wait for the server to close its end. */
  close(): void;
}

/** Loads the driver and connects. Throws `driver_missing` or the server's error. */
export type OpenDriver = (
  address: Address,
  settings: Pick<Settings, 'connectTimeoutMs' | 'root'>,
) => Promise<DriverConnection>;
