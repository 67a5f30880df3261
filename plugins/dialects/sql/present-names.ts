import type { Operation } from '../../../core/schema/operation.ts';

/** The tables and columns of a run under the names that they have before its first statement. */
export class PresentNames {
  /** By the name at this point of the run; undefined for a table that the run created, dropped or renamed. */
  readonly #tables = new Map<string, PresentTable | undefined>();

  /** Undefined for a table that the run creates. */
  table(name: string): PresentTable | undefined {
    if (!this.#tables.has(name)) this.#tables.set(name, new PresentTable(name));
    return this.#tables.get(name);
  }

  /** After a table of this name was created or dropped. */
  forget(name: string): void {
    this.#tables.set(name, undefined);
  }

  /** After an operation. */
  follow(operation: Operation): void {
    if (operation.type === 'createCollection') this.forget(operation.name);
    else if (operation.type === 'dropCollection') this.forget(operation.collection);
    else if (operation.type === 'renameCollection') this.rename(operation.collection, operation.to);
    else if (operation.type === 'addField') this.table(operation.collection)?.forget(operation.field.name);
    else if (operation.type === 'dropField') this.table(operation.collection)?.forget(operation.field);
    else if (operation.type === 'renameField') this.table(operation.collection)?.rename(operation.from, operation.to);
  }

  rename(from: string, to: string): void {
    const table = this.table(from);
    this.#tables.set(from, undefined).set(to, table);
  }
}

export class PresentTable {
  readonly name: string;
  /** By the name at this point of the run; undefined for a column that the run added, dropped or renamed. */
  readonly #columns = new Map<string, string | undefined>();
  /** Columns whose definition or values the run has changed, by their names at this point. */
  readonly #changed = new Set<string>();

  constructor(name: string) {
    this.name = name;
  }

  /** Undefined for a column that the run adds. */
  column(name: string): string | undefined {
    return this.#columns.has(name) ? this.#columns.get(name) : name;
  }

  /** Like `column`, but also undefined for one whose definition or values the run changes. */
  unchangedColumn(name: string): string | undefined {
    return this.#changed.has(name) ? undefined : this.column(name);
  }

  change(name: string): void {
    this.#changed.add(name);
  }

  /** After a column of this name was added or dropped. */
  forget(name: string): void {
    this.#columns.set(name, undefined);
    this.#changed.delete(name);
  }

  rename(from: string, to: string): void {
    const column = this.column(from);
    const isChanged = this.#changed.delete(from);
    this.#columns.set(from, undefined).set(to, column);
    if (isChanged) this.#changed.add(to);
  }
}
