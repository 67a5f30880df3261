import { isDeepStrictEqual } from 'node:util';
import type { Connection } from '../dialect.ts';
import { differences } from '../schema/differences.ts';
import type { Collection, SchemaModel } from '../schema/model.ts';

/** A server that spells its own words anew comes to rest after two or three rounds. */
const ROUNDS = 4;

/**
 * In words, where a catalog is not what a model makes; nothing where they agree. A server does not always read what it
 * spelled as the same words, so both sides are spelled until they meet or stay.
 */
export async function drift(connection: Connection, expected: SchemaModel, found: SchemaModel): Promise<string[]> {
  let ours = await connection.seen(expected);
  let theirs = found;
  for (let round = 1; round < ROUNDS && !isDeepStrictEqual(ours, theirs); round += 1) {
    const common = new Map([...theirs].filter(([name]) => ours.has(name)));
    const [before, other] = [ours, theirs];
    theirs = new Map([...theirs, ...(await connection.seen(common))]);
    if (isDeepStrictEqual(ours, theirs)) break;
    ours = await connection.seen(ours);
    if (isDeepStrictEqual([ours, theirs], [before, other])) break;
  }
  return isDeepStrictEqual(ours, theirs) ? [] : differences(ours, theirs);
}

/** What is found without the foreign keys to tables that the whole model does not know: a pull leaves them out. */
export function withoutForeign(found: SchemaModel, model: SchemaModel): SchemaModel {
  return new Map([...found].map(([name, collection]) => [name, withoutReferences(collection, model)]));
}

function withoutReferences(collection: Collection, model: SchemaModel): Collection {
  const ours = model.get(collection.name)?.constraints;
  const constraints = [...collection.constraints].filter(
    ([name, constraint]) =>
      constraint.type !== 'foreignKey' || model.has(constraint.references.table) || ours?.has(name),
  );
  return constraints.length === collection.constraints.size
    ? collection
    : { ...collection, constraints: new Map(constraints) };
}
