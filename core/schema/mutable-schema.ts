import type { Collection, SchemaModel } from './model.ts';

/** The database-wide names of a table and its objects on one engine. */
type NamesOf = (collection: Collection) => readonly string[];

/**
 * A model that changes in place. It indexes its foreign keys by referenced table, and its tables by database-wide name, so
 * that the time to apply operations does not grow with the number of tables.
 */
export class MutableSchema extends Map<string, Collection> {
  /** Referring tables by referenced table, including self-references. */
  #referrers: Map<string, Set<string>> | undefined;
  #names: { readonly namesOf: NamesOf; readonly tables: Map<string, Set<string>> } | undefined;

  // The constructor of Map would call `set` before the private fields are initialized.
  constructor(model: SchemaModel = new Map()) {
    super();
    for (const [name, collection] of model) this.set(name, collection);
  }

  override set(name: string, collection: Collection): this {
    this.#unlink(name);
    this.#link(collection);
    return super.set(name, collection);
  }

  override delete(name: string): boolean {
    this.#unlink(name);
    return super.delete(name);
  }

  override clear(): void {
    this.#referrers = undefined;
    this.#names = undefined;
    super.clear();
  }

  referringTables(table: string): readonly string[] {
    if (!this.#referrers) {
      this.#referrers = new Map();
      for (const collection of this.values()) addTo(this.#referrers, referencedTables(collection), collection.name);
    }
    return [...(this.#referrers.get(table) ?? [])];
  }

  /** The tables that use a database-wide name. */
  tablesNamed(name: string, namesOf: NamesOf): readonly string[] {
    if (this.#names?.namesOf !== namesOf) {
      this.#names = { namesOf, tables: new Map() };
      for (const collection of this.values()) addTo(this.#names.tables, namesOf(collection), collection.name);
    }
    return [...(this.#names.tables.get(name) ?? [])];
  }

  #link(collection: Collection): void {
    if (this.#referrers) addTo(this.#referrers, referencedTables(collection), collection.name);
    if (this.#names) addTo(this.#names.tables, this.#names.namesOf(collection), collection.name);
  }

  #unlink(name: string): void {
    const before = this.get(name);
    if (!before) return;
    if (this.#referrers) for (const target of referencedTables(before)) this.#referrers.get(target)?.delete(name);
    if (this.#names) for (const taken of this.#names.namesOf(before)) this.#names.tables.get(taken)?.delete(name);
  }
}

function addTo(index: Map<string, Set<string>>, keys: Iterable<string>, table: string): void {
  for (const key of keys) {
    const known = index.get(key);
    if (known) known.add(table);
    else index.set(key, new Set([table]));
  }
}

/** The tables referenced by the foreign keys of a table. */
export function referencedTables(collection: Collection): Set<string> {
  const found = new Set<string>();
  for (const constraint of collection.constraints.values()) {
    if (constraint.type === 'foreignKey') found.add(constraint.references.table);
  }
  return found;
}

/** The tables with foreign keys to a table, including itself. */
export function referringTables(model: SchemaModel, table: string): readonly string[] {
  // per copy: only faster.
  if (model instanceof MutableSchema) return model.referringTables(table);
  return [...model.values()].filter((collection) => referencedTables(collection).has(table)).map(({ name }) => name);
}
