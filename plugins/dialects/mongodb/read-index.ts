import type { Document } from 'mongodb';
import type { Json } from '../../../core/json.ts';
import type { Structure } from './indexes.ts';
import { type Server, toExtended } from './open.ts';

/** What an index is, as the server tells it. */
export function readStructure(server: Pick<Server, 'bson'>, index: Document): Structure {
  return {
    key: Object.entries(index.key as object).map(([field, order]): [string, Json] => [field, order as Json]),
    ...(index.unique === true && { unique: true as const }),
    ...(index.partialFilterExpression && { partial: toExtended(server, index.partialFilterExpression) }),
    ...(index.expireAfterSeconds !== undefined && { expires: Number(index.expireAfterSeconds) }),
  };
}
