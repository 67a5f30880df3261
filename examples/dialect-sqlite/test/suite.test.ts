import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { test } from 'node:test';
import { approvalSuite, dialectSuite, recordStoreSuite, type StoreUnderTest, sqlSyntax } from '@svc/sdk/testing';
import { sqlite } from '../src/index.ts';

async function createDatabase() {
  const folder = mkdtempSync(join(tmpdir(), 'svc-sqlite-'));
  return { url: `sqlite://${folder}/test.db`, drop: async () => rmSync(folder, { recursive: true, force: true }) };
}

/** Without Node's own SQLite, a killed process leaves the lock of the file, as README.md says. */
const whyNoKills = 'node-sqlite3-wasm leaves its lock when it is killed during a write';
const NOT_WITH_WASM = {
  'after a kill before or during any call, the next process finishes the migrations': whyNoKills,
  'after a kill during a rollback, the next process finishes it': whyNoKills,
  'after a kill at a random moment, the next process finishes the migrations': whyNoKills,
  'a killed process leaves every record write of a segment, or none': whyNoKills,
  'a deadline does not depend on the clock of the process': 'node-sqlite3-wasm uses the clock of JavaScript',
};
const hasOwnSqlite = process.getBuiltinModule?.('node:sqlite') !== undefined;

const syntax = sqlSyntax((name) => `"${name.replaceAll('"', '""')}"`);
const store: StoreUnderTest = {
  name: 'SQLite',
  async createStore() {
    const { url, drop } = await createDatabase();
    return { connect: () => sqlite.connect(url, {}), drop };
  },
};

dialectSuite(test, {
  ...syntax,
  syntax: { ...syntax.syntax, now: "datetime('now')" },
  name: 'SQLite',
  dialect: sqlite,
  module: new URL(`../src/index${extname(import.meta.url)}`, import.meta.url),
  createDatabase,
  notEnforced: {
    length: 'SQLite does not limit the length of a value',
    decimal: 'SQLite stores a decimal as a floating-point number',
  },
  addUnsupportedObject: async (connection, table) =>
    void (await connection.query(`CREATE INDEX partial ON "${table}" (n) WHERE n > 0`)),
  skip: {
    'a watcher is notified of the records that notifyOn selects': 'SQLite does not notify other processes; they poll',
    ...(!hasOwnSqlite && NOT_WITH_WASM),
  },
});
recordStoreSuite(test, store);
approvalSuite(test, store);
