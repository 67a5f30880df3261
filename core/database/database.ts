import type { UpdateResult } from '../dialect.ts';
import type { Adapter } from './adapter.ts';
import { AutomaticMigrations } from './automatic.ts';
import { SchemaOperations } from './schema.ts';
import { type UpdateRequest, updateJob } from './update.ts';

/** A connected database. */
export class Database {
  /** Every call makes a migration, applies it at once and records it. */
  readonly schema: SchemaOperations;
  readonly #adapter: Adapter;

  constructor(adapter: Adapter) {
    this.#adapter = adapter;
    this.schema = new SchemaOperations(new AutomaticMigrations(adapter));
  }

  /** What a `MigrationEngine` needs. */
  getAdapter(): Adapter {
    return this.#adapter;
  }

  /**
   * Changes rows, apart from schema migrations.
   * @example await db.update({ table: 'users', data: { name: { $CONCAT: ['first', ' ', 'last'] } }, where: { name: null } })
   */
  async update(request: UpdateRequest): Promise<UpdateResult> {
    return this.#adapter.connection.update(await updateJob(request, this.#adapter.connection));
  }

  close(): Promise<void> {
    return this.#adapter.connection.close();
  }
}
