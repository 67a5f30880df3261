import { isObjectOperation } from '../../../core/schema/database-object.ts';
import type { MigrationOperation } from '../../../core/schema/operation.ts';

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

  /** After an operation; a raw statement and an object are not followed. */
  follow(operation: MigrationOperation): void {
    if (isObjectOperation(operation) || operation.type === 'raw') return;
    if (operation.type === 'createCollection') {
      this.forget(operation.name);
      return;
    }
    const table = this.table(operation.collection);
    switch (operation.type) {
      case 'dropCollection':
        this.forget(operation.collection);
        break;
      case 'renameCollection':
        this.rename(operation.collection, operation.to);
        break;
      case 'addField':
        table?.forget(operation.field.name);
        break;
      case 'dropField':
        table?.forget(operation.field);
        break;
      case 'renameField':
        table?.rename(operation.from, operation.to);
        break;
      case 'modifyField':
        table?.change(operation.field);
    }
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
  /** What all rows have in a column that the run added, as SQL. */
  readonly #values = new Map<string, string>();
  #areRowsUnknown = false;

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

  /** The column at the start, or the value of one that the run added, as SQL. Undefined if it is not certain what its rows have. */
  source(name: string, quoteIdentifier: (name: string) => string): string | undefined {
    const value = this.#values.get(name);
    if (value !== undefined) return value;
    const column = this.unchangedColumn(name);
    return column === undefined ? undefined : quoteIdentifier(column);
  }

  get areRowsUnknown(): boolean {
    return this.#areRowsUnknown;
  }

  /** After rows were added or any of their values changed. */
  changeRows(): void {
    this.#areRowsUnknown = true;
    this.#values.clear();
  }

  hasKnownValue(name: string): boolean {
    return this.#values.has(name);
  }

  change(name: string): void {
    this.#changed.add(name);
    this.#values.delete(name);
  }

  /** After a column was added whose rows all have the value; without one, they have any. */
  add(name: string, value: string | undefined): void {
    this.forget(name);
    if (value !== undefined) this.#values.set(name, value);
  }

  /** After a column of this name was added or dropped. */
  forget(name: string): void {
    this.#columns.set(name, undefined);
    this.#changed.delete(name);
    this.#values.delete(name);
  }

  rename(from: string, to: string): void {
    const column = this.column(from);
    const value = this.#values.get(from);
    const isChanged = this.#changed.delete(from);
    this.forget(from);
    this.#columns.set(to, column);
    if (isChanged) this.#changed.add(to);
    if (value !== undefined) this.#values.set(to, value);
  }
}
