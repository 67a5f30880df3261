import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { test } from 'node:test';
import { approvalSuite, dialectSuite, recordStoreSuite, type StoreUnderTest, sqlSyntax } from '@svc/sdk/testing';
import { duckdb } from '../src/index.ts';

async function createDatabase() {
  const folder = mkdtempSync(join(tmpdir(), 'svc-duckdb-'));
  return { url: `duckdb://${folder}/test.db`, drop: async () => rmSync(folder, { recursive: true, force: true }) };
}

const store: StoreUnderTest = {
  name: 'DuckDB',
  async createStore() {
    const { url, drop } = await createDatabase();
    return { connect: () => duckdb.connect(url, {}), drop };
  },
};

dialectSuite(test, {
  ...sqlSyntax(
    (name) => `"${name.replaceAll('"', '""')}"`,
    (hex) => `from_hex('${hex}')`,
  ),
  name: 'DuckDB',
  dialect: duckdb,
  module: new URL(`../src/index${extname(import.meta.url)}`, import.meta.url),
  createDatabase,
  notEnforced: { length: 'DuckDB does not limit the length of a value' },
  addUnsupportedObject: async (connection, table) =>
    void (await connection.query(`CREATE INDEX expression ON "${table}" ((n + 1))`)),
  skip: {
    'a watcher is notified of the records that notifyOn selects': 'DuckDB does not notify other connections; they poll',
  },
});
recordStoreSuite(test, store);
approvalSuite(test, store);
