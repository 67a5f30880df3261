import { SvcError } from '../../../core/errors.ts';
import { violating } from './checks.ts';
import { codeOf } from './errors.ts';
import type { Server } from './open.ts';
import type { Place } from './place.ts';
import type { Rewritten } from './step.ts';

/** A router refuses to change the shard key of many documents, and to drop the index it needs: half-way, without this. */
export async function refuseSharded(place: Place, collection: string, { field, rule }: Rewritten): Promise<void> {
  const { server } = place;
  const key = await shardKeyOf(server, collection);
  if (!key.some((path) => path === field || path.startsWith(`${field}.`))) return;
  const misfits = rule && server.db.collection(collection).findOne(violating(place, field, rule));
  if (rule && !(await misfits)) return;
  throw new SvcError('not_supported', `The values of "${collection}.${field}" cannot be changed.`, {
    why: `The collection is sharded by ${key.map((path) => `"${path}"`).join(', ')}.`,
    next: ['Shard it by another key first: raw reshardCollection.', 'Or copy its documents into another collection.'],
  });
}

async function shardKeyOf({ client, db }: Server, collection: string): Promise<readonly string[]> {
  const { sharded } = await db.command({ collStats: collection });
  if (sharded !== true) return [];
  const _id = `${db.databaseName}.${collection}`;
  try {
    const known = await client.db('config').collection<{ _id: string; key: object }>('collections').findOne({ _id });
    return Object.keys(known?.key ?? {});
  } catch (error) {
    if (codeOf(error) !== 13) throw error;
    throw new SvcError('permission_denied', `The database user may not see what "${collection}" is sharded by.`, {
      why: 'A field of the shard key cannot be changed, and it stands in config.collections.',
      next: ['Grant the user the role read on the database config.'],
      cause: error,
    });
  }
}
