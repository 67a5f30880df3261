import { randomUUID } from 'node:crypto';
import { type Document, MongoClient } from 'mongodb';
import type { Connection } from '../../core/dialect.ts';
import { find } from '../servers/find.ts';
import type { DialectUnderTest } from '../suites/dialect-suite.ts';
import type { TestDatabase } from '../suites/test-database.ts';

const found = await find('mongodb');

/** Why no server is available, or undefined if one is. */
export const missing: string | undefined = 'missing' in found ? found.missing : undefined;

const server = 'url' in found ? found.url : '';

export interface MongoTestDatabase extends TestDatabase {
  /** Runs work with a separate client. */
  on<T>(work: (client: MongoClient, database: string) => Promise<T>): Promise<T>;
}

/** A new database on the server. It exists once something is written to it. */
export async function freshMongo(): Promise<MongoTestDatabase> {
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

/** MongoDB for the dialect suite. */
export const mongoDialect: Required<Pick<DialectUnderTest, 'insert' | 'read' | 'raw' | 'syntax'>> = {
  async insert(connection, collection, rows) {
    await command(connection, { insert: collection, documents: rows });
  },
  read: (connection, collection) => command(connection, { find: collection, batchSize: 1000 }),
  raw: (collection) => ({
    statement: JSON.stringify({ insert: collection, documents: [{ id: 7 }] }),
    check: JSON.stringify({ find: collection, filter: { id: 7 } }),
  }),
  syntax: {
    sum: '{ "$add": [1, 2] }',
    now: '"$$NOW"',
    notNull: (field) => JSON.stringify({ $ne: [{ $ifNull: [`$${field}`, null] }, null] }),
    numberRules: (number, other) => JSON.stringify({ $and: [{ $gte: [`$${number}`, 0] }, { $ne: [`$${other}`, 7] }] }),
  },
};
