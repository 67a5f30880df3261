import type { UpdateResult } from '../dialect.ts';
import type { Target } from '../migration/target.ts';
import { AutomaticMigrations } from './automatic.ts';
import { SchemaOperations } from './schema.ts';
import { type UpdateRequest, updateJob } from './update.ts';

/** A connected database. */
export class Database {
  /** Every call creates a migration, applies it and records it. */
  readonly schema: SchemaOperations;
  readonly #target: Target;

  constructor(target: Target) {
    this.#target = target;
    this.schema = new SchemaOperations(new AutomaticMigrations(target));
  }

  /** The argument of `new MigrationEngine(...)`. */
  getAdapter(): Target {
    return this.#target;
  }

  /**
   * Updates rows. Not a migration: nothing is recorded in the history.
   * @example await db.update({ table: 'users', data: { name: { $CONCAT: ['first', ' ', 'last'] } }, where: { name: null } })
   */
  async update(request: UpdateRequest): Promise<UpdateResult> {
    return this.#target.connection.update(await updateJob(request, this.#target.connection));
  }

  close(): Promise<void> {
    return this.#target.connection.close();
  }
}
