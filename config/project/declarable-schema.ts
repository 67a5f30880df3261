import type { Dialect } from '../../core/dialect.ts';
import { describeError, isSvcError } from '../../core/errors.ts';
import { type Declaration, declarationOf } from '../../core/schema/declaration/declaration.ts';
import type { Collection, Constraint, SchemaModel } from '../../core/schema/model.ts';
import { generate } from './generate.ts';
import { schemaEntry } from './schema-file.ts';

export interface DeclarableSchema {
  readonly declaration: Declaration;
  /** Tables that a schema file cannot declare. */
  readonly leftOut: readonly string[];
  /** Each omission with its reason. */
  readonly warnings: readonly string[];
}

export interface FoundSchema {
  readonly dialect: Dialect;
  readonly found: SchemaModel;
  /** The schema that the migration files produce. */
  readonly files: SchemaModel;
  /** Whether a table matches the migration files. The catalog normalizes definitions, so it cannot be compared directly. */
  isUnchanged(collection: Collection): Promise<boolean>;
}

/** Declares a database as a schema file, keeping the definitions of migration files for tables that match them. */
export async function declarableSchema({ dialect, found, files, isUnchanged }: FoundSchema): Promise<DeclarableSchema> {
  const tables = new Map<string, Collection>();
  const warnings: string[] = [];
  for (const [name, collection] of found) {
    const known = files.get(name);
    if (known && (await isUnchanged(collection))) {
      tables.set(name, known);
      continue;
    }
    const why = await whyUndeclarable(collection, dialect);
    if (why === undefined) tables.set(name, collection);
    else warnings.push(`The table "${name}" is left out: ${why}`);
  }
  const model = new Map([...tables].map(([name, table]) => [name, withoutDanglingKeys(table, tables, warnings)]));
  const leftOut = [...found.keys()].filter((name) => !tables.has(name));
  return { declaration: declarationOf(model), leftOut, warnings };
}

async function whyUndeclarable(collection: Collection, dialect: Dialect): Promise<string | undefined> {
  if (!hasPrimaryKey(collection)) return 'it has no primary key. Add one, then pull again.';
  const alone = withConstraints(collection, ({ type }) => type !== 'foreignKey');
  const entry = schemaEntry('main', declarationOf(new Map([[collection.name, alone]])));
  try {
    await generate({ dialect, files: [], entry, now: new Date(0), rename: [], drop: [] });
    return undefined;
  } catch (error) {
    if (!isSvcError(error)) throw error;
    return `${describeError(error)} Change that in the database, then pull again.`;
  }
}

function hasPrimaryKey({ fields, constraints }: Collection): boolean {
  return (
    [...fields.values()].some((field) => field.primaryKey) ||
    [...constraints.values()].some(({ type }) => type === 'primaryKey')
  );
}

function withConstraints(collection: Collection, keep: (constraint: Constraint) => boolean): Collection {
  return { ...collection, constraints: new Map([...collection.constraints].filter(([, one]) => keep(one))) };
}

function withoutDanglingKeys(collection: Collection, tables: SchemaModel, warnings: string[]): Collection {
  return withConstraints(collection, (constraint) => {
    if (constraint.type !== 'foreignKey' || tables.has(constraint.references.table)) return true;
    const { table } = constraint.references;
    warnings.push(
      `The foreign key "${constraint.name}" of "${collection.name}" is left out: it references "${table}", which is left out.`,
    );
    return false;
  });
}
