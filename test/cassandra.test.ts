import type { Json } from '../core/json.ts';
import type { Field } from '../core/schema/model.ts';
import { cassandra } from '../plugins/dialects/cassandra/dialect.ts';
import { freshKeyspace, unavailable } from './kit/cassandra.ts';
import { storeUnderTest } from './kit/store-under-test.ts';
import { test } from './kit/test.ts';
import { dialectSuite } from './suites/dialect-suite.ts';
import { recordStoreSuite } from './suites/record-store-suite.ts';

const quote = (name: string) => `"${name.replaceAll('"', '""')}"`;

function columnValue(value: Json, field: Field | undefined): Json {
  if (value === null) return null;
  switch (field?.type) {
    case 'binary':
    case 'blob':
      return `0x${Buffer.from(String(value), 'base64').toString('hex')}`;
    case 'datetime':
    case 'timestamp':
      return `${String(value)}Z`;
    case 'json':
      return JSON.stringify(value);
    default:
      return value;
  }
}

if (unavailable) test.skip('the dialect suite on Cassandra', unavailable);
else
  dialectSuite(test, {
    name: 'Cassandra',
    dialect: cassandra,
    module: new URL('../plugins/dialects/cassandra/dialect.ts', import.meta.url),
    createDatabase: () => freshKeyspace(),
    urlAt: (port) => `cassandra://127.0.0.1:${port}/shop?dc=datacenter1`,
    async insert(connection, collection, rows, fields) {
      for (const row of rows) {
        // JSON, so that the server itself gives each value the type of its column.
        const quoted = Object.entries(row).map(([name, value]) => [quote(name), columnValue(value, fields.get(name))]);
        const json = JSON.stringify(Object.fromEntries(quoted)).replaceAll("'", "''");
        await connection.query(`INSERT INTO ${quote(collection)} JSON '${json}'`);
      }
    },
    clear: async (connection, collection) => void (await connection.query(`TRUNCATE ${quote(collection)}`)),
    notEnforced: {
      required: 'Cassandra enforces nothing but the primary key',
      default: 'Cassandra does not fill in values',
      enum: 'Cassandra enforces nothing but the primary key',
      length: 'Cassandra enforces nothing but the primary key',
    },
    read: (connection, collection) => connection.query(`SELECT * FROM ${quote(collection)}`),
    raw: (collection) => ({
      statement: `INSERT INTO ${quote(collection)} (id) VALUES (7)`,
      check: `SELECT id FROM ${quote(collection)} WHERE id = 7`,
    }),
    skip: {
      'what a model cannot express is listed':
        'what is left is for the server to allow: masks are off by default, and the class of a trigger is a file on each node',
      'a watcher is notified of the records that notifyOn selects':
        'Cassandra has no change notifications: callers poll',
    },
    randomSchemas: 8,
  });
recordStoreSuite(test, { ...storeUnderTest(cassandra, () => freshKeyspace(), unavailable), name: 'Cassandra' });
