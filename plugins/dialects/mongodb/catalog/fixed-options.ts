import { isDeepStrictEqual } from 'node:util';
import type { Document } from 'mongodb';
import { isPlainObject, type Json } from '../../../../core/json.ts';
import type { MongoOptions } from '../../../../core/schema/options.ts';
import type { MongoServer } from '../connection/server.ts';

/** Options of `create` that are stored as they are. */
export const FIXED_OPTIONS = [
  'timeseries',
  'expireAfterSeconds',
  'clusteredIndex',
  'collation',
  'changeStreamPreAndPostImages',
  'storageEngine',
  'indexOptionDefaults',
] as const satisfies readonly (keyof MongoOptions)[];

/** As the registry has them where the server lists these and defaults of its own. */
export function readFixedOptions(server: MongoServer, listed: Document, registered: MongoOptions): MongoOptions {
  const entries = FIXED_OPTIONS.flatMap((name): [string, Json][] => {
    if (listed[name] === undefined) return [];
    const found = relaxedJson(server, listed[name]) ?? null;
    const written = registered[name] as Json | undefined;
    if (written !== undefined && hasEntries(found, written)) return [[name, written]];
    return [[name, withoutOwn(name, found)]];
  });
  return Object.fromEntries(entries) as MongoOptions;
}

/** Without what the server adds: it cannot be written, or is the version of a library. */
function withoutOwn(name: string, found: Json): Json {
  if (!isPlainObject(found)) return found;
  const { version: _, v: __, bucketMaxSpanSeconds, ...others } = found as { readonly [key: string]: Json };
  if (name === 'collation') return others;
  // With a granularity, the server computes the span.
  const hasOwnSpan = bucketMaxSpanSeconds !== undefined && others.granularity === undefined;
  return hasOwnSpan ? { ...others, bucketMaxSpanSeconds } : others;
}

/** Whether the listed value has all that is written. */
export function hasEntries(listed: Json | undefined, written: Json | undefined): boolean {
  if (written === undefined) return listed === undefined;
  if (!isPlainObject(listed) || !isPlainObject(written)) return isDeepStrictEqual(listed, written);
  return Object.entries(written).every(([key, value]) => hasEntries(listed[key] as Json, value as Json));
}

export const relaxedJson = ({ bson }: Pick<MongoServer, 'bson'>, value: unknown): Json | undefined =>
  value === undefined ? undefined : (JSON.parse(bson.EJSON.stringify(value as object, { relaxed: true })) as Json);
