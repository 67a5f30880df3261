import { isSvcError, type SvcError } from '../core/errors.ts';
import { isPlainObject } from '../core/json.ts';
import type { Declaration } from '../core/schema/declaration.ts';
import { type Declared, declare } from '../core/schema/declare.ts';
import type { SchemaModel } from '../core/schema/model.ts';
import type { UndecidedRename } from '../core/schema/rename.ts';

/** What a database is to be. */
export interface SchemaEntry {
  readonly db: string;
  /** Fields of a table as they are written; undefined where there is no such table. */
  fieldsOf(table: string): readonly string[] | undefined;
  /** The tables in normal form, against what the migration files make, with renames that were decided elsewhere. */
  declare(previous: SchemaModel, renames?: readonly UndecidedRename[]): Promise<Declared>;
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
    async declare(previous, renames = []) {
      try {
        return declare(renamed(declaration, renames), previous);
      } catch (error) {
        throw located && isSvcError(error) ? await located(error) : error;
      }
    },
  };
}

/** The declaration as if the decisions stood in it as `renamedFrom`. */
function renamed(declaration: Declaration, renames: readonly UndecidedRename[]): Declaration {
  if (renames.length === 0) return declaration;
  const tables = new Map(Object.entries(declaration.tables));
  const options = new Map(Object.entries(declaration.options ?? {}));
  for (const { kind, collection, from, to } of renames) {
    if (kind === 'collection') {
      options.set(to, { ...options.get(to), renamedFrom: from });
      continue;
    }
    const fields = new Map(Object.entries(tables.get(collection) ?? {}));
    const field = fields.get(to) ?? '';
    fields.set(to, { ...(typeof field === 'string' ? { type: field } : field), renamedFrom: from });
    tables.set(collection, Object.fromEntries(fields));
  }
  return { ...declaration, tables: Object.fromEntries(tables), options: Object.fromEntries(options) };
}
