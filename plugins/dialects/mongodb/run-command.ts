import type { Document } from 'mongodb';
import { SvcError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json.ts';
import { fromExtended, type Server } from './open.ts';
import { commandOf } from './raw.ts';
import type { Validator } from './validator.ts';

/** A command in the user's words, on the database or on `admin` where it says so. */
export async function runCommand(server: Server, text: string, onChange?: () => void): Promise<Document> {
  const { $db, ...own } = commandOf(text);
  const isAdmin = $db === 'admin';
  const database = isAdmin ? server.client.db('admin') : server.db;
  const command = fromExtended(server, isAdmin ? inDatabase(own, server.db.databaseName) : own);
  const answer = await database.command(command).catch((error) => {
    // It may have changed something before it failed.
    onChange?.();
    throw error;
  });
  const [first] = (answer.writeErrors ?? []) as { readonly code: number; readonly errmsg: string }[];
  if (first) {
    if (answer.n > 0) onChange?.();
    throw new SvcError(
      first.code === 11000 || first.code === 121 ? 'data_violates' : 'migration_failed',
      'MongoDB refused a command.',
      {
        why: `${first.code}: ${first.code === 11000 ? 'the key is there already' : first.errmsg}`,
        details: { engineCode: first.code },
      },
    );
  }
  return answer;
}

/** Commands of `admin` on collections, which they name together with their database. */
const NAMESPACED: ReadonlySet<string> = new Set([
  'abortReshardCollection',
  'analyzeShardKey',
  'cleanupReshardCollection',
  'commitReshardCollection',
  'configureCollectionBalancing',
  'configureQueryAnalyzer',
  'moveChunk',
  'moveCollection',
  'moveRange',
  'mergeChunks',
  'refineCollectionShardKey',
  'renameCollection',
  'reshardCollection',
  'shardCollection',
  'split',
  'unshardCollection',
  'updateZoneKeyRange',
]);

/** With the database that svc is connected to before a name that has none: the same file serves every environment. */
function inDatabase(command: Validator, database: string): Validator {
  const [name = ''] = Object.keys(command);
  if (!NAMESPACED.has(name)) return command;
  const inOurs = (target: Json): Json => {
    if (typeof target !== 'string' || target.startsWith(`${database}.`)) return target;
    if (!target.includes('.')) return `${database}.${target}`;
    throw new SvcError('migration_invalid', `The raw command ${name} is not about this database.`, {
      why: `It names "${target}", and the database is "${database}".`,
      state: 'The command was not sent.',
      next: ['Write the name of the collection alone: the database of the environment is put before it.'],
    });
  };
  const { [name]: target = null, to, ...others } = command;
  return {
    [name]: inOurs(target),
    ...(to !== undefined && { to: name === 'renameCollection' ? inOurs(to) : to }),
    ...others,
  };
}
