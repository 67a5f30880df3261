import { cassandra } from '../plugins/dialects/cassandra/dialect.ts';
import { storeOn } from './kit/approval-place.ts';
import { freshKeyspace, unavailable } from './kit/cassandra.ts';
import { dialectSuite } from './kit/dialect.ts';
import { recordStoreSuite } from './kit/record-store.ts';
import { test } from './kit/test.ts';

const quote = (name: string) => `"${name.replaceAll('"', '""')}"`;

if (unavailable) test.skip('the dialect suite on Cassandra', unavailable);
else
  dialectSuite(test, {
    name: 'Cassandra',
    dialect: cassandra,
    fresh: () => freshKeyspace(),
    async insert(connection, collection, rows) {
      for (const row of rows) {
        // JSON, so that the server itself gives each value the type of its column.
        const json = JSON.stringify(row).replaceAll("'", "''");
        await connection.query(`INSERT INTO ${quote(collection)} JSON '${json}'`);
      }
    },
    read: (connection, collection) => connection.query(`SELECT * FROM ${quote(collection)}`),
    raw: (collection) => ({
      statement: `INSERT INTO ${quote(collection)} (id) VALUES (7)`,
      check: `SELECT id FROM ${quote(collection)} WHERE id = 7`,
    }),
    skip: {
      'who watches hears of what its definition tells, and of nothing else':
        'Cassandra tells nobody of a write: who waits for one asks again',
    },
    cases: 8,
  });
recordStoreSuite(test, { ...storeOn(cassandra, () => freshKeyspace(), unavailable), name: 'Cassandra' });
