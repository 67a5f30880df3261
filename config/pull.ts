import type { Dialect } from '../core/dialect.ts';
import { isSvcError, sentences } from '../core/errors.ts';
import { type Declaration, declarationOf } from '../core/schema/declaration.ts';
import type { Collection, Constraint, SchemaModel } from '../core/schema/model.ts';
import { generate } from './generate.ts';
import { schemaEntry } from './schema-entry.ts';

export interface Pulled {
  readonly declaration: Declaration;
  /** Tables that a schema file cannot declare. */
  readonly leftOut: readonly string[];
  /** What is left out and why, for people. */
  readonly warnings: readonly string[];
}

export interface Readings {
  readonly dialect: Dialect;
  readonly found: SchemaModel;
  /** What the migration files make. */
  readonly files: SchemaModel;
  /** Whether a table is what the migration files make of it: a catalog forgets some of their words. */
  same(collection: Collection): Promise<boolean>;
}

/** A database as the schema file would declare it, with the words of the migration files where they made it so. */
export async function pulled({ dialect, found, files, same }: Readings): Promise<Pulled> {
  const tables = new Map<string, Collection>();
  const warnings: string[] = [];
  for (const [name, collection] of found) {
    const known = files.get(name);
    if (known && (await same(collection))) {
      tables.set(name, known);
      continue;
    }
    const why = await undeclarable(collection, dialect);
    if (why === undefined) tables.set(name, collection);
    else warnings.push(`The table "${name}" is left out: ${why}`);
  }
  const model = new Map([...tables].map(([name, table]) => [name, withoutLost(table, tables, warnings)]));
  const leftOut = [...found.keys()].filter((name) => !tables.has(name));
  return { declaration: declarationOf(model), leftOut, warnings };
}

async function undeclarable(collection: Collection, dialect: Dialect): Promise<string | undefined> {
  if (!hasPrimaryKey(collection)) return 'it has no primary key. Give it one, then pull again.';
  const alone = only(collection, ({ type }) => type !== 'foreignKey');
  const entry = schemaEntry('main', declarationOf(new Map([[collection.name, alone]])));
  try {
    await generate({ dialect, files: [], entry, at: new Date(0), rename: [], drop: [] });
    return undefined;
  } catch (error) {
    if (!isSvcError(error)) throw error;
    return `${sentences(error)} Change that in the database, then pull again.`;
  }
}

function hasPrimaryKey({ fields, constraints }: Collection): boolean {
  return (
    [...fields.values()].some((field) => field.primaryKey) ||
    [...constraints.values()].some(({ type }) => type === 'primaryKey')
  );
}

function only(collection: Collection, keep: (constraint: Constraint) => boolean): Collection {
  return { ...collection, constraints: new Map([...collection.constraints].filter(([, one]) => keep(one))) };
}

function withoutLost(collection: Collection, tables: SchemaModel, warnings: string[]): Collection {
  return only(collection, (constraint) => {
    if (constraint.type !== 'foreignKey' || tables.has(constraint.references.table)) return true;
    const { table } = constraint.references;
    warnings.push(
      `The foreign key "${constraint.name}" of "${collection.name}" is left out: it points at "${table}", which is left out.`,
    );
    return false;
  });
}
