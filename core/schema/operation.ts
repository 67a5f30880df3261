import type { Json } from '../json.ts';
import type { Action } from './model.ts';
import type { CreateOptions, IndexOptions } from './options.ts';
import type { FieldTypeName } from './types.ts';

/**
 * What a migration does, as data: the same in migration objects and in files. The union is closed, so a new
 * member breaks the compilation of every place that has to answer it.
 */
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

export type OperationType = Operation['type'];

/** Names every operation type once. */
export const OPERATION_TYPES = [
  'createCollection',
  'dropCollection',
  'renameCollection',
  'addField',
  'dropField',
  'renameField',
  'modifyField',
  'createIndex',
  'dropIndex',
  'addConstraint',
  'dropConstraint',
  'raw',
] as const satisfies readonly OperationType[];

/** A field as a user writes it (SPEC 2.8); `type` is matched without regard to case. */
export interface FieldDefinition {
  readonly type: FieldTypeName;
  readonly primaryKey?: boolean;
  /** Identity or AUTO_INCREMENT for integers, a UUID default otherwise. */
  readonly autoGenerate?: boolean;
  readonly length?: number;
  readonly required?: boolean;
  /** `false` is `required: true`. */
  readonly nullable?: boolean;
  readonly unique?: boolean;
  readonly default?: Json;
  readonly precision?: number;
  readonly scale?: number;
  readonly enumValues?: readonly string[];
  /** Element type of an array; default string. */
  readonly items?: FieldTypeName;
}

export type NamedField = FieldDefinition & { readonly name: string };

export interface CreateCollection {
  readonly type: 'createCollection';
  readonly name: string;
  readonly fields: readonly NamedField[];
  readonly options?: CreateOptions;
}
export interface DropCollection {
  readonly type: 'dropCollection';
  readonly collection: string;
  /** Drops the foreign keys of other tables that point here first. */
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
  readonly field: NamedField;
}
export interface DropField {
  readonly type: 'dropField';
  readonly collection: string;
  readonly field: string;
}
export interface RenameField {
  readonly type: 'renameField';
  readonly collection: string;
  readonly from: string;
  readonly to: string;
  /** Allowed where the engine cannot rename in place: a new column, every value copied, the old one dropped. */
  readonly strategy?: 'copy';
  /** With the strategy: what the new column is other than the old one; values are converted on their way. */
  readonly changes?: FieldChanges;
}
export interface ModifyField {
  readonly type: 'modifyField';
  readonly collection: string;
  readonly field: string;
  readonly changes: FieldChanges;
}
/** What is not mentioned stays; `null` takes a default, a length, a precision, a scale or the items away. */
export interface FieldChanges {
  readonly type?: string;
  readonly primaryKey?: boolean;
  readonly autoGenerate?: boolean;
  readonly length?: number | null;
  readonly required?: boolean;
  readonly nullable?: boolean;
  readonly unique?: boolean;
  readonly default?: Json;
  readonly precision?: number | null;
  readonly scale?: number | null;
  readonly enumValues?: readonly string[] | null;
  readonly items?: string | null;
}
export interface CreateIndex extends IndexOptions {
  readonly type: 'createIndex';
  readonly collection: string;
  readonly index: string;
  readonly columns: readonly { readonly name: string; readonly order?: string }[];
  readonly unique?: boolean;
  readonly sqlOptions?: { readonly concurrently?: boolean };
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
/** Database-specific text. It runs only where the dialect matches and has no effect on the model. */
export interface Raw {
  readonly type: 'raw';
  readonly dialect: string;
  readonly statement: string;
  /** A query that gives a row when the statement has taken effect: tells an interrupted one from a done one. */
  readonly check?: string;
  /** `false` where the statement cannot be in a transaction. */
  readonly transaction?: boolean;
}

/** A constraint as a user writes it (SPEC 2.11). */
export type ConstraintDefinition =
  | {
      readonly name: string;
      readonly type: 'foreignKey';
      readonly columns: readonly string[];
      readonly references: {
        readonly table: string;
        readonly columns: readonly string[];
        readonly onDelete?: Action;
        readonly onUpdate?: Action;
      };
    }
  | { readonly name: string; readonly type: 'unique' | 'primaryKey'; readonly columns: readonly string[] }
  | {
      readonly name: string;
      readonly type: 'check';
      readonly expression: string;
      readonly columns?: readonly string[];
    };
