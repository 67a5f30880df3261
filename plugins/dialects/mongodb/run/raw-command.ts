import type { Document } from 'mongodb';
import { SvcError } from '../../../../core/errors.ts';
import type { Json } from '../../../../core/json.ts';
import { parseCommand } from '../compile/raw-command.ts';
import type { Validator } from '../compile/validator.ts';
import { codeOf, isLost } from '../connection/errors.ts';
import { fromExtendedJson, type MongoServer } from '../connection/server.ts';

/** Runs a raw command on the database, or on `admin` if its `$db` is `admin`. */
export async function runCommand(server: MongoServer, text: string, onChange?: () => void): Promise<Document> {
  const { $db, ...rest } = parseCommand(text);
  const isAdmin = $db === 'admin';
  const database = isAdmin ? server.client.db('admin') : server.db;
  const command = fromExtendedJson(server, isAdmin ? withDatabaseName(rest, server.db.databaseName) : rest);
  const response = await database.command(command).catch((error) => {
    if (mayHaveChanged(command, error)) onChange?.();
    throw error;
  });
  const [first] = (response.writeErrors ?? []) as { readonly code: number; readonly errmsg: string }[];
  if (first) {
    if (response.n > 0 || hasMultiUpdate(command)) onChange?.();
    throw new SvcError(
      first.code === 11000 || first.code === 121 ? 'data_violates' : 'migration_failed',
      'MongoDB rejected a command.',
      {
        why: `${first.code}: ${first.code === 11000 ? 'duplicate key' : first.errmsg}`,
        details: { engineCode: first.code },
      },
    );
  }
  return response;
}

/** Commands that may have done a part of their work when they fail. Others do all of it or nothing. */
const IN_PARTS: ReadonlySet<string> = new Set([
  'aggregate',
  'applyOps',
  'cloneCollectionAsCapped',
  'convertToCapped',
  'dropDatabase',
  'mapReduce',
  'moveCollection',
  'reshardCollection',
  'shardCollection',
  'unshardCollection',
]);
/** Not permitted, or not a command or an option that the server knows: rejected before it begins. */
const REJECTED_AT_ONCE: ReadonlySet<number | undefined> = new Set([13, 59, 115, 40324, 40414, 40415]);

function mayHaveChanged(command: Document, error: unknown): boolean {
  const [name = ''] = Object.keys(command);
  return codeOf(error) === undefined || isLost(error) || (IN_PARTS.has(name) && !REJECTED_AT_ONCE.has(codeOf(error)));
}

/** An update of several documents keeps those changed before the one that fails, and does not count them. */
const hasMultiUpdate = ({ updates }: Document): boolean =>
  Array.isArray(updates) && updates.some(({ multi }: Document) => multi === true);

/** Commands of `admin` that name a collection together with its database. */
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

/** Adds the connected database to a collection without one, so that a migration works in every environment. */
function withDatabaseName(command: Validator, database: string): Validator {
  const [name = ''] = Object.keys(command);
  if (!NAMESPACED.has(name)) return command;
  const qualified = (target: Json): Json => {
    if (typeof target !== 'string' || target.startsWith(`${database}.`)) return target;
    if (!target.includes('.')) return `${database}.${target}`;
    throw new SvcError('migration_invalid', `The raw command ${name} names another database.`, {
      why: `It names "${target}", and the database is "${database}".`,
      state: 'The command was not sent.',
      next: ['Write only the name of the collection: svc adds the database of the environment.'],
    });
  };
  const { [name]: target = null, to, ...others } = command;
  return {
    [name]: qualified(target),
    ...(to !== undefined && { to: name === 'renameCollection' ? qualified(to) : to }),
    ...others,
  };
}
