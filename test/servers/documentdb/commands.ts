import type { Document } from 'bson';
import type { PoolClient } from 'pg';
import { CommandError } from './errors.ts';
import { bson, bytesOf, document, first, hex } from './sql.ts';
import { retryId } from './transactions.ts';
import type { Answer } from './wire.ts';

interface Call {
  readonly client: PoolClient;
  readonly database: string;
  readonly command: Document;
  /** The command as received, with the fields that the engine does not accept. */
  readonly received: Document;
}

type Handler = (call: Call) => Promise<Answer>;

/** Fields removed before a command goes to the engine: the gateway handles or ignores them. */
const GATEWAY_FIELDS: ReadonlySet<string> = new Set([
  '$db',
  'lsid',
  '$clusterTime',
  'txnNumber',
  'autocommit',
  'startTransaction',
  'readConcern',
  'writeConcern',
  '$readPreference',
  'apiVersion',
  'apiStrict',
  'apiDeprecationErrors',
  'commitQuorum',
]);

export function engineCommand(command: Document): Document {
  return Object.fromEntries(Object.entries(command).filter(([key]) => !GATEWAY_FIELDS.has(key)));
}

const write =
  (name: string): Handler =>
  async ({ client, database, command, received }) => {
    const last = name === 'find_and_modify' ? '$3' : 'NULL, $3';
    const text = `SELECT p_result::text AS found FROM documentdb_api.${name}($1, ${bson(2)}, ${last})`;
    const row = await first(client, text, [database, hex(command), retryId(received)]);
    return bytesOf(String(row.found));
  };

/** `call` takes the database as $1 and the command as $2. */
const query =
  (call: string): Handler =>
  ({ client, database, command }) =>
    document(client, call, [database, hex(command)]);

const HANDLERS: Readonly<Record<string, Handler>> = {
  insert: write('insert'),
  update: write('update'),
  delete: write('delete'),
  findAndModify: write('find_and_modify'),
  count: query(`documentdb_api.count_query($1, ${bson(2)})`),
  distinct: query(`documentdb_api.distinct_query($1, ${bson(2)})`),
  create: query(`documentdb_api.create_collection_view($1, ${bson(2)})`),
  createIndexes: ({ client, database, command }) =>
    document(client, `documentdb_api_internal.create_indexes_non_concurrently($1, ${bson(2)}, true)`, [
      database,
      hex(command),
    ]),
  async dropIndexes({ client, database, command }) {
    const { retval } = await first(client, `CALL documentdb_api.drop_indexes($1, ${bson(2)})`, [
      database,
      hex(command),
    ]);
    return bytesOf(String(retval));
  },
  collMod: ({ client, database, command }) =>
    document(client, `documentdb_api.coll_mod($1, $3, ${bson(2)})`, [database, hex(command), command.collMod]),
  async drop({ client, database, command }) {
    await client.query('SELECT documentdb_api.drop_collection($1, $2)', [database, command.drop]);
    return { ns: `${database}.${command.drop}`, ok: 1 };
  },
  async dropDatabase({ client, database }) {
    await client.query('SELECT documentdb_api.drop_database($1)', [database]);
    return { dropped: database, ok: 1 };
  },
  async renameCollection({ client, command }) {
    const [database, from] = split(String(command.renameCollection));
    const [other, to] = split(String(command.to));
    if (database !== other)
      throw new CommandError(20, 'IllegalOperation', 'a collection cannot move to another database');
    await client.query('SELECT documentdb_api.rename_collection($1, $2, $3, $4)', [
      database,
      from,
      to,
      command.dropTarget ?? false,
    ]);
    return { ok: 1 };
  },
  listDatabases: ({ client, command }) => document(client, `documentdb_api.list_databases(${bson(1)})`, [hex(command)]),
  currentOp: ({ client, command }) => document(client, `documentdb_api.current_op_command(${bson(1)})`, [hex(command)]),
  collStats: ({ client, database, command }) =>
    document(client, 'documentdb_api.coll_stats($1, $2)', [database, command.collStats]),
  dbStats: ({ client, database }) => document(client, 'documentdb_api.db_stats($1)', [database]),
  validate: query(`documentdb_api.validate($1, ${bson(2)})`),
};

const ALIASES: Readonly<Record<string, string>> = { findandmodify: 'findAndModify' };

/** The handler of a command that opens no cursor. */
export function handlerOf(name: string): Handler {
  const known = ALIASES[name] ?? name;
  const handler = Object.hasOwn(HANDLERS, known) ? HANDLERS[known] : undefined;
  if (!handler) throw new CommandError(59, 'CommandNotFound', `no such command: '${name}'`);
  return handler;
}

function split(namespace: string): [string, string] {
  const dot = namespace.indexOf('.');
  return [namespace.slice(0, dot), namespace.slice(dot + 1)];
}
