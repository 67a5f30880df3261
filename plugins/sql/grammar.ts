import type { Statement } from '../../core/dialect.ts';
import type { Json } from '../../core/json.ts';
import type { Refusal, Refusals } from '../../core/schema/features.ts';
import type { Collection, Constraint, Field, SchemaModel } from '../../core/schema/model.ts';
import type { NameRules } from '../../core/schema/names.ts';
import type { CreateIndex, Operation, Raw } from '../../core/schema/operation.ts';
import type { SqlOptions } from '../../core/schema/options.ts';
import type { FieldType } from '../../core/schema/types.ts';

/** Where SQL engines differ: everything else is compiled once for all of them. */
export interface Grammar {
  readonly name: string;
  readonly names: NameRules;
  readonly refuses: Refusals;
  /** Refuses what does not fit beside what the model has. */
  refuse(operation: Operation, before: SchemaModel): void;
  quote(name: string): string;
  /** A string literal. */
  text(value: string): string;
  /** Throws `field_invalid` for what the engine cannot hold; `where` is the table. */
  columnType(field: Omit<Field, 'name'>, where: string): string;
  /** A literal of the field's type, as a default and in updates. */
  literal(value: Json, field: Omit<Field, 'name'>): string;
  /** The same as a default, where that is written otherwise. */
  defaultLiteral(value: Json, field: Omit<Field, 'name'>): string;
  /** Follows the type of a column that may be without a value. */
  readonly nullable: string;
  /** What follows the type of a generated column. */
  generated(field: Field): string | undefined;
  /** The engine's current date or time, as a default. */
  now(type: FieldType): string;
  /** The end of a column's definition: a check that belongs to it. */
  columnCheck(field: Field, table: string): string;
  /** The condition a column of an enum is checked with, where enums are not types. */
  enumCheck(field: Field): string | undefined;
  /** Throws `not_supported`. `lines` define the columns and constraints. */
  createTable(name: string, options: SqlOptions, lines: readonly string[], fields: readonly Field[]): Statement[];
  dropTable(name: string): Statement;
  renameTable(before: Collection, to: string, constraints: readonly Renamed[]): Statement[];
  alter(table: string, clauses: readonly string[], facts?: Facts): Statement;
  /** `first` and `last` are clauses for what the field's flags stand for. */
  addField(before: Collection, field: Field, first: readonly string[], last: readonly string[]): readonly Statement[];
  /** `clauses` drop the column and what its flags stand for. */
  dropField(before: Collection, field: Field, clauses: readonly string[]): Statement;
  renameField(before: Collection, field: Field, to: string, constraints: readonly Renamed[]): Statement[];
  modifyField(before: Collection, from: Field, to: Field): readonly Statement[];
  createIndex(operation: CreateIndex): Statement;
  dropIndex(collection: string, index: string): Statement;
  dropConstraint(table: string, constraint: Constraint): Statement;
  /** The clause that drops the primary key which flags of fields declare. */
  dropPrimaryKey(before: Collection): string;
  /** Why a user's text cannot stand in parentheses as one expression, or nothing. */
  expressionProblem(text: string): string | undefined;
  raw(operation: Raw): Statement[];
}

export type Facts = Partial<Omit<Statement, 'text' | 'run'>>;

/** A constraint whose name follows from the names of its table and field, which change. */
export interface Renamed {
  readonly type: Constraint['type'];
  readonly from: string;
  readonly to: string;
}

const options = (name: string): Refusal => ({
  why: 'They are options of another engine.',
  next: `Remove ${name} from the options of the table.`,
});

/** What no SQL engine can do. */
export const OTHER_OPTIONS: Refusals = {
  mongoOptions: options('mongoOptions'),
  dynamoOptions: options('dynamoOptions'),
  cassandraOptions: options('cassandraOptions'),
};
