import { isDeepStrictEqual } from 'node:util';
import { constraintProblems } from './constraint.ts';
import type { Declaration, DeclaredConstraint } from './declaration.ts';
import { at, invalid, own } from './declared-place.ts';
import { defineConstraint, defineIndex } from './define.ts';
import { exists, fieldOf } from './lookup.ts';
import type { Collection, Constraint, Field, Index } from './model.ts';
import { derivedName, type NameSuffix } from './names.ts';
import type { ConstraintDefinition } from './operation.ts';
import { followConstraint, followIndex, type Naming } from './renames.ts';
import { type Path, problemText } from './shape.ts';

const SUFFIXES: Readonly<Record<Constraint['type'], NameSuffix>> = {
  foreignKey: 'fkey',
  unique: 'key',
  check: 'check',
  primaryKey: 'pkey',
};

/** A table of the declaration, with what its indexes and constraints are named after. */
export interface Support {
  readonly name: string;
  readonly fields: Declaration['tables'][string];
  readonly declaration: Declaration;
  /** The table as it was, under its old name. */
  readonly before: Collection | undefined;
  readonly names: Naming;
  /** Which table an index or constraint of the previous model belongs to, under the table's old name. */
  readonly owners: ReadonlyMap<string, string>;
}

export function withIndexes(collection: Collection, support: Support): Collection {
  const { name, declaration, before, names } = support;
  const written = own(declaration.indexes, name) ?? [];
  if (written.length === 0) return collection;
  const known = [...(before?.indexes.values() ?? [])].map((index) => followIndex(index, before?.name ?? name, names));
  const indexes = named(
    written.map((index, position): Nameable<Index> => {
      const path = ['indexes', name, position];
      const defined = at(path, () => {
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
    support,
    'index',
  );
  return { ...collection, indexes };
}

interface Written {
  readonly path: Path;
  readonly constraint: DeclaredConstraint;
}

/** Those written out, and those of fields that reference another table. */
export function writtenConstraints(table: string, fields: Support['fields'], declaration: Declaration): Written[] {
  const explicit = (own(declaration.constraints, table) ?? []).map((constraint, position): Written => {
    const path = ['constraints', table, position];
    const [problem] = constraintProblems(constraint);
    if (problem)
      throw invalid(`A constraint of "${table}" is not valid.`, problemText(problem), [...path, ...problem.path]);
    return { path, constraint };
  });
  const implied = Object.entries(fields).flatMap(([field, definition]): Written[] => {
    if (typeof definition === 'string' || !definition.references) return [];
    const { column, ...references } = definition.references;
    return [
      {
        path: ['tables', table, field, 'references'],
        // Actions are checked with the constraint.
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

export function withConstraints(collection: Collection, support: Support): Collection {
  const { name, fields, declaration, before, names } = support;
  const written = writtenConstraints(name, fields, declaration);
  if (written.length === 0) return collection;
  const known = [...(before?.constraints.values() ?? [])].map((item) =>
    followConstraint(item, before?.name ?? name, names),
  );
  const constraints = named(
    written.map(({ path, constraint }): Nameable<Constraint> => {
      const isNamed = constraint.name !== undefined;
      const defined = at(path, () => {
        const full = (isNamed ? constraint : { ...constraint, name: 'unnamed' }) as ConstraintDefinition;
        const found = defineConstraint(full, name, collection.fields.keys());
        for (const column of found.columns) fieldOf(collection, column);
        return found;
      });
      const columns = defined.type === 'primaryKey' ? [] : defined.columns;
      return { path, defined, isNamed, columns, suffix: SUFFIXES[defined.type] };
    }),
    known,
    support,
    'constraint',
  );
  return { ...collection, constraints, fields: withRequiredKeys(collection.fields, constraints) };
}

interface Nameable<T> {
  readonly path: Path;
  readonly defined: T;
  readonly isNamed: boolean;
  /** What the derived name says beside the table. */
  readonly columns: readonly string[];
  readonly suffix: NameSuffix;
}

/** By name, in the order they were written. */
function named<T extends { readonly name: string }>(
  written: readonly Nameable<T>[],
  known: readonly (T | undefined)[],
  { name: table, before, owners }: Support,
  kind: 'index' | 'constraint',
): ReadonlyMap<string, T> {
  const given = new Set(written.flatMap(({ isNamed, defined }) => (isNamed ? [defined.name] : [])));
  const open = known.filter((item) => item !== undefined && !given.has(item.name));
  const names = new Set<string>();
  const kept = written.map(({ path, isNamed, defined, columns, suffix }) => {
    if (isNamed) return undefined;
    const derived = derivedName(table, columns, suffix);
    at(path, () => {
      if (names.has(derived)) throw exists(kind, derived, table);
    });
    names.add(derived);
    return sameButName({ ...defined, name: derived }, open);
  });
  const taken = new Set(kept.map((item) => item?.name));
  const isFree = (name: string): boolean => !taken.has(name) && (owners.get(name) ?? before?.name) === before?.name;
  const found = new Map<string, T>();
  for (const [position, { path, defined, isNamed, columns, suffix }] of written.entries()) {
    const name = isNamed ? defined.name : (kept[position]?.name ?? freeName(table, columns, suffix, isFree));
    at(path, () => {
      if (found.has(name)) throw exists(kind, name, table);
    });
    found.set(name, { ...defined, name });
  }
  return found;
}

/** The derived name; one that an index of another table took along when its table was renamed gets a number. */
function freeName(
  table: string,
  columns: readonly string[],
  suffix: NameSuffix,
  isFree: (name: string) => boolean,
): string {
  let name = derivedName(table, columns, suffix);
  for (let number = 2; !isFree(name); number++) name = derivedName(table, [...columns, String(number)], suffix);
  return name;
}

/** The one of the same structure, under the same name if there is one. */
function sameButName<T extends { readonly name: string }>(wanted: T, known: readonly (T | undefined)[]): T | undefined {
  const same = known.filter((item) => isDeepStrictEqual({ ...item, name: wanted.name }, wanted));
  return same.find((item) => item?.name === wanted.name) ?? same[0];
}

/** Fields of a primary key constraint are required, as those that say `primaryKey: true` are. */
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
