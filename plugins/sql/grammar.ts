import type { Statement } from '../../core/dialect.ts';
import type { Json } from '../../core/json.ts';
import type { Collection, Field } from '../../core/schema/model.ts';
import type { CreateIndex, Raw } from '../../core/schema/operation.ts';
import type { SqlOptions } from '../../core/schema/options.ts';
import type { FieldType } from '../../core/schema/types.ts';

/** Where SQL engines differ: everything else is compiled once for all of them. */
export interface Grammar {
  readonly name: string;
  /** Bytes of the longest name. */
  readonly identifierBytes: number;
  /** Names that every table has for itself. */
  readonly systemColumns: ReadonlySet<string>;
  quote(name: string): string;
  /** A string literal. */
  text(value: string): string;
  /** Throws `field_invalid` for what the engine cannot hold; `where` is the table. */
  columnType(field: Omit<Field, 'name'>, where: string): string;
  /** A literal of the field's type, as a default and in updates. */
  literal(value: Json, field: Omit<Field, 'name'>): string;
  /** `CREATE TABLE "x"` with what the options ask for. Throws `not_supported`. */
  createTable(name: string, options: SqlOptions): string;
  /** What follows the type of a generated column. */
  generated(field: Field): string | undefined;
  /** The engine's current date or time. */
  now(type: FieldType): string;
  /** The condition a column of an enum is checked with, where enums are not types. */
  enumCheck(field: Field): string | undefined;
  modifyField(before: Collection, from: Field, to: Field): Statement[];
  createIndex(operation: CreateIndex): Statement;
  dropIndex(collection: string, index: string): string;
  dropConstraint(name: string): string;
  /** Why a user's text cannot stand in parentheses as one expression, or nothing. */
  expressionProblem(text: string): string | undefined;
  raw(operation: Raw): Statement[];
}
