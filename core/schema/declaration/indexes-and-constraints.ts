import { isDeepStrictEqual } from 'node:util';
import { type Path, problemText } from '../../validate-shape.ts';
import { constraintProblems } from '../constraint.ts';
import { defineConstraint, defineIndex } from '../define.ts';
import { alreadyExistsError, fieldOf } from '../find-or-throw.ts';
import type { Collection, Constraint, Field, Index } from '../model.ts';
import { derivedName, type NameLimit, type NameSuffix } from '../names.ts';
import type { ConstraintDefinition } from '../operation.ts';
import { type NameMap, renameConstraint, renameIndex } from '../rename/renames.ts';
import { type Declaration, type DeclaredConstraint, ownProperty, schemaInvalid, withErrorPath } from './declaration.ts';

const SUFFIXES: Readonly<Record<Constraint['type'], NameSuffix>> = {
  foreignKey: 'fkey',
  unique: 'key',
  check: 'check',
  primaryKey: 'pkey',
};

/** A declared table, with the context needed to name its indexes and constraints. */
export interface DeclaredTable {
  readonly name: string;
  readonly fields: Declaration['tables'][string];
  readonly declaration: Declaration;
  /** The table in the previous model, under its old name. */
  readonly before: Collection | undefined;
  readonly names: NameMap;
  /** The old name of the table each index or constraint of the previous model belongs to. */
  readonly owners: ReadonlyMap<string, string>;
  /** Of derived names. */
  readonly limit: NameLimit;
}

export function withIndexes(collection: Collection, declared: DeclaredTable): Collection {
  const { name, declaration, before, names } = declared;
  const entries = ownProperty(declaration.indexes, name) ?? [];
  if (entries.length === 0) return collection;
  const known = [...(before?.indexes.values() ?? [])].map((index) => renameIndex(index, before?.name ?? name, names));
  const indexes = assignNames(
    entries.map((index, position): Candidate<Index> => {
      const path = ['indexes', name, position];
      const defined = withErrorPath(path, () => {
        const { name: given, columns, ...rest } = index;
        const full = columns.map((column) => (typeof column === 'string' ? { name: column } : column));
        const found = defineIndex({ collection: name, index: given ?? 'unnamed', columns: full, ...rest });
        for (const column of found.columns) fieldOf(collection, column.name);
        return found;
      });
      const columns = defined.columns.map((column) => column.name);
      return { path, defined, isNamed: index.name !== undefined, columns, suffix: 'idx' };
    }),
    known,
    declared,
    'index',
  );
  return { ...collection, indexes };
}

interface DeclaredConstraintAt {
  readonly path: Path;
  readonly constraint: DeclaredConstraint;
}

/** Explicit constraints, and the foreign keys of fields with `references`. */
export function declaredConstraints(
  table: string,
  fields: DeclaredTable['fields'],
  declaration: Declaration,
): DeclaredConstraintAt[] {
  const explicit = (ownProperty(declaration.constraints, table) ?? []).map(
    (constraint, position): DeclaredConstraintAt => {
      const path = ['constraints', table, position];
      const [problem] = constraintProblems(constraint);
      if (problem)
        throw schemaInvalid(`A constraint of "${table}" is not valid.`, problemText(problem), [
          ...path,
          ...problem.path,
        ]);
      return { path, constraint };
    },
  );
  const implied = Object.entries(fields).flatMap(([field, definition]): DeclaredConstraintAt[] => {
    if (typeof definition === 'string' || !definition.references) return [];
    const { column, ...references } = definition.references;
    return [
      {
        path: ['tables', table, field, 'references'],
        // `defineConstraint` validates the actions.
        constraint: {
          type: 'foreignKey',
          columns: [field],
          references: { ...references, columns: [column] },
        } as DeclaredConstraint,
      },
    ];
  });
  return [...explicit, ...implied];
}

export function withConstraints(collection: Collection, declared: DeclaredTable): Collection {
  const { name, fields, declaration, before, names } = declared;
  const entries = declaredConstraints(name, fields, declaration);
  if (entries.length === 0) return collection;
  const known = [...(before?.constraints.values() ?? [])].map((item) =>
    renameConstraint(item, before?.name ?? name, names),
  );
  const constraints = assignNames(
    entries.map(({ path, constraint }): Candidate<Constraint> => {
      const isNamed = constraint.name !== undefined;
      const defined = withErrorPath(path, () => {
        const full = (isNamed ? constraint : { ...constraint, name: 'unnamed' }) as ConstraintDefinition;
        const found = defineConstraint(full, name, collection.fields.keys());
        for (const column of found.columns) fieldOf(collection, column);
        return found;
      });
      const columns = defined.type === 'primaryKey' ? [] : defined.columns;
      return { path, defined, isNamed, columns, suffix: SUFFIXES[defined.type] };
    }),
    known,
    declared,
    'constraint',
  );
  return { ...collection, constraints, fields: withRequiredKeys(collection.fields, constraints) };
}

interface Candidate<T> {
  readonly path: Path;
  readonly defined: T;
  readonly isNamed: boolean;
  /** The columns in the derived name. */
  readonly columns: readonly string[];
  readonly suffix: NameSuffix;
}

/** Returns the entries by name, in declaration order. */
function assignNames<T extends { readonly name: string }>(
  entries: readonly Candidate<T>[],
  known: readonly (T | undefined)[],
  { name: table, before, owners, limit }: DeclaredTable,
  kind: 'index' | 'constraint',
): ReadonlyMap<string, T> {
  const given = new Set(entries.flatMap(({ isNamed, defined }) => (isNamed ? [defined.name] : [])));
  const open = known.filter((item) => item !== undefined && !given.has(item.name));
  const names = new Set<string>();
  const reused = entries.map(({ path, isNamed, defined, columns, suffix }) => {
    if (isNamed) return undefined;
    const derived = derivedName(table, columns, suffix, limit);
    withErrorPath(path, () => {
      if (names.has(derived)) throw alreadyExistsError(kind, derived, table);
    });
    names.add(derived);
    return findEqualExceptName({ ...defined, name: derived }, open);
  });
  const taken = new Set(reused.map((item) => item?.name));
  const isFree = (name: string): boolean => !taken.has(name) && (owners.get(name) ?? before?.name) === before?.name;
  const found = new Map<string, T>();
  for (const [position, { path, defined, isNamed, columns, suffix }] of entries.entries()) {
    const name = isNamed
      ? defined.name
      : (reused[position]?.name ?? unusedName((all) => derivedName(table, all, suffix, limit), columns, isFree));
    withErrorPath(path, () => {
      if (found.has(name)) throw alreadyExistsError(kind, name, table);
    });
    found.set(name, { ...defined, name });
  }
  return found;
}

/** The derived name. If an index of a renamed table still has that name, a number is added. */
function unusedName(
  nameOf: (columns: readonly string[]) => string,
  columns: readonly string[],
  isFree: (name: string) => boolean,
): string {
  let name = nameOf(columns);
  for (let number = 2; !isFree(name); number++) name = nameOf([...columns, String(number)]);
  return name;
}

/** An item that equals `wanted` except for the name, preferably with the same name. */
function findEqualExceptName<T extends { readonly name: string }>(
  wanted: T,
  known: readonly (T | undefined)[],
): T | undefined {
  const same = known.filter((item) => isDeepStrictEqual({ ...item, name: wanted.name }, wanted));
  return same.find((item) => item?.name === wanted.name) ?? same[0];
}

/** Fields of a primary key constraint are required, like those with `primaryKey: true`. */
function withRequiredKeys(
  fields: ReadonlyMap<string, Field>,
  constraints: ReadonlyMap<string, Constraint>,
): ReadonlyMap<string, Field> {
  const keys = [...constraints.values()].flatMap(({ type, columns }) => (type === 'primaryKey' ? columns : []));
  if (keys.length === 0) return fields;
  return new Map(
    [...fields].map(([name, field]) => [name, keys.includes(name) ? { ...field, required: true } : field]),
  );
}
