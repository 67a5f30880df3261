import { isDeepStrictEqual } from 'node:util';
import { SvcError } from '../core/errors.ts';
import { type Declaration, declarationOf } from '../core/schema/declaration.ts';
import type { Collection, SchemaModel } from '../core/schema/model.ts';

export interface Pulled {
  readonly declaration: Declaration;
  /** Tables that a schema file cannot declare, because they have no primary key. */
  readonly leftOut: readonly string[];
}

/**
 * A database as the schema file would declare it. What the migration files make and the catalog shows unchanged keeps
 * the words of the files: a catalog forgets some of them.
 */
export function pulled(found: SchemaModel, files: SchemaModel, filesAsSeen: SchemaModel): Pulled {
  const model = new Map<string, Collection>();
  const leftOut: string[] = [];
  for (const [name, collection] of found) {
    const known = files.get(name);
    if (known && isDeepStrictEqual(filesAsSeen.get(name), collection)) model.set(name, known);
    else if (hasPrimaryKey(collection)) model.set(name, collection);
    else leftOut.push(name);
  }
  for (const collection of model.values()) refuseReference(collection, leftOut);
  return { declaration: declarationOf(model), leftOut };
}

function hasPrimaryKey({ fields, constraints }: Collection): boolean {
  return (
    [...fields.values()].some((field) => field.primaryKey) ||
    [...constraints.values()].some(({ type }) => type === 'primaryKey')
  );
}

function refuseReference({ name, constraints }: Collection, leftOut: readonly string[]): void {
  for (const constraint of constraints.values()) {
    if (constraint.type !== 'foreignKey' || !leftOut.includes(constraint.references.table)) continue;
    const { table } = constraint.references;
    throw new SvcError('schema_invalid', `The table "${table}" has no primary key and cannot be pulled.`, {
      why: `The foreign key "${constraint.name}" of "${name}" points at it, so it cannot be left out either.`,
      state: 'Nothing was written.',
      next: [`Give "${table}" a primary key, then pull again.`],
    });
  }
}
