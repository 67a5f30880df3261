import { randomUUID } from 'node:crypto';
import { BatchWriteItemCommand, GetItemCommand, PutItemCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { Long, MongoClient } from 'mongodb';
import { createPool } from 'mysql2/promise';
import pg from 'pg';
import { clientOf as cassandraClient } from '../../test/kit/cassandra.ts';
import { bareClient } from '../../test/kit/dynamodb.ts';

/** What the application does, with the driver of the engine and its defaults. */
export interface ApplicationClient {
  update(id: number): Promise<unknown>;
  insert(count: number): Promise<unknown>;
  read(id: number): Promise<unknown>;
}

interface DocumentClient extends ApplicationClient {
  /** Rows with these ids, before anything is measured. */
  fill(ids: readonly number[]): Promise<void>;
  close(): Promise<void>;
}

type Added = Readonly<Record<string, string | boolean>>;

export function clientOf(url: string, connections: number, added: Added): ApplicationClient {
  return url.startsWith('postgres') || /^(mysql|mariadb):/.test(url)
    ? sqlClient(url, connections)
    : documentClient(url, connections, added);
}

function sender(url: string, connections: number): (text: string) => Promise<unknown> {
  if (url.startsWith('postgres')) {
    const pool = new pg.Pool({ connectionString: url, max: connections });
    return (text) => pool.query(text);
  }
  const pool = createPool({ uri: url.replace(/^mariadb:/, 'mysql:'), connectionLimit: connections });
  return (text) => pool.query(text);
}

function sqlClient(url: string, connections: number): ApplicationClient {
  const send = sender(url, connections);
  return {
    update: (id) => send(`UPDATE visits SET n = n + 1 WHERE id = ${id}`),
    insert: (count) =>
      send(
        `INSERT INTO visits (name, n, owner, code, status) VALUES ('new', 1, 1, 'new ${process.pid} ${count}', 'open')`,
      ),
    read: (id) => send(`SELECT name, n FROM visits WHERE id = ${id}`),
  };
}

export function documentClient(url: string, connections: number, added: Added = {}): DocumentClient {
  const { protocol, pathname, host, port } = new URL(url);
  const database = pathname.slice(1);
  if (protocol === 'mongodb:') return mongodbClient(url, database, connections, added);
  return protocol === 'dynamodb:'
    ? dynamodbClient(Number(port), `${database}.visits`, added)
    : cassandraClientOf(host, database, added);
}

/** Later than every row that was there before. */
const newId = (count: number): number => process.pid * 1_000_000 + 1_000_000_000 + count;
const addedValues = (added: Added): [string, string | boolean][] =>
  Object.entries(added).map(([name, value]) => [name, value === 'uuid' ? randomUUID() : value]);
const rowOf = (id: number) => ({ name: 'a name of some length', n: id % 1000, owner: 1 + (id % 3), code: `c${id}` });

function mongodbClient(url: string, database: string, connections: number, added: Added): DocumentClient {
  const client = new MongoClient(url, { maxPoolSize: connections, minPoolSize: connections });
  const visits = client.db(database).collection('visits');
  const document = (id: number) => {
    const { owner, ...others } = rowOf(id);
    return { id: Long.fromNumber(id), ...others, owner: Long.fromNumber(owner), status: 'open' };
  };
  return {
    update: (id) => visits.updateOne({ id: Long.fromNumber(id) }, { $inc: { n: 1 } }),
    insert: (count) => visits.insertOne({ ...document(newId(count)), ...Object.fromEntries(addedValues(added)) }),
    read: (id) => visits.findOne({ id: Long.fromNumber(id) }, { projection: { name: 1, n: 1 } }),
    async fill(ids) {
      await visits.insertMany(ids.map((id) => ({ ...document(id), old: id, note: 'a note' })));
    },
    close: () => client.close(),
  };
}

function dynamodbClient(port: number, TableName: string, added: Added): DocumentClient {
  const client = bareClient(port);
  const keyOf = (id: number) => ({ id: { N: String(id) } });
  const item = (id: number) => {
    const { name, code, n, owner } = rowOf(id);
    const numbers = { n: { N: String(n) }, owner: { N: String(owner) } };
    return { ...keyOf(id), name: { S: name }, code: { S: code }, ...numbers, status: { S: 'open' } };
  };
  const attribute = (value: string | boolean) => (typeof value === 'boolean' ? { BOOL: value } : { S: value });
  return {
    update: (id) =>
      client.send(
        new UpdateItemCommand({
          TableName,
          Key: keyOf(id),
          UpdateExpression: 'ADD n :one',
          ExpressionAttributeValues: { ':one': { N: '1' } },
        }),
      ),
    insert: (count) => {
      const others = addedValues(added).map(([name, value]) => [name, attribute(value)]);
      return client.send(
        new PutItemCommand({ TableName, Item: { ...item(newId(count)), ...Object.fromEntries(others) } }),
      );
    },
    read: (id) => client.send(new GetItemCommand({ TableName, Key: keyOf(id) })),
    async fill(ids) {
      const requests = ids.map((id) => ({
        PutRequest: { Item: { ...item(id), old: { N: String(id) }, note: { S: 'a note' } } },
      }));
      for (let from = 0; from < requests.length; from += 25)
        await client.send(
          new BatchWriteItemCommand({ RequestItems: { [TableName]: requests.slice(from, from + 25) } }),
        );
    },
    close: async () => client.destroy(),
  };
}

function cassandraClientOf(host: string, keyspace: string, added: Added): DocumentClient {
  const client = cassandraClient([host], keyspace);
  const run = (cql: string, values: readonly unknown[]) => client.execute(cql, [...values], { prepare: true });
  const insert = (id: number, others: readonly (readonly [string, unknown])[]) => {
    const { owner, ...row } = rowOf(id);
    const columns = [
      ['id', BigInt(id)],
      ['owner', BigInt(owner)],
      ...Object.entries(row),
      ['status', 'open'],
      ...others,
    ] as [string, unknown][];
    const names = columns.map(([name]) => `"${name}"`).join(', ');
    return run(
      `INSERT INTO visits (${names}) VALUES (${columns.map(() => '?').join(', ')})`,
      columns.map(([, value]) => value),
    );
  };
  return {
    update: (id) => run('UPDATE visits SET n = ? WHERE id = ?', [1, BigInt(id)]),
    insert: (count) => insert(newId(count), addedValues(added)),
    read: (id) => run('SELECT name, n FROM visits WHERE id = ?', [BigInt(id)]),
    async fill(ids) {
      await Promise.all(
        ids.map((id) =>
          insert(id, [
            ['old', id],
            ['note', 'a note'],
          ]),
        ),
      );
    },
    close: () => client.shutdown(),
  };
}
