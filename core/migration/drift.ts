import { isDeepStrictEqual } from 'node:util';
import type { Connection, UnsupportedObject, WholeCatalog } from '../dialect.ts';
import { describeDifferences } from '../schema/diff.ts';
import type { Collection, SchemaModel } from '../schema/model.ts';

/** The catalog, and what of it the model does not contain, in as few queries as the engine allows. */
export const introspectWhole = async (connection: Connection): Promise<WholeCatalog> =>
  (await connection.introspectWhole?.()) ?? {
    model: await connection.introspect(),
    unsupported: await connection.unsupportedObjects(),
  };

/** Repeated normalization reaches a fixed point after two or three rounds. */
const MAX_ROUNDS = 4;

export interface SchemaPair {
  readonly expected: SchemaModel;
  readonly found: SchemaModel;
}

/**
 * An expected model and one that was read from a catalog, both as the server spells them: they mean the same if they are
 * equal. A server may rewrite an expression that it has rewritten once, so both are normalized until they agree or stop
 * changing.
 */
export async function inServerSpelling(connection: Connection, { expected, found }: SchemaPair): Promise<SchemaPair> {
  let normalExpected = await connection.normalize(expected);
  let normalFound = found;
  for (let round = 1; round < MAX_ROUNDS && !isDeepStrictEqual(normalExpected, normalFound); round += 1) {
    const common = new Map([...normalFound].filter(([name]) => normalExpected.has(name)));
    const previous = [normalExpected, normalFound];
    normalFound = new Map([...normalFound, ...(await connection.normalize(common))]);
    if (isDeepStrictEqual(normalExpected, normalFound)) break;
    normalExpected = await connection.normalize(normalExpected);
    if (isDeepStrictEqual([normalExpected, normalFound], previous)) break;
  }
  return { expected: normalExpected, found: normalFound };
}

/** Describes where the catalog differs from the model; empty if they agree. */
export async function drift(connection: Connection, expected: SchemaModel, found: SchemaModel): Promise<string[]> {
  const normal = await inServerSpelling(connection, { expected, found });
  return isDeepStrictEqual(normal.expected, normal.found) ? [] : describeDifferences(normal.expected, normal.found);
}

/** The catalog without foreign keys to tables that the model does not contain: `svc db schema pull` omits them too. */
export function withoutUnknownReferences(found: SchemaModel, model: SchemaModel): SchemaModel {
  return new Map([...found].map(([name, collection]) => [name, withoutReferences(collection, model)]));
}

function withoutReferences(collection: Collection, model: SchemaModel): Collection {
  const known = model.get(collection.name)?.constraints;
  const constraints = [...collection.constraints].filter(
    ([name, constraint]) =>
      constraint.type !== 'foreignKey' || model.has(constraint.references.table) || known?.has(name),
  );
  return constraints.length === collection.constraints.size
    ? collection
    : { ...collection, constraints: new Map(constraints) };
}

/**
 * The catalog with the indexes and constraints of the model that still exist, in a form that was not read. Keeping them
 * prevents a migration from dropping them.
 */
export function withUnreadObjects(
  found: SchemaModel,
  model: SchemaModel,
  unsupported: readonly UnsupportedObject[],
): SchemaModel {
  const result = new Map(found);
  for (const { collection: table = '', name = '' } of unsupported) {
    const [collection, known] = [result.get(table), model.get(table)];
    if (!collection || !known) continue;
    const index = known.indexes.get(name);
    const constraint = known.constraints.get(name);
    result.set(table, {
      ...collection,
      ...(index?.columns.every((column) => collection.fields.has(column.name)) && {
        indexes: new Map(collection.indexes).set(name, index),
      }),
      ...(constraint?.columns.every((column) => collection.fields.has(column)) && {
        constraints: new Map(collection.constraints).set(name, constraint),
      }),
    });
  }
  return result;
}
