import type { Document } from 'mongodb';
import { SvcError } from '../../../../core/errors.ts';
import type { Json } from '../../../../core/json.ts';
import type { Raw } from '../../../../core/schema/operation.ts';
import { fromExtendedJson, type MongoServer } from '../connection/server.ts';
import type { MongoStatement } from './step.ts';
import { parseObject, type Validator } from './validator.ts';

/** Options that would make a command part of another session or transaction. */
const SESSION_FIELDS: ReadonlySet<string> = new Set([
  'lsid',
  'txnNumber',
  'autocommit',
  'startTransaction',
  '$clusterTime',
]);
const SESSION_COMMANDS: ReadonlySet<string> = new Set([
  'commitTransaction',
  'abortTransaction',
  'endSessions',
  'killSessions',
]);

/** Compiles the JSON of a command document, which may not be safe to run twice. */
export function compileRaw(operation: Raw): MongoStatement {
  const { statement, check, transaction } = operation;
  if (transaction) {
    throw new SvcError('not_supported', 'A raw command for MongoDB cannot be in a transaction.', {
      why: 'Most commands that change a schema cannot run in a transaction.',
      next: ['Remove "transaction".'],
    });
  }
  parseCommand(statement);
  if (check !== undefined) parseCommand(check);
  return {
    text: `db.runCommand(${statement})`,
    run: { kind: 'raw', command: statement },
    transactional: false,
    destructive: false,
    ...(check !== undefined && { check }),
  };
}

/** Throws `migration_invalid` for anything but a command, and for commands on sessions and transactions. */
function parseCommand(text: string): Validator {
  const command = parseObject(text);
  const name = command && Object.keys(command)[0];
  if (!command || name === undefined) {
    throw new SvcError('migration_invalid', 'A raw statement for MongoDB is not a command.', {
      why: 'A raw statement is the JSON of a document for runCommand, with the name of the command as its first key.',
      state: 'Nothing was changed.',
      next: ['For example: { "collMod": "users", "validationLevel": "moderate" }'],
    });
  }
  const forbidden = SESSION_COMMANDS.has(name) ? name : Object.keys(command).find((key) => SESSION_FIELDS.has(key));
  if (forbidden === undefined) return command;
  throw new SvcError('migration_invalid', `A raw command for MongoDB cannot contain "${forbidden}".`, {
    why: 'svc manages sessions and transactions.',
    state: 'Nothing was changed.',
    next: [`Remove "${forbidden}".`],
  });
}

/** Runs a raw command on the database, or on `admin` if its `$db` is `admin`. */
export async function runCommand(server: MongoServer, text: string, onChange?: () => void): Promise<Document> {
  const { $db, ...rest } = parseCommand(text);
  const isAdmin = $db === 'admin';
  const database = isAdmin ? server.client.db('admin') : server.db;
  const command = fromExtendedJson(server, isAdmin ? withDatabaseName(rest, server.db.databaseName) : rest);
  const response = await database.command(command).catch((error) => {
    // It may have changed something before it failed.
    onChange?.();
    throw error;
  });
  const [first] = (response.writeErrors ?? []) as { readonly code: number; readonly errmsg: string }[];
  if (first) {
    if (response.n > 0) onChange?.();
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
