import type { Statement } from '../../../core/dialect.ts';
import type { Json } from '../../../core/json.ts';
import type { Collection, Constraint, Field, SchemaModel } from '../../../core/schema/model.ts';
import type { NameRules } from '../../../core/schema/names.ts';
import type { CreateIndex, Operation, Raw } from '../../../core/schema/operation.ts';
import type { SqlOptions } from '../../../core/schema/options.ts';
import type { UnsupportedFeatures, UnsupportedReason } from '../../../core/schema/unsupported-features.ts';

/** The differences between SQL engines. `compileSql` does the rest for all of them. */
export interface Grammar<Step = unknown> {
  readonly name: string;
  readonly names: NameRules;
  readonly unsupported: UnsupportedFeatures;
  /** Throws if the engine cannot execute the operation on this model. */
  assertOperation(operation: Operation, before: SchemaModel): void;
  quoteIdentifier(name: string): string;
  /** A table in a statement, where its name may begin with a schema. `schema` is that of the connection, quoted and with its dot. */
  qualified?(table: string, schema: string): string;
  /** A string literal. */
  quoteLiteral(value: string): string;
  /** Throws `field_invalid` for a field the engine cannot store. */
  columnType(field: Omit<Field, 'name'>, table: string): string;
  /** A literal of the field's type, for defaults and updates. */
  literal(value: Json, field: Omit<Field, 'name'>): string;
  /** A literal in a DEFAULT clause, where the notation may differ. */
  defaultLiteral(value: Json, field: Omit<Field, 'name'>): string;
  /** Follows the type of a nullable column, where NOT NULL follows that of a required one: `NULL`, or an empty string. */
  readonly nullable: string;
  /** The engine reads NOT NULL only after a DEFAULT. */
  readonly defaultFirst?: true;
  /** Follows the type of a generated column, or of one with a native type. */
  generated(field: Field): string | undefined;
  /** The current date or time in a DEFAULT clause. */
  now(field: Pick<Field, 'type' | 'native'>): string;
  /** Its comment in the definition of a column, on engines without a statement for it. */
  columnComment?(field: Field, table: string): string;
  /** An inline check at the end of a column definition. */
  columnCheck(field: Field, table: string): string;
  /** The check condition of an enum column, on engines without enum types. */
  enumCheck(field: Field): string | undefined;
  /** A primary key in CREATE TABLE, on engines that do not name it. */
  primaryKey?(columns: readonly string[], constraint?: Constraint): string;
  /** `lines` define the columns and constraints; `key` has the names of the primary key. Throws `not_supported`. */
  createTable(
    name: string,
    options: SqlOptions,
    lines: readonly string[],
    table: { readonly fields: readonly Field[]; readonly key: readonly string[] },
  ): Statement<Step>[];
  dropTable(name: string): Statement<Step>;
  renameTable(
    before: Collection,
    to: string,
    constraints: readonly RenamedConstraint[],
    model: SchemaModel,
  ): Statement<Step>[];
  addConstraint(table: string, constraint: Constraint): Statement<Step>;
  /** Adds the column, and adds or replaces the constraints of its flags. */
  addField(before: Collection, field: Field): readonly Statement<Step>[];
  /** Drops the column, and drops or replaces the constraints of its flags. */
  dropField(before: Collection, field: Field): Statement<Step>;
  /** Adds the column, and keeps it in step with another one. */
  addMirror?(before: Collection, field: Field, other: Field): readonly Statement<Step>[];
  /** Drops the column after a check that the other one has all of its values. */
  dropMirror?(before: Collection, field: Field, other: Field): readonly Statement<Step>[];
  renameField(
    before: Collection,
    field: Field,
    to: string,
    constraints: readonly RenamedConstraint[],
  ): Statement<Step>[];
  modifyField(before: Collection, from: Field, to: Field): readonly Statement<Step>[];
  createIndex(operation: CreateIndex): Statement<Step>;
  dropIndex(collection: string, index: string): Statement<Step>;
  dropConstraint(table: string, constraint: Constraint): Statement<Step>;
  /** Why a user's text is not a single expression; undefined if it is. */
  expressionProblem(text: string): string | undefined;
  raw(operation: Raw): Statement<Step>[];
}

/** The properties of a statement other than what it runs. */
export type StatementFacts = Partial<Pick<Statement, 'transactional' | 'destructive' | 'idempotent' | 'check'>>;

/** A constraint with a derived name that changes with the name of its table or field. */
export interface RenamedConstraint {
  readonly type: Constraint['type'];
  readonly from: string;
  readonly to: string;
}

const otherEngineOptions = (name: string): UnsupportedReason => ({
  why: 'They are options of another engine.',
  next: `Remove ${name} from the options of the table.`,
});

/** The features no SQL engine has. */
export const UNSUPPORTED_BY_SQL: UnsupportedFeatures = {
  mongoOptions: otherEngineOptions('mongoOptions'),
  dynamoOptions: otherEngineOptions('dynamoOptions'),
  cassandraOptions: otherEngineOptions('cassandraOptions'),
};
