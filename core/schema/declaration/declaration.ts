import { isSvcError, SvcError } from '../../errors.ts';
import type { Path } from '../../validate-shape.ts';
import { toFieldDefinition } from '../define-field.ts';
import type { Constraint, Index, SchemaModel } from '../model.ts';
import type { ConstraintDefinition, FieldDefinition } from '../operation.ts';
import type { CreateOptions, IndexOptions } from '../options.ts';

/** One entry of the schema file, without its database tag. */
export interface Declaration {
  readonly tables: ByName<ByName<DeclaredField | string>>;
  readonly indexes?: ByName<readonly DeclaredIndex[]>;
  readonly constraints?: ByName<readonly DeclaredConstraint[]>;
  readonly options?: ByName<DeclaredOptions>;
}

type ByName<T> = { readonly [name: string]: T };

export interface DeclaredField extends FieldDefinition {
  /** Creates a foreign key with this field. */
  readonly references?: DeclaredReference;
  readonly renamedFrom?: string;
}

interface DeclaredReference {
  readonly table: string;
  readonly column: string;
  readonly onDelete?: string;
  readonly onUpdate?: string;
}

interface DeclaredIndex extends IndexOptions {
  readonly name?: string;
  readonly columns: readonly (string | { readonly name: string; readonly order?: string })[];
  readonly unique?: boolean;
}

/** A constraint. Without a name, one is derived. */
export type DeclaredConstraint = ConstraintDefinition extends infer C
  ? C extends unknown
    ? Omit<C, 'name'> & { readonly name?: string }
    : never
  : never;

export interface DeclaredOptions extends CreateOptions {
  readonly renamedFrom?: string;
}

/** The declaration of a model, with explicit names for all indexes and constraints. */
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
            const { name: fieldName, ...definition } = toFieldDefinition(field);
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

/** Reads an own property. A table may be called `constructor`. */
export function ownProperty<T>(map: { readonly [name: string]: T } | undefined, name: string): T | undefined {
  return map && Object.hasOwn(map, name) ? map[name] : undefined;
}

export function schemaInvalid(message: string, why: string, path: Path): SvcError {
  return new SvcError('schema_invalid', message, { why, details: { path } });
}

/** Prepends a path to `details.path` of errors thrown by `work`. */
export function withErrorPath<T>(path: Path, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!isSvcError(error)) throw error;
    const inner = Array.isArray(error.details.path) ? error.details.path : [];
    // The `references` of a field is that of its constraint: do not repeat it.
    const rest = inner[0] === 'references' && path.at(-1) === 'references' ? inner.slice(1) : inner;
    throw error.with({ details: { path: [...path, ...rest] } });
  }
}
