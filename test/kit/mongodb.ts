import { randomUUID } from 'node:crypto';
import { Binary, type Document, MongoClient } from 'mongodb';
import type { Connection } from '../../core/dialect.ts';
import type { Json } from '../../core/json.ts';
import type { Field } from '../../core/schema/model.ts';
import { find } from '../servers/find.ts';
import type { DialectUnderTest } from '../suites/dialect-under-test.ts';
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

/** Whether DocumentDB is in the place of `mongod`. */
export async function isDocumentdb(): Promise<boolean> {
  const { on } = await freshMongo();
  return on(async (client) => 'gateway' in (await client.db('admin').command({ buildInfo: 1 })));
}

const command = (connection: Connection, document: Document) => connection.query(JSON.stringify(document));

/** A value in the type that the validator of a field requires. */
function typedValue(value: Json, field: Field | undefined): Document | Json {
  if (value === null) return null;
  switch (field?.type) {
    case 'date':
      return { $date: new Date(String(value)).toISOString() };
    case 'datetime':
    case 'timestamp':
      return { $date: new Date(`${String(value)}Z`).toISOString() };
    case 'bigint':
      return { $numberLong: String(value) };
    case 'decimal':
      return { $numberDecimal: String(value) };
    case 'float':
    case 'double':
      return { $numberDouble: String(value) };
    case 'binary':
    case 'blob':
      return { $binary: { base64: String(value), subType: '00' } };
    default:
      return value;
  }
}

/** MongoDB for the dialect suite. */
export const mongoDialect: Omit<DialectUnderTest, 'name' | 'dialect' | 'module' | 'createDatabase'> = {
  async insert(connection, collection, rows, fields) {
    const documents = rows.map((row) =>
      Object.fromEntries(Object.entries(row).map(([name, value]) => [name, typedValue(value, fields.get(name))])),
    );
    await command(connection, { insert: collection, documents });
  },
  clear: async (connection, collection) =>
    void (await command(connection, { delete: collection, deletes: [{ q: {}, limit: 0 }] })),
  notEnforced: {
    default: 'MongoDB does not fill in values on insert',
    length: 'a validator of MongoDB counts no characters',
  },
  async addUnsupportedObject(connection, collection) {
    const validator = { $jsonSchema: { bsonType: 'object', properties: { label: { maxLength: 3 } } } };
    await command(connection, { collMod: collection, validator });
  },
  async read(connection, collection) {
    const documents = await command(connection, { find: collection, batchSize: 2_000 });
    return documents.map((document) =>
      Object.fromEntries(
        Object.entries(document).map(([name, value]) => [name, value instanceof Binary ? value.buffer : value]),
      ),
    );
  },
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
