import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { approvalSuite, dialectSuite, recordStoreSuite, type StoreUnderTest, sqlWords } from '@svc/sdk/testing';
import { sqlite } from '../src/index.ts';

async function fresh() {
  const folder = mkdtempSync(join(tmpdir(), 'svc-sqlite-'));
  return { url: `sqlite://${folder}/test.db`, drop: async () => rmSync(folder, { recursive: true, force: true }) };
}

const words = sqlWords((name) => `"${name.replaceAll('"', '""')}"`);
const store: StoreUnderTest = {
  name: 'SQLite',
  async fresh() {
    const { url, drop } = await fresh();
    return { connect: () => sqlite.connect(url, {}), drop };
  },
};

dialectSuite(test, {
  ...words,
  words: { ...words.words, now: "datetime('now')" },
  name: 'SQLite',
  dialect: sqlite,
  fresh,
  skip: {
    'who watches hears of what its definition tells, and of nothing else':
      'SQLite tells other processes nothing: who waits asks again',
  },
});
recordStoreSuite(test, store);
approvalSuite(test, store);
