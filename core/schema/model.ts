import type { Json } from '../json.ts';
import type { CreateOptions, IndexOptions } from './options.ts';
import type { FieldType } from './types.ts';

/**
 * What a database holds, as the operations tell it: collections by name.
 * Two models are equal when `isDeepStrictEqual` says so; the order of collections, fields, indexes and constraints does not count.
 */
export type SchemaModel = ReadonlyMap<string, Collection>;

export interface Collection {
  readonly name: string;
  /** In the order they were added: the order of columns and of a composite primary key. */
  readonly fields: ReadonlyMap<string, Field>;
  readonly indexes: ReadonlyMap<string, Index>;
  readonly constraints: ReadonlyMap<string, Constraint>;
  readonly options: TableOptions;
}

/** What stays true of a table after it was created. */
export type TableOptions = Omit<CreateOptions, 'timestamps'>;

/**
 * A field in normal form: a property that says nothing (`false`, an undefined length) is absent, the type is
 * spelled as in FIELD_TYPES, and a primary key is always `required`.
 */
export interface Field {
  readonly name: string;
  readonly type: FieldType;
  readonly primaryKey?: true;
  readonly autoGenerate?: true;
  readonly required?: true;
  readonly unique?: true;
  /** Characters of a string, bytes of a binary. */
  readonly length?: number;
  readonly precision?: number;
  readonly scale?: number;
  readonly enumValues?: readonly string[];
  /** Element type of an array. */
  readonly items?: FieldType;
  readonly default?: Default;
}

/** A literal, `'now'` on a date or time type, or an expression in the engine's own words. */
export type Default = Json | { readonly $expression: string };

export interface IndexColumn {
  readonly name: string;
  readonly order?: 'desc';
}

export interface Index extends IndexOptions {
  readonly name: string;
  readonly columns: readonly IndexColumn[];
  readonly unique?: true;
}

export type Constraint = ForeignKey | UniqueConstraint | CheckConstraint | PrimaryKeyConstraint;

export const ACTIONS = ['CASCADE', 'RESTRICT', 'SET NULL', 'SET DEFAULT', 'NO ACTION'] as const;
export type Action = (typeof ACTIONS)[number];

export interface ForeignKey {
  readonly name: string;
  readonly type: 'foreignKey';
  readonly columns: readonly string[];
  /** In normal form an action that is `NO ACTION` is absent. */
  readonly references: {
    readonly table: string;
    readonly columns: readonly string[];
    readonly onDelete?: Exclude<Action, 'NO ACTION'>;
    readonly onUpdate?: Exclude<Action, 'NO ACTION'>;
  };
}

export interface UniqueConstraint {
  readonly name: string;
  readonly type: 'unique';
  readonly columns: readonly string[];
}

export interface CheckConstraint {
  readonly name: string;
  readonly type: 'check';
  /** The fields the expression reads, so that they are not dropped under it. */
  readonly columns: readonly string[];
  /** In the engine's own words. */
  readonly expression: string;
}

export interface PrimaryKeyConstraint {
  readonly name: string;
  readonly type: 'primaryKey';
  readonly columns: readonly string[];
}
