import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { isSvcError, SvcError } from '../../core/errors.ts';
import { isPlainObject } from '../../core/json.ts';
import { nearest } from '../../core/nearest.ts';
import type { Declaration } from '../../core/schema/declaration/declaration.ts';
import { type ResolvedDeclaration, resolveDeclaration } from '../../core/schema/declaration/resolve-declaration.ts';
import type { SchemaModel } from '../../core/schema/model.ts';
import { derivedNameLimit, type NameLimit } from '../../core/schema/names.ts';
import type { RenameDecisions } from '../../core/schema/rename/undecided.ts';
import { type Path, problemText, type Shape, shapeProblems } from '../../core/validate-shape.ts';
import { isAbsent, readText } from '../load/path-problem.ts';
import { formatJson, type JsonSource, locationOf, parseJson } from './json-text.ts';
import type { NewFile } from './write-files.ts';

/** Relative to the folder of the configuration. */
export const SCHEMA_FILE = 'svc/database/schema.json';

const PART_SHAPE: Shape = { map: 'any' };
const ENTRIES_SHAPE: Shape = {
  list: {
    properties: { db: 'string', tables: PART_SHAPE, indexes: PART_SHAPE, constraints: PART_SHAPE, options: PART_SHAPE },
    required: ['db', 'tables'],
  },
};

type WrittenEntry = Declaration & { readonly db: string };

/** Reads the schema file's entries by database tag. Throws `schema_missing`, `schema_invalid`, `database_unknown`. */
export async function readSchemaFile(root: string, databases: readonly string[]): Promise<Map<string, SchemaEntry>> {
  const source = readSource(root);
  const entries = new Map<string, SchemaEntry>();
  for (const [index, { db, ...declaration }] of (await parseEntries(source)).entries()) {
    await assertEntry(db, databases, entries, source, [index, 'db']);
    const locate = async (error: SvcError): Promise<SvcError> => {
      const { path } = error.details;
      return error.with({ where: await locationOf(source, [index, ...(Array.isArray(path) ? (path as Path) : [])]) });
    };
    entries.set(db, schemaEntry(db, declaration, locate));
  }
  return entries;
}

/** The schema file with one database's entry replaced by a declaration. */
export async function schemaFileWith(root: string, db: string, declaration: Declaration): Promise<NewFile> {
  const entry: WrittenEntry = { db, ...declaration };
  if (!existsSync(join(root, SCHEMA_FILE))) return { file: SCHEMA_FILE, text: formatJson([entry]) };
  const entries = await parseEntries(readSource(root));
  const at = entries.findIndex((one) => one.db === db);
  return { file: SCHEMA_FILE, text: formatJson(at < 0 ? [...entries, entry] : entries.with(at, entry)) };
}

async function parseEntries(source: JsonSource): Promise<readonly WrittenEntry[]> {
  const value = await parseJson(source);
  const [problem] = shapeProblems(value, ENTRIES_SHAPE);
  if (!problem) return value as readonly WrittenEntry[];
  throw new SvcError('schema_invalid', `${SCHEMA_FILE} is not a list of databases and their tables.`, {
    why: problemText(problem),
    next: ['An entry is { "db": "<tag>", "tables": { "<table>": { "<field>": { "type": "…" } } } }.'],
    where: await locationOf(source, problem.path),
  });
}

function readSource(root: string): JsonSource {
  try {
    return { file: SCHEMA_FILE, text: readText(join(root, SCHEMA_FILE)), code: 'schema_invalid' };
  } catch (error) {
    if (!isAbsent(join(root, SCHEMA_FILE), error)) throw error;
    throw new SvcError('schema_missing', `${SCHEMA_FILE} does not exist.`, {
      why: 'It declares the tables that migrations are generated from.',
      next: [
        'For a new table, write it: [{ "db": "<tag>", "tables": { "notes": { "id": { "type": "uuid", "primaryKey": true } } } }]',
        'For a database that has tables: svc db schema pull',
      ],
      where: join(root, SCHEMA_FILE),
    });
  }
}

async function assertEntry(
  db: string,
  databases: readonly string[],
  known: ReadonlyMap<string, unknown>,
  source: JsonSource,
  path: Path,
): Promise<void> {
  if (!databases.includes(db)) {
    const near = nearest(db, databases);
    throw new SvcError('database_unknown', `${SCHEMA_FILE} declares tables of "${db}", which is not configured.`, {
      why: `Configured: ${databases.join(', ') || 'none'}.`,
      next: [near ? `Did you mean "${near}"?` : `Add databases.${db} to the configuration.`],
      where: await locationOf(source, path),
    });
  }
  if (known.has(db)) {
    throw new SvcError('schema_invalid', `${SCHEMA_FILE} has two entries for "${db}".`, {
      next: ['Put the tables of a database into one entry.'],
      where: await locationOf(source, path),
    });
  }
}

/** The declared schema of one database. */
export interface SchemaEntry {
  readonly db: string;
  /** The declared field names of a table; undefined if the table is not declared. */
  fieldsOf(table: string): readonly string[] | undefined;
  /**
   * Resolves the declaration against the schema of the migration files and the rename decisions. `names` are those of the
   * dialect: names that svc derives fit them.
   */
  declare(previous: SchemaModel, decisions?: RenameDecisions, names?: NameLimit): Promise<ResolvedDeclaration>;
}

/** Creates an entry from a declaration; `locate` adds the file location to its errors. */
export function schemaEntry(
  db: string,
  declaration: Declaration,
  locate?: (error: SvcError) => Promise<SvcError>,
): SchemaEntry {
  return {
    db,
    fieldsOf(table) {
      const fields: unknown = Object.hasOwn(declaration.tables, table) ? declaration.tables[table] : undefined;
      return isPlainObject(fields) ? Object.keys(fields) : undefined;
    },
    async declare(previous, decisions, names) {
      try {
        return resolveDeclaration(declaration, previous, decisions, names && derivedNameLimit(names));
      } catch (error) {
        throw locate && isSvcError(error) ? await locate(error) : error;
      }
    },
  };
}
