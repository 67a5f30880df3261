import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { approvalSuite, dialectSuite, recordStoreSuite, type StoreUnderTest, sqlSyntax } from '@svc/sdk/testing';
import { sqlite } from '../src/index.ts';

async function createDatabase() {
  const folder = mkdtempSync(join(tmpdir(), 'svc-sqlite-'));
  return { url: `sqlite://${folder}/test.db`, drop: async () => rmSync(folder, { recursive: true, force: true }) };
}

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
  createDatabase,
  skip: {
    'a watcher is notified of the records that notifyOn selects': 'SQLite does not notify other processes; they poll',
  },
});
recordStoreSuite(test, store);
approvalSuite(test, store);
