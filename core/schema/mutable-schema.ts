import type { Collection, SchemaModel } from './model.ts';

/**
 * A model that changes in place and indexes its foreign keys by referenced table, so that the time to apply operations
 * does not grow with the number of tables.
 */
export class MutableSchema extends Map<string, Collection> {
  /** Referring tables by referenced table, including self-references. */
  #referrers: Map<string, Set<string>> | undefined;

  // The constructor of Map would call `set` before the private field is initialized.
  constructor(model: SchemaModel = new Map()) {
    super();
    for (const [name, collection] of model) this.set(name, collection);
  }

  override set(name: string, collection: Collection): this {
    if (this.#referrers) {
      this.#unlink(name);
      this.#link(collection);
    }
    return super.set(name, collection);
  }

  override delete(name: string): boolean {
    if (this.#referrers) this.#unlink(name);
    return super.delete(name);
  }

  override clear(): void {
    this.#referrers = undefined;
    super.clear();
  }

  referringTables(table: string): readonly string[] {
    if (!this.#referrers) {
      this.#referrers = new Map();
      for (const collection of this.values()) this.#link(collection);
    }
    return [...(this.#referrers.get(table) ?? [])];
  }

  #link(collection: Collection): void {
    for (const target of referencedTables(collection)) {
      const known = this.#referrers?.get(target);
      if (known) known.add(collection.name);
      else this.#referrers?.set(target, new Set([collection.name]));
    }
  }

  #unlink(name: string): void {
    const before = this.get(name);
    if (before) for (const target of referencedTables(before)) this.#referrers?.get(target)?.delete(name);
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
