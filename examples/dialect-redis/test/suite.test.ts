import { extname } from 'node:path';
import { test } from 'node:test';
import type { Field } from '@svc/sdk';
import {
  approvalSuite,
  dialectSuite,
  recordStoreSuite,
  type StoreUnderTest,
  type TestDatabase,
} from '@svc/sdk/testing';
import { createClient, RESP_TYPES } from 'redis';
import { redis } from '../src/index.ts';
import { startServer } from './server.ts';

const server = await startServer();
const skip = 'missing' in server ? server.missing : undefined;

/** The clients of an application, by the URL of the database. */
const clients = new Map<string, ReturnType<typeof openClient>>();
const openClient = async (url: string) => {
  const client = await createClient({ url }).connect();
  // A case that does not drop its database must not keep this process alive.
  client.unref();
  return client;
};

async function createDatabase() {
  if ('missing' in server) throw new Error(server.missing);
  const url = `${server.url}/${clients.size + 1}`;
  const opening = openClient(url);
  clients.set(url, opening);
  const drop = async () => {
    const client = await opening;
    client.ref();
    await client.flushDb();
    await client.close();
  };
  return { url, drop };
}

async function clientFor({ url }: TestDatabase) {
  const client = clients.get(url);
  if (!client) throw new Error('the database was not created by createDatabase');
  return client;
}

const encodingOf = (field?: Field) => (field?.type === 'binary' || field?.type === 'blob' ? 'base64' : 'utf8');

async function rowKeys(database: TestDatabase, table: string): Promise<string[]> {
  const client = await clientFor(database);
  const keys = await client.keys('*');
  return keys.filter((key) => key.startsWith(`${table}:`));
}

const store: StoreUnderTest = {
  name: 'Redis',
  skip,
  async createStore() {
    const { url, drop } = await createDatabase();
    return { connect: () => redis.connect(url, {}), drop };
  },
};

const ANY_FIELDS = 'Redis accepts any fields in a hash';

dialectSuite(test, {
  name: 'Redis',
  skip,
  dialect: redis,
  module: new URL(`../src/index${extname(import.meta.url)}`, import.meta.url),
  createDatabase,
  urlAt: (port) => `redis://127.0.0.1:${port}/0`,
  async insert(_connection, table, rows, fields, database) {
    const client = await clientFor(database);
    const [keyField] = [...fields.values()].filter(({ primaryKey }) => primaryKey);
    for (const row of rows) {
      const key = `${table}:${row[keyField?.name ?? '']}`;
      if (await client.exists(key)) throw new Error(`${key} exists`);
      for (const [name, value] of Object.entries(row)) {
        const text = typeof value === 'string' ? value : JSON.stringify(value);
        if (value !== null) await client.hSet(key, name, Buffer.from(text, encodingOf(fields.get(name))));
      }
    }
  },
  async read(connection, table, database) {
    const client = (await clientFor(database)).withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
    const fields = (await connection.introspect([table])).get(table)?.fields;
    return Promise.all(
      (await rowKeys(database, table)).map(async (key) => {
        const values = Object.entries(await client.hGetAll(key));
        const isText = (name: string) => encodingOf(fields?.get(name)) === 'utf8';
        return Object.fromEntries(values.map(([name, bytes]) => [name, isText(name) ? bytes.toString() : bytes]));
      }),
    );
  },
  async clear(_connection, table, database) {
    const client = await clientFor(database);
    for (const key of await rowKeys(database, table)) await client.del(key);
  },
  raw: (table) => ({ statement: `["HSET", "${table}:7", "id", "7"]`, check: `["EXISTS", "${table}:7"]` }),
  notEnforced: {
    required: ANY_FIELDS,
    default: 'Redis fills in no values',
    enum: ANY_FIELDS,
    length: ANY_FIELDS,
  },
  async addUnsupportedObject(_connection, table, database) {
    const client = await clientFor(database);
    await client.sAdd(`${table}:1:tags`, 'new');
  },
});
recordStoreSuite(test, store);
approvalSuite(test, store);
