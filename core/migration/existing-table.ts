import { SvcError } from '../errors.ts';
import { defineCollection } from '../schema/define.ts';
import type { Collection, SchemaModel } from '../schema/model.ts';
import type { MutableSchema } from '../schema/mutable-schema.ts';
import type { CreateCollection, MigrationOperation } from '../schema/operation.ts';
import { drift } from './drift.ts';
import type { Target } from './target.ts';

/** An operation with `ifNotExists`: the table may be there already. */
export function allowsExisting(operation: MigrationOperation): operation is CreateCollection {
  return operation.type === 'createCollection' && operation.options?.sqlOptions?.ifNotExists === true;
}

/**
 * Whether the table of an `ifNotExists` operation exists; it is then in the model. Throws `table_differs` if its fields
 * differ. Adds it to `adopted` if another program created it and the catalog does not describe all of it.
 */
export async function matchesExisting(
  { connection }: Target,
  operation: CreateCollection,
  model: MutableSchema,
  adopted: Collection[] = [],
): Promise<boolean> {
  const found = await connection.introspect([operation.name]);
  if (!found.has(operation.name)) return false;
  const defined = defineCollection(operation);
  const differencesFrom = (one: SchemaModel) =>
    drift(connection, fieldsOnly(new Map([[operation.name, defined]])), fieldsOnly(one));
  let differences = await differencesFrom(found);
  const described = differences.length > 0 ? await connection.introspectAs?.(defined) : undefined;
  if (described) {
    differences = await differencesFrom(new Map([[operation.name, described]]));
    if (differences.length === 0) adopted.push(defined);
  }
  if (differences.length > 0) {
    throw new SvcError(
      'table_differs',
      `The table "${operation.name}" already exists and does not match the definition.`,
      {
        why: differences.join('; '),
        state: 'Nothing was changed.',
        next: ['Change the definition to match the table, or use another name.'],
      },
    );
  }
  if (!model.has(operation.name)) model.set(operation.name, defined);
  return true;
}

/** createCollection defines fields only: indexes and constraints come from operations of their own. */
function fieldsOnly(model: SchemaModel): SchemaModel {
  return new Map(
    [...model].map(([name, collection]) => [name, { ...collection, indexes: new Map(), constraints: new Map() }]),
  );
}
