import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SvcError } from '../core/errors.ts';
import { nearest } from '../core/nearest.ts';
import type { Declaration } from '../core/schema/declaration.ts';
import { type Path, problemText, type Shape, shapeProblems } from '../core/schema/shape.ts';
import { jsonText } from './json-layout.ts';
import { type JsonText, parseJsonText, placeOf } from './json-text.ts';
import type { NewFile } from './new-files.ts';
import { type SchemaEntry, schemaEntry } from './schema-entry.ts';

/** From the folder of the configuration. */
export const SCHEMA_FILE = 'svc/database/schema.json';

const PART: Shape = { map: 'any' };
const ENTRIES: Shape = {
  list: {
    properties: { db: 'string', tables: PART, indexes: PART, constraints: PART, options: PART },
    required: ['db', 'tables'],
  },
};

type Written = Declaration & { readonly db: string };

/** The entries of the schema file by database tag. Throws `schema_missing`, `schema_invalid`, `database_unknown`. */
export async function readSchemaFile(root: string, databases: readonly string[]): Promise<Map<string, SchemaEntry>> {
  const source = readSource(root);
  const entries = new Map<string, SchemaEntry>();
  for (const [index, { db, ...declaration }] of (await parsed(source)).entries()) {
    await refuseEntry(db, databases, entries, source, [index, 'db']);
    const located = async (error: SvcError): Promise<SvcError> => {
      const { path } = error.details;
      return error.with({ where: await placeOf(source, [index, ...(Array.isArray(path) ? (path as Path) : [])]) });
    };
    entries.set(db, schemaEntry(db, declaration, located));
  }
  return entries;
}

/** The schema file with a declaration in place of one database's entry; the other entries stay as they are. */
export async function schemaFileWith(root: string, db: string, declaration: Declaration): Promise<NewFile> {
  const entry: Written = { db, ...declaration };
  if (!existsSync(join(root, SCHEMA_FILE))) return { file: SCHEMA_FILE, text: jsonText([entry]) };
  const entries = await parsed(readSource(root));
  const at = entries.findIndex((one) => one.db === db);
  return { file: SCHEMA_FILE, text: jsonText(at < 0 ? [...entries, entry] : entries.with(at, entry)) };
}

async function parsed(source: JsonText): Promise<readonly Written[]> {
  const value = await parseJsonText(source);
  const [problem] = shapeProblems(value, ENTRIES);
  if (!problem) return value as readonly Written[];
  throw new SvcError('schema_invalid', `${SCHEMA_FILE} is not a list of databases with their tables.`, {
    why: problemText(problem),
    next: ['An entry is { "db": "<tag>", "tables": { "<table>": { "<field>": { "type": "…" } } } }.'],
    where: await placeOf(source, problem.path),
  });
}

function readSource(root: string): JsonText {
  try {
    return { file: SCHEMA_FILE, text: readFileSync(join(root, SCHEMA_FILE), 'utf8'), code: 'schema_invalid' };
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
    throw new SvcError('schema_missing', `There is no ${SCHEMA_FILE}.`, {
      why: 'It declares the tables that migrations are generated from.',
      next: ['svc init', 'For a database that has tables: svc db schema pull'],
      where: join(root, SCHEMA_FILE),
    });
  }
}

async function refuseEntry(
  db: string,
  databases: readonly string[],
  seen: ReadonlyMap<string, unknown>,
  source: JsonText,
  path: Path,
): Promise<void> {
  if (!databases.includes(db)) {
    const near = nearest(db, databases);
    throw new SvcError('database_unknown', `${SCHEMA_FILE} declares tables of "${db}", which is not configured.`, {
      why: `Configured: ${databases.join(', ') || 'none'}.`,
      next: [near ? `Did you mean "${near}"?` : `Add databases.${db} to the configuration.`],
      where: await placeOf(source, path),
    });
  }
  if (seen.has(db)) {
    throw new SvcError('schema_invalid', `${SCHEMA_FILE} has two entries for "${db}".`, {
      next: ['Put the tables of a database into one entry.'],
      where: await placeOf(source, path),
    });
  }
}
