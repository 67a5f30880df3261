import type { Collection, SchemaModel } from './model.ts';

/**
 * A model that changes in place and knows who points at whom, so that replaying stays linear in the number of
 * operations however many tables there are.
 */
export class Draft extends Map<string, Collection> {
  /** By table, the tables with foreign keys to it, itself included. */
  #referrers: Map<string, Set<string>> | undefined;

  // Map's own constructor would call `set` before the private field is there.
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

  referrers(table: string): readonly string[] {
    if (!this.#referrers) {
      this.#referrers = new Map();
      for (const collection of this.values()) this.#link(collection);
    }
    return [...(this.#referrers.get(table) ?? [])];
  }

  #link(collection: Collection): void {
    for (const target of targets(collection)) {
      const known = this.#referrers?.get(target);
      if (known) known.add(collection.name);
      else this.#referrers?.set(target, new Set([collection.name]));
    }
  }

  #unlink(name: string): void {
    const before = this.get(name);
    if (before) for (const target of targets(before)) this.#referrers?.get(target)?.delete(name);
  }
}

/** Tables a table's foreign keys point at. */
export function targets(collection: Collection): Set<string> {
  const found = new Set<string>();
  for (const constraint of collection.constraints.values()) {
    if (constraint.type === 'foreignKey') found.add(constraint.references.table);
  }
  return found;
}

/** Tables with foreign keys to a table, itself included. */
export function referrers(model: SchemaModel, table: string): readonly string[] {
  if (model instanceof Draft) return model.referrers(table);
  return [...model.values()].filter((collection) => targets(collection).has(table)).map(({ name }) => name);
}
