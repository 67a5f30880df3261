import { SvcError } from '../errors.ts';
import type { Collection, Constraint, Index, SchemaModel, TableOptions } from './model.ts';
import { renamedOptions } from './option-fields.ts';

/** Names that changed while the thing stayed: decided by the user, never guessed. */
export interface Renames {
  /** Old name to new. */
  readonly collections: ReadonlyMap<string, string>;
  /** By the new name of the table: old name of a field to new. */
  readonly fields: ReadonlyMap<string, ReadonlyMap<string, string>>;
}

export const NO_RENAMES: Renames = { collections: new Map(), fields: new Map() };

/** Which name an old one has become; undefined where it is gone. */
export interface Naming {
  readonly collection: (old: string) => string | undefined;
  readonly field: (oldCollection: string, old: string) => string | undefined;
}

/**
 * Who became whom from one model to another: what was renamed, and what kept its name. A name that a rename
 * gives to something else is a new thing.
 */
export function naming(from: SchemaModel, to: SchemaModel, renames: Renames): Naming {
  const collections = successors(from.keys(), to, renames.collections);
  const fields = new Map<string, ReadonlyMap<string, string>>();
  for (const [old, name] of collections) {
    const before = from.get(old);
    const after = to.get(name);
    if (before && after) fields.set(old, successors(before.fields.keys(), after.fields, renames.fields.get(name)));
  }
  return {
    collection: (old) => collections.get(old),
    field: (collection, old) => fields.get(collection)?.get(old),
  };
}

function successors(
  from: Iterable<string>,
  to: { has(name: string): boolean },
  renames: ReadonlyMap<string, string> | undefined,
): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const taken = new Set(renames?.values());
  for (const old of from) {
    const renamed = renames?.get(old);
    if (renamed !== undefined) found.set(old, renamed);
    else if (to.has(old) && !taken.has(old)) found.set(old, old);
  }
  return found;
}

/** Refuses renames that start or end nowhere, or end twice in one place. */
export function checkRenames(from: SchemaModel, to: SchemaModel, renames: Renames): void {
  checkEach(renames.collections, from, to, 'table');
  const origins = new Map([...renames.collections].map(([old, name]) => [name, old]));
  for (const [name, fields] of renames.fields) {
    const before = from.get(origins.get(name) ?? name);
    const after = to.get(name);
    if (!before || !after) {
      throw new SvcError('collection_unknown', `Fields of "${name}" cannot be renamed: the table does not stay.`);
    }
    checkEach(fields, before.fields, after.fields, `field of "${name}"`);
  }
}

function checkEach(
  renames: ReadonlyMap<string, string>,
  from: { has(name: string): boolean },
  to: { has(name: string): boolean },
  kind: string,
): void {
  const seen = new Set<string>();
  for (const [old, name] of renames) {
    const why = !from.has(old)
      ? `There is no "${old}" before.`
      : !to.has(name)
        ? `There is no "${name}" after.`
        : seen.has(name)
          ? `Something else is renamed to "${name}" too.`
          : undefined;
    if (why) throw new SvcError('schema_invalid', `The ${kind} "${old}" cannot be renamed to "${name}".`, { why });
    seen.add(name);
  }
}

/** An index under the names its columns have become; undefined where one is gone. */
export function followIndex(index: Index, collection: string, names: Naming): Index | undefined {
  const columns = index.columns.map((column) => ({ ...column, name: names.field(collection, column.name) }));
  return columns.every(isNamed) ? { ...index, columns } : undefined;
}

function isNamed<T extends { readonly name: string | undefined }>(column: T): column is T & { readonly name: string } {
  return column.name !== undefined;
}

/** A constraint under the names its columns and tables have become; undefined where one is gone. */
export function followConstraint(constraint: Constraint, collection: string, names: Naming): Constraint | undefined {
  const columns = followAll(constraint.columns, collection, names);
  if (!columns) return undefined;
  if (constraint.type === 'check') return { ...constraint, columns: [...columns].sort() };
  if (constraint.type !== 'foreignKey') return { ...constraint, columns };
  const table = names.collection(constraint.references.table);
  const target = followAll(constraint.references.columns, constraint.references.table, names);
  if (table === undefined || !target) return undefined;
  return { ...constraint, columns, references: { ...constraint.references, table, columns: target } };
}

/** Options under the names that fields have become; undefined where one is gone. */
export function followOptions({ name, fields, options }: Collection, names: Naming): TableOptions | undefined {
  let gone = false;
  const followed = renamedOptions(options, (field) => {
    // Options may name what is no declared field: keys of DynamoDB.
    if (!fields.has(field)) return field;
    const renamed = names.field(name, field);
    gone ||= renamed === undefined;
    return renamed ?? field;
  });
  return gone ? undefined : followed;
}

function followAll(columns: readonly string[], collection: string, names: Naming): readonly string[] | undefined {
  const followed = columns.map((column) => names.field(collection, column));
  return followed.every((column) => column !== undefined) ? followed : undefined;
}
