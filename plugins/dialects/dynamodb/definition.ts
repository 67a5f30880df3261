import { defineCollection, defineIndex, writtenCollection, writtenIndex } from '../../../core/schema/define.ts';
import type { Collection } from '../../../core/schema/model.ts';
import type { CreateCollection, CreateIndex } from '../../../core/schema/operation.ts';

/** A collection as JSON: in statements, in the journal and in the registry. */
export interface Definition {
  readonly create: CreateCollection;
  readonly indexes: readonly CreateIndex[];
}

export function definitionOf(collection: Collection): Definition {
  return {
    create: writtenCollection(collection),
    indexes: [...collection.indexes.values()].map((index) => writtenIndex(collection.name, index)),
  };
}

export function collectionFrom({ create, indexes }: Definition): Collection {
  return {
    ...defineCollection(create),
    indexes: new Map(indexes.map((index) => [index.index, defineIndex(index)])),
  };
}
