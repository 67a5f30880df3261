import { isDeepStrictEqual } from 'node:util';
import type { Document } from 'mongodb';
import type { Json } from '../../../core/json.ts';
import { type Server, toExtended } from './open.ts';

/** Whether there is a collection as this command would have made it. */
export async function isMade(server: Server, words: Document): Promise<boolean> {
  const [found] = (await server.db
    .listCollections({ name: String(words.create), type: 'collection' })
    .toArray()) as Document[];
  return found !== undefined && isDeepStrictEqual(saidOf(server, found.options ?? {}), saidOf(server, words));
}

/** What it says, with what a server lists where nothing was said; a size is rounded up to a multiple of 256. */
function saidOf(
  server: Server,
  {
    validator = {},
    validationLevel = 'strict',
    validationAction = 'error',
    capped = false,
    size = 0,
    max = 0,
  }: Document,
): Json {
  const bytes = Math.ceil(Number(size) / 256) * 256;
  return toExtended(server, { validator, validationLevel, validationAction, capped, bytes, max: Number(max) });
}
