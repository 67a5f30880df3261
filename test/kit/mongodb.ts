import { randomUUID } from 'node:crypto';
import { type Document, MongoClient } from 'mongodb';
import type { Connection } from '../../core/dialect.ts';
import { find } from '../servers/find.ts';
import type { DialectUnderTest } from './dialect.ts';
import type { Fresh } from './fresh.ts';

const found = await find('mongodb');

/** Why no server can be used here. */
export const missing: string | undefined = 'missing' in found ? found.missing : undefined;

const server = 'url' in found ? found.url : '';

export interface FreshMongo extends Fresh {
  /** Beside whatever is under test. */
  on<T>(work: (client: MongoClient, database: string) => Promise<T>): Promise<T>;
}

/** A database of its own on the server. It is there once something is written into it. */
export async function freshMongo(): Promise<FreshMongo> {
  const name = `svc_test_${randomUUID().replaceAll('-', '')}`;
  const url = new URL(server);
  url.pathname = `/${name}`;
  const on = async <T>(work: (client: MongoClient, database: string) => Promise<T>): Promise<T> => {
    const client = new MongoClient(url.href);
    try {
      return await work(client, name);
    } finally {
      await client.close();
    }
  };
  return { url: url.href, on, drop: () => on(async (client) => void (await client.db(name).dropDatabase())) };
}

const command = (connection: Connection, document: Document) => connection.query(JSON.stringify(document));

/** What the dialect suite has to say to MongoDB. */
export const mongoWords: Required<Pick<DialectUnderTest, 'insert' | 'read' | 'raw' | 'words'>> = {
  async insert(connection, collection, rows) {
    await command(connection, { insert: collection, documents: rows });
  },
  read: (connection, collection) => command(connection, { find: collection, batchSize: 1000 }),
  raw: (collection) => ({
    statement: JSON.stringify({ insert: collection, documents: [{ id: 7 }] }),
    check: JSON.stringify({ find: collection, filter: { id: 7 } }),
  }),
  words: {
    sum: '{ "$add": [1, 2] }',
    now: '"$$NOW"',
    notNull: (field) => JSON.stringify({ $ne: [{ $ifNull: [`$${field}`, null] }, null] }),
    holds: (number, other) => JSON.stringify({ $and: [{ $gte: [`$${number}`, 0] }, { $ne: [`$${other}`, 7] }] }),
  },
};
