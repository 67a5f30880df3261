import type { Dialect, UnsupportedObject } from '../../core/dialect.ts';
import { describeError, isSvcError } from '../../core/errors.ts';
import { withUnreadObjects } from '../../core/migration/drift.ts';
import { type Declaration, declarationOf } from '../../core/schema/declaration/declaration.ts';
import type { Collection, Constraint, SchemaModel } from '../../core/schema/model.ts';
import { generate } from './generate.ts';
import { schemaEntry } from './schema-file.ts';

export interface DeclarableSchema {
  readonly declaration: Declaration;
  /** Tables that a schema file cannot declare. */
  readonly leftOut: readonly string[];
  /** Tables that a schema file can no longer declare. They keep the definition of the migration files. */
  readonly kept: readonly string[];
  /** Each omission with its reason. */
  readonly warnings: readonly string[];
}

export interface FoundSchema {
  readonly dialect: Dialect;
  readonly found: SchemaModel;
  /** The schema that the migration files produce. */
  readonly files: SchemaModel;
  /** What `found` does not contain, or only approximately. */
  readonly unsupported: readonly UnsupportedObject[];
  /** Whether a table matches the migration files. The catalog normalizes definitions, so it cannot be compared directly. */
  isUnchanged(collection: Collection): Promise<boolean>;
  /** Takes each table that the migration files do not have as one that can be declared, without trying it. */
  readonly untried?: boolean;
}

/**
 * Declares a database as a schema file, keeping the definitions of migration files for tables that match them, and for
 * tables, indexes and constraints that still exist but can no longer be declared: a migration would drop them.
 */
export async function declarableSchema(schema: FoundSchema): Promise<DeclarableSchema> {
  const { dialect, files, unsupported, isUnchanged, untried = false } = schema;
  const found = withUnreadObjects(schema.found, files, unsupported);
  const tables = new Map<string, Collection>();
  const kept: string[] = [];
  const warnings: string[] = [];
  const keep = (known: Collection, why: string) => {
    tables.set(known.name, known);
    kept.push(known.name);
    warnings.push(`The table "${known.name}" keeps the definition of its migration files: ${why}`);
  };
  for (const [name, collection] of found) {
    const known = files.get(name);
    if (known && (await isUnchanged(collection))) {
      tables.set(name, known);
      continue;
    }
    const why = untried && !known ? undefined : await whyUndeclarable(collection, dialect);
    if (why === undefined) tables.set(name, collection);
    else if (known) keep(known, why);
    else warnings.push(`The table "${name}" is left out: ${why}`);
  }
  for (const { collection } of unsupported) {
    const known = collection === undefined || tables.has(collection) ? undefined : files.get(collection);
    if (known) keep(known, 'it still exists, in a form that svc cannot create.');
  }
  const model = new Map([...tables].map(([name, table]) => [name, withoutDanglingKeys(table, tables, warnings)]));
  const leftOut = [...found.keys()].filter((name) => !tables.has(name));
  return { declaration: declarationOf(model), leftOut, kept, warnings };
}

/** Why a schema file cannot declare the table; undefined if it can. */
export async function whyUndeclarable(collection: Collection, dialect: Dialect): Promise<string | undefined> {
  const alone = withConstraints(collection, ({ type }) => type !== 'foreignKey');
  const entry = schemaEntry('main', declarationOf(new Map([[collection.name, alone]])));
  try {
    await generate({ dialect, files: [], entry, now: new Date(0), rename: [], drop: [] });
    return undefined;
  } catch (error) {
    if (!isSvcError(error) || error.code === 'plugin_invalid') throw error;
    return `${describeError(error)} Change that in the database, then pull again.`;
  }
}

function withConstraints(collection: Collection, keep: (constraint: Constraint) => boolean): Collection {
  return { ...collection, constraints: new Map([...collection.constraints].filter(([, one]) => keep(one))) };
}

function withoutDanglingKeys(collection: Collection, tables: SchemaModel, warnings: string[]): Collection {
  return withConstraints(collection, (constraint) => {
    if (constraint.type !== 'foreignKey') return true;
    const { table, columns } = constraint.references;
    const target = tables.get(table);
    const missing = columns.find((column) => !target?.fields.has(column));
    if (missing === undefined) return true;
    const why = target
      ? `"${table}.${missing}", which its migration files do not contain`
      : `"${table}", which is left out`;
    warnings.push(`The foreign key "${constraint.name}" of "${collection.name}" is left out: it references ${why}.`);
    return false;
  });
}
