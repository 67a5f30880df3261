import { SvcError } from '../../errors.ts';
import type { Collection, Constraint, Index, SchemaModel } from '../model.ts';
import { renameFieldsInOptions, type TableOptions } from '../options.ts';

/** Renames specified by the user. They are never guessed. */
export interface Renames {
  /** Old name to new. */
  readonly collections: ReadonlyMap<string, string>;
  /** By new table name: old field name to new. */
  readonly fields: ReadonlyMap<string, ReadonlyMap<string, string>>;
}

export const NO_RENAMES: Renames = { collections: new Map(), fields: new Map() };

/** Looks up the new name for an old one; undefined if it was removed. */
export interface NameMap {
  readonly collection: (old: string) => string | undefined;
  readonly field: (oldCollection: string, old: string) => string | undefined;
}

/**
 * Maps old names to new ones: renamed, or unchanged. An old name counts as removed if a rename assigns it to something
 * else.
 */
export function mapNames(from: SchemaModel, to: SchemaModel, renames: Renames): NameMap {
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

/** Throws for a rename from an unknown name, to an unknown name, or to a name that another rename uses. */
export function assertRenames(from: SchemaModel, to: SchemaModel, renames: Renames): void {
  assertEachRename(renames.collections, from, to, 'table');
  const origins = new Map([...renames.collections].map(([old, name]) => [name, old]));
  for (const [name, fields] of renames.fields) {
    const before = from.get(origins.get(name) ?? name);
    const after = to.get(name);
    if (!before || !after) {
      throw new SvcError('collection_unknown', `Fields of "${name}" cannot be renamed: the table is dropped or new.`);
    }
    assertEachRename(fields, before.fields, after.fields, `field of "${name}"`);
  }
}

function assertEachRename(
  renames: ReadonlyMap<string, string>,
  from: { has(name: string): boolean },
  to: { has(name: string): boolean },
  kind: string,
): void {
  const targets = new Set<string>();
  for (const [old, name] of renames) {
    const why = !from.has(old)
      ? `"${old}" does not exist in the old schema.`
      : !to.has(name)
        ? `"${name}" does not exist in the new schema.`
        : targets.has(name)
          ? `Something else is also renamed to "${name}".`
          : undefined;
    if (why) throw new SvcError('schema_invalid', `The ${kind} "${old}" cannot be renamed to "${name}".`, { why });
    targets.add(name);
  }
}

/** An index with renamed columns; undefined if a column was removed. */
export function renameIndex(index: Index, collection: string, names: NameMap): Index | undefined {
  const columns = index.columns.map((column) => ({ ...column, name: names.field(collection, column.name) }));
  return columns.every(isNamed) ? { ...index, columns } : undefined;
}

function isNamed<T extends { readonly name: string | undefined }>(column: T): column is T & { readonly name: string } {
  return column.name !== undefined;
}

/** A constraint with renamed columns and tables; undefined if one was removed. */
export function renameConstraint(constraint: Constraint, collection: string, names: NameMap): Constraint | undefined {
  const columns = renameColumns(constraint.columns, collection, names);
  if (!columns) return undefined;
  if (constraint.type === 'check') return { ...constraint, columns: [...columns].sort() };
  if (constraint.type !== 'foreignKey') return { ...constraint, columns };
  const table = names.collection(constraint.references.table);
  const target = renameColumns(constraint.references.columns, constraint.references.table, names);
  if (table === undefined || !target) return undefined;
  return { ...constraint, columns, references: { ...constraint.references, table, columns: target } };
}

/** Options with renamed fields; undefined if a field was removed. */
export function renameOptions({ name, fields, options }: Collection, names: NameMap): TableOptions | undefined {
  let removed = false;
  const renamedOptions = renameFieldsInOptions(options, (field) => {
    // Options may name undeclared fields: keys in DynamoDB.
    if (!fields.has(field)) return field;
    const renamed = names.field(name, field);
    removed ||= renamed === undefined;
    return renamed ?? field;
  });
  return removed ? undefined : renamedOptions;
}

function renameColumns(columns: readonly string[], collection: string, names: NameMap): readonly string[] | undefined {
  const renamed = columns.map((column) => names.field(collection, column));
  return renamed.every((column) => column !== undefined) ? renamed : undefined;
}

/**
 * Orders renames so that each new name is free. A cycle (a to b, b to a) uses a temporary name. `names` are all names
 * before the first rename.
 */
export function orderedRenames(
  renames: Iterable<readonly [from: string, to: string]>,
  names: Iterable<string>,
): [from: string, to: string][] {
  const open = new Map([...renames].filter(([from, to]) => from !== to));
  const taken = new Set(names);
  const steps: [string, string][] = [];
  const move = (from: string, to: string) => {
    steps.push([from, to]);
    taken.delete(from);
    taken.add(to);
    open.delete(from);
  };
  while (open.size > 0) {
    const before = open.size;
    for (const [from, to] of open) if (!taken.has(to)) move(from, to);
    const [first] = open;
    if (open.size < before || !first) continue;
    const temporary = temporaryName(taken, new Set(open.values()));
    move(first[0], temporary);
    open.set(temporary, first[1]);
  }
  return steps;
}

function temporaryName(...taken: readonly ReadonlySet<string>[]): string {
  for (let count = 1; ; count++) {
    const name = `svc_rename_${count}`;
    if (!taken.some((names) => names.has(name))) return name;
  }
}
