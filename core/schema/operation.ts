import type { Json } from '../json.ts';
import type { FieldValue } from './dates.ts';
import type { FieldTypeName, ReferentialAction } from './model.ts';
import type { CreateOptions, IndexOptions } from './options.ts';

/** One schema change as data, in the format of migration objects and migration files. */
export type Operation =
  | CreateCollection
  | DropCollection
  | RenameCollection
  | AddField
  | DropField
  | RenameField
  | ModifyField
  | CreateIndex
  | DropIndex
  | AddConstraint
  | DropConstraint
  | Raw;

/** An operation of a migration. Those on objects do not concern the model of the tables. */
export type MigrationOperation = Operation | ObjectOperation;

export type OperationType = MigrationOperation['type'];

/** An operation that the model understands. */
export type ModelOperation = Exclude<Operation, Raw>;

/**
 * A field as a user writes it. The letter case of `type` does not matter. `db.schema` and the builder also accept a Date
 * as the default of a timestamp: `FieldDefinition<FieldValue>`.
 */
export interface FieldDefinition<Default = Json> {
  readonly type: FieldTypeName;
  readonly primaryKey?: boolean;
  /** Identity or AUTO_INCREMENT for integers, a UUID default for other types. */
  readonly autoGenerate?: boolean;
  readonly length?: number;
  readonly required?: boolean;
  /** `nullable: false` means `required: true`. */
  readonly nullable?: boolean;
  readonly unique?: boolean;
  readonly default?: Default;
  readonly precision?: number;
  readonly scale?: number;
  readonly enumValues?: readonly string[];
  /** Element type of an array; default string. */
  readonly items?: FieldTypeName;
  /**
   * The type of the column in the engine's own language, such as `int unsigned` or `timestamp with time zone`, instead of the
   * one that svc uses for `type`. `type` says what its values are: the nearest type.
   */
  readonly native?: string;
  /** SQL: the comment of the column in the catalog. */
  readonly comment?: string;
}

export type NamedFieldDefinition<Default = Json> = FieldDefinition<Default> & { readonly name: string };

export interface CreateCollection {
  readonly type: 'createCollection';
  readonly name: string;
  readonly fields: readonly NamedFieldDefinition[];
  /** SQL: a primary key whose columns have another order than the fields, or a name. Its fields are `required`. */
  readonly primaryKey?: { readonly name: string; readonly columns: readonly string[]; readonly native?: string };
  readonly options?: CreateOptions;
}
export interface DropCollection {
  readonly type: 'dropCollection';
  readonly collection: string;
  /** First drops the foreign keys of other tables that reference this one. */
  readonly cascade?: boolean;
}
export interface RenameCollection {
  readonly type: 'renameCollection';
  readonly collection: string;
  readonly to: string;
}
export interface AddField {
  readonly type: 'addField';
  readonly collection: string;
  readonly field: NamedFieldDefinition;
  /**
   * SQL: another field, whose values it takes. A trigger then gives each of the two what is written to the other, until one of
   * them is dropped with `mirrors`. Both have the same type, and not both have a default.
   */
  readonly mirrors?: string;
}
export interface DropField {
  readonly type: 'dropField';
  readonly collection: string;
  readonly field: string;
  /** The field that has all of its values, by the `mirrors` of an `addField`. Ends that too. */
  readonly mirrors?: string;
}
export interface RenameField {
  readonly type: 'renameField';
  readonly collection: string;
  readonly from: string;
  readonly to: string;
  /** For engines that cannot rename in place: adds a new column, copies every value, drops the old column. */
  readonly strategy?: 'copy';
  /** Only with `strategy`: changes to the definition. Values are converted while they are copied. */
  readonly changes?: FieldChanges;
}
export interface ModifyField {
  readonly type: 'modifyField';
  readonly collection: string;
  readonly field: string;
  readonly changes: FieldChanges;
}
/** Omitted properties keep their values. `null` removes a default, length, precision, scale, items, native type or comment. */
export interface FieldChanges<Default = Json> {
  readonly type?: FieldTypeName;
  readonly primaryKey?: boolean;
  readonly autoGenerate?: boolean;
  readonly length?: number | null;
  readonly required?: boolean;
  readonly nullable?: boolean;
  readonly unique?: boolean;
  readonly default?: Default;
  readonly precision?: number | null;
  readonly scale?: number | null;
  readonly enumValues?: readonly string[] | null;
  readonly items?: FieldTypeName | null;
  readonly native?: string | null;
  readonly comment?: string | null;
}
export interface CreateIndex extends IndexOptions {
  readonly type: 'createIndex';
  readonly collection: string;
  readonly index: string;
  readonly columns: readonly { readonly name: string; readonly order?: string }[];
  readonly unique?: boolean;
  readonly sqlOptions?: { readonly concurrently?: boolean };
}
/** The options of `createIndex`. */
export type CreateIndexOptions = Pick<CreateIndex, 'unique' | 'sqlOptions' | keyof IndexOptions>;

/** The options of `renameField`. */
export interface RenameFieldOptions extends Pick<RenameField, 'strategy'> {
  readonly changes?: FieldChanges<FieldValue>;
}

export interface DropIndex {
  readonly type: 'dropIndex';
  readonly collection: string;
  readonly index: string;
}
export interface AddConstraint {
  readonly type: 'addConstraint';
  readonly collection: string;
  readonly constraint: ConstraintDefinition;
}
export interface DropConstraint {
  readonly type: 'dropConstraint';
  readonly collection: string;
  readonly constraint: string;
}
/** A statement in the language of one dialect. Other dialects skip it. It changes the model only by what it `makes`. */
export interface Raw {
  readonly type: 'raw';
  readonly dialect: string;
  readonly statement: string;
  /** A query that returns a row once the statement has taken effect, for recovery after an interruption. */
  readonly check?: string;
  /** `false` if the statement cannot run in a transaction. */
  readonly transaction?: boolean;
  /** Whether the statement destroys data; by default, whether it drops, truncates or deletes. */
  readonly destructive?: boolean;
  /**
   * What the statement makes, as operations: they change the model, and after the statement the catalog must match them.
   * Without it, the model does not contain what the statement makes.
   */
  readonly makes?: readonly ModelOperation[];
}

export type ObjectOperation = CreateObject | ReplaceObject | DropObject;

/**
 * Creates what is not a table and is defined by a text in the language of the engine: a view, a function, a trigger, a
 * type. `kind` and `name` are those of its file, `svc/database/objects/<db>/<kind>/<name>.sql`.
 */
export interface CreateObject {
  readonly type: 'createObject';
  readonly kind: string;
  readonly name: string;
  readonly definition: string;
}
/** Gives an object another definition. `was` is the present one, for the rollback. */
export interface ReplaceObject {
  readonly type: 'replaceObject';
  readonly kind: string;
  readonly name: string;
  readonly definition: string;
  readonly was: string;
}
export interface DropObject {
  readonly type: 'dropObject';
  readonly kind: string;
  readonly name: string;
  readonly was: string;
}

/**
 * A constraint as a user writes it. `native` is what it has beyond its columns, in the engine's own language:
 * `DEFERRABLE INITIALLY DEFERRED`, `INCLUDE (name)`.
 */
export type ConstraintDefinition =
  | {
      readonly name: string;
      readonly type: 'foreignKey';
      readonly columns: readonly string[];
      readonly references: {
        readonly table: string;
        readonly columns: readonly string[];
        readonly onDelete?: ReferentialAction;
        readonly onUpdate?: ReferentialAction;
      };
      readonly native?: string;
    }
  | {
      readonly name: string;
      readonly type: 'unique' | 'primaryKey';
      readonly columns: readonly string[];
      readonly native?: string;
    }
  | {
      readonly name: string;
      readonly type: 'check';
      readonly expression: string;
      readonly columns?: readonly string[];
      readonly native?: string;
    };
