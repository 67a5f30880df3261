import { isSvcError, type SvcError } from '../core/errors.ts';
import { isPlainObject } from '../core/json.ts';
import type { Declaration } from '../core/schema/declaration.ts';
import { type Declared, declare } from '../core/schema/declare.ts';
import type { SchemaModel } from '../core/schema/model.ts';
import type { Decisions } from '../core/schema/rename.ts';

/** What a database is to be. */
export interface SchemaEntry {
  readonly db: string;
  /** Fields of a table as they are written; undefined where there is no such table. */
  fieldsOf(table: string): readonly string[] | undefined;
  /** The tables in normal form, against what the migration files make and what was decided about names. */
  declare(previous: SchemaModel, decisions?: Decisions): Promise<Declared>;
}

/** An entry out of a declaration; `located` tells a refusal where it stands. */
export function schemaEntry(
  db: string,
  declaration: Declaration,
  located?: (error: SvcError) => Promise<SvcError>,
): SchemaEntry {
  return {
    db,
    fieldsOf(table) {
      const fields: unknown = Object.hasOwn(declaration.tables, table) ? declaration.tables[table] : undefined;
      return isPlainObject(fields) ? Object.keys(fields) : undefined;
    },
    async declare(previous, decisions) {
      try {
        return declare(declaration, previous, decisions);
      } catch (error) {
        throw located && isSvcError(error) ? await located(error) : error;
      }
    },
  };
}
