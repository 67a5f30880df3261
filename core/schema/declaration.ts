import { writtenField } from './field.ts';
import type { Constraint, Index, SchemaModel } from './model.ts';
import type { ConstraintDefinition, FieldDefinition } from './operation.ts';
import type { CreateOptions, IndexOptions } from './options.ts';

/** One entry of the schema file, without the tag of its database. */
export interface Declaration {
  readonly tables: ByName<ByName<DeclaredField | string>>;
  readonly indexes?: ByName<readonly DeclaredIndex[]>;
  readonly constraints?: ByName<readonly DeclaredConstraint[]>;
  readonly options?: ByName<DeclaredOptions>;
}

type ByName<T> = { readonly [name: string]: T };

export interface DeclaredField extends FieldDefinition {
  /** Makes a foreign key of this one field. */
  readonly references?: DeclaredReference;
  readonly renamedFrom?: string;
}

export interface DeclaredReference {
  readonly table: string;
  readonly column: string;
  readonly onDelete?: string;
  readonly onUpdate?: string;
}

export interface DeclaredIndex extends IndexOptions {
  readonly name?: string;
  readonly columns: readonly (string | { readonly name: string; readonly order?: string })[];
  readonly unique?: boolean;
}

/** A constraint whose name may be left to us. */
export type DeclaredConstraint = ConstraintDefinition extends infer C
  ? C extends unknown
    ? Omit<C, 'name'> & { readonly name?: string }
    : never
  : never;

export interface DeclaredOptions extends CreateOptions {
  readonly renamedFrom?: string;
}

/** The declaration that gives the model, every index and constraint by its name. */
export function declarationOf(model: SchemaModel): Declaration {
  const collections = [...model.values()];
  const indexes = collections.filter((collection) => collection.indexes.size > 0);
  const constraints = collections.filter((collection) => collection.constraints.size > 0);
  const options = collections.filter((collection) => Object.keys(collection.options).length > 0);
  const named = <T>(entries: readonly (readonly [string, T])[]): ByName<T> => Object.fromEntries(entries);
  return {
    tables: named(
      collections.map(({ name, fields }) => [
        name,
        named(
          [...fields.values()].map((field) => {
            const { name: fieldName, ...definition } = writtenField(field);
            return [fieldName, definition];
          }),
        ),
      ]),
    ),
    ...(indexes.length > 0 && {
      indexes: named(
        indexes.map((collection) => [collection.name, [...collection.indexes.values()].map(declaredIndex)]),
      ),
    }),
    ...(constraints.length > 0 && {
      constraints: named(
        constraints.map((collection) => [collection.name, [...collection.constraints.values()] satisfies Constraint[]]),
      ),
    }),
    ...(options.length > 0 && { options: named(options.map((collection) => [collection.name, collection.options])) }),
  };
}

function declaredIndex({ columns, ...rest }: Index): DeclaredIndex {
  return { ...rest, columns: columns.map((column) => (column.order ? column : column.name)) };
}
