import type { Json } from '../json.ts';
import type { IndexOptions, TableOptions } from './options.ts';

/**
 * The schema of a database: collections by name. Compare two models with `isDeepStrictEqual`, which ignores the order of
 * collections, fields, indexes and constraints.
 */
export type SchemaModel = ReadonlyMap<string, Collection>;

export interface Collection {
  readonly name: string;
  /** In the order they were added, which is also the order of columns and of a composite primary key. */
  readonly fields: ReadonlyMap<string, Field>;
  readonly indexes: ReadonlyMap<string, Index>;
  readonly constraints: ReadonlyMap<string, Constraint>;
  readonly options: TableOptions;
  /** Pairs of fields that a trigger keeps in step. Only of a model made from operations: no catalog says it. */
  readonly mirrors?: readonly (readonly [string, string])[];
}

/**
 * A field in normal form: properties without effect (`false`, an undefined length) are absent, the type is spelled as in
 * FIELD_TYPES, and a primary key is always `required`.
 */
export interface Field {
  readonly name: string;
  readonly type: FieldType;
  readonly primaryKey?: true;
  readonly autoGenerate?: true;
  readonly required?: true;
  readonly unique?: true;
  /** Characters for a string, bytes for a binary. */
  readonly length?: number;
  readonly precision?: number;
  readonly scale?: number;
  readonly enumValues?: readonly string[];
  /** Element type of an array. */
  readonly items?: FieldType;
  /** The type of the column in the engine's own language. `type` is then only what its values are taken for. */
  readonly native?: string;
  /** For people who read the catalog. */
  readonly comment?: string;
  readonly default?: Default;
}

/** A literal, `'now'` for date and time types, or an expression in the engine's own language. */
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

export const REFERENTIAL_ACTIONS = ['CASCADE', 'RESTRICT', 'SET NULL', 'SET DEFAULT', 'NO ACTION'] as const;
export type ReferentialAction = (typeof REFERENTIAL_ACTIONS)[number];

/** What a constraint has beyond its columns. */
interface NativeOptions {
  /** In the engine's own language, such as `DEFERRABLE INITIALLY DEFERRED` or `INCLUDE (name)`. */
  readonly native?: string;
}

export interface ForeignKey extends NativeOptions {
  readonly name: string;
  readonly type: 'foreignKey';
  readonly columns: readonly string[];
  /** In normal form, `NO ACTION` is absent. */
  readonly references: {
    readonly table: string;
    readonly columns: readonly string[];
    readonly onDelete?: Exclude<ReferentialAction, 'NO ACTION'>;
    readonly onUpdate?: Exclude<ReferentialAction, 'NO ACTION'>;
  };
}

export interface UniqueConstraint extends NativeOptions {
  readonly name: string;
  readonly type: 'unique';
  readonly columns: readonly string[];
}

export interface CheckConstraint extends NativeOptions {
  readonly name: string;
  readonly type: 'check';
  /** The fields the expression reads, each once and sorted. They cannot be dropped while the check exists. */
  readonly columns: readonly string[];
  /** In the engine's own language. */
  readonly expression: string;
}

export interface PrimaryKeyConstraint extends NativeOptions {
  readonly name: string;
  readonly type: 'primaryKey';
  readonly columns: readonly string[];
}

/** All field types, in the order of the documentation. */
export const FIELD_TYPES = [
  'integer',
  'bigint',
  'smallint',
  'float',
  'double',
  'decimal',
  'string',
  'text',
  'boolean',
  'date',
  'time',
  'datetime',
  'timestamp',
  'json',
  'uuid',
  'enum',
  'array',
  'binary',
  'blob',
] as const;

export type FieldType = (typeof FIELD_TYPES)[number];

/** A field type. At run time its letter case does not matter: schema files write `String`. */
export type FieldTypeName = FieldType | Capitalize<FieldType> | Uppercase<FieldType>;

const byLowerCase = new Map<string, FieldType>(FIELD_TYPES.map((type) => [type, type]));

/** Looks up a type by its name in any letter case: schema files use `String`. */
export function fieldType(name: string): FieldType | undefined {
  return byLowerCase.get(name.toLowerCase());
}

/** A collection with arrays in place of maps, for JSON. */
export interface SerializedCollection extends Pick<Collection, 'name' | 'options'> {
  readonly fields: readonly Field[];
  readonly indexes: readonly Index[];
  readonly constraints: readonly Constraint[];
}

export const serializeModel = (model: SchemaModel): SerializedCollection[] =>
  [...model.values()].map(serializeCollection);

export const deserializeModel = (collections: readonly SerializedCollection[]): SchemaModel =>
  byName(collections.map(deserializeCollection));

export function serializeCollection({ name, fields, indexes, constraints, options }: Collection): SerializedCollection {
  return {
    name,
    fields: [...fields.values()],
    indexes: [...indexes.values()],
    constraints: [...constraints.values()],
    options,
  };
}

export function deserializeCollection(serialized: SerializedCollection): Collection {
  const { name, fields, indexes, constraints, options } = serialized;
  return { name, fields: byName(fields), indexes: byName(indexes), constraints: byName(constraints), options };
}

function byName<T extends { readonly name: string }>(all: readonly T[]): ReadonlyMap<string, T> {
  return new Map(all.map((one) => [one.name, one]));
}
