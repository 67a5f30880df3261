import { randomUUID } from 'node:crypto';
import { extname } from 'node:path';
import { test } from 'node:test';
import { quoteIdentifier, quoteLiteral } from '@svc/sdk/dialect';
import { approvalSuite, dialectSuite, recordStoreSuite, type StoreUnderTest, sqlSyntax } from '@svc/sdk/testing';
import { h2 } from '../src/index.ts';
import { SYNTAX } from '../src/syntax.ts';
import { startServer } from './server.ts';

const server = await startServer();
const skip = 'missing' in server ? server.missing : undefined;
if (skip) console.log(`# skipped: H2: ${skip}`);

async function createDatabase() {
  if ('missing' in server) throw new Error(server.missing);
  const url = `${server.url}/t${randomUUID().replaceAll('-', '')}`;
  const drop = async () => {
    const connection = await h2.connect(url, {});
    await connection.query('DROP ALL OBJECTS DELETE FILES');
    await connection.close();
  };
  return { url, drop };
}

const store: StoreUnderTest = {
  name: 'H2',
  skip,
  async createStore() {
    const { url, drop } = await createDatabase();
    return { connect: () => h2.connect(url, {}), drop };
  },
};

dialectSuite(test, {
  ...sqlSyntax(quoteIdentifier),
  name: 'H2',
  dialect: h2,
  module: new URL(`../src/index${extname(import.meta.url)}`, import.meta.url),
  createDatabase,
  urlAt: (port) => `h2://sa@127.0.0.1:${port}/shop`,
  // An answer takes 45 milliseconds, because the server waits for an acknowledgement.
  randomSchemas: 5,
  async insert(connection, table, rows, fields) {
    for (const row of rows) {
      const names = Object.keys(row);
      const values = names.map((name) => {
        const [value, field] = [row[name] ?? null, fields.get(name)];
        if (value === null || field === undefined) return 'NULL';
        if (field.type === 'array' && Array.isArray(value))
          return `ARRAY [${value.map((one) => quoteLiteral(one)).join(', ')}]`;
        return SYNTAX.quoteLiteral?.(value, field) ?? quoteLiteral(value, field);
      });
      const list = names.map(quoteIdentifier).join(', ');
      await connection.query(
        `INSERT INTO ${quoteIdentifier(table)} ${names.length === 0 ? 'DEFAULT VALUES' : `(${list}) VALUES (${values.join(', ')})`}`,
      );
    }
  },
  // The server sends the names of columns in lower case.
  async read(connection, table) {
    const names = [...((await connection.introspect([table])).get(table)?.fields.keys() ?? [])];
    const columns = names.map((name, at) => `${quoteIdentifier(name)} AS c${at}`).join(', ') || '1 AS none';
    const rows = await connection.query(`SELECT ${columns} FROM ${quoteIdentifier(table)}`);
    return rows.map((row) => Object.fromEntries(names.map((name, at) => [name, row[`c${at}`]])));
  },
  async addUnsupportedObject(connection, table) {
    await connection.query(`CREATE VIEW "seen" AS SELECT * FROM ${quoteIdentifier(table)}`);
  },
  skip: skip ?? { 'a watcher is notified of the records that notifyOn selects': 'H2 does not notify other sessions' },
});
recordStoreSuite(test, store);
approvalSuite(test, store);
