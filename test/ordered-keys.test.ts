import * as assert from 'node:assert/strict';
import type { Operation } from '../core/schema/operation.ts';
import { CREATE_KEYS, orderedKeys, orderedKeysWith } from './kit/ordered-keys.ts';
import { freshDatabase } from './kit/postgresql.ts';
import { sixEngines } from './kit/six-engines.ts';
import { test } from './kit/test.ts';
import { approvalSuite } from './suites/approval-suite.ts';
import { dialectSuite } from './suites/dialect-suite.ts';
import type { DialectUnderTest } from './suites/dialect-under-test.ts';
import { expectError } from './suites/expect-error.ts';
import { keyValueSyntax } from './suites/key-value-syntax.ts';
import { recordStoreSuite } from './suites/record-store-suite.ts';
import { runOperations } from './suites/run-operations.ts';
import { moduleOf, type WrongServer, wrongServers } from './suites/wrong/ordered-key-servers.ts';

const skip = sixEngines.find(({ name }) => name === 'postgresql')?.missing;

async function createDatabase() {
  const database = await freshDatabase();
  await database.query(CREATE_KEYS);
  return database;
}

const store = {
  name: 'ordered keys',
  skip,
  async createStore() {
    const { url, drop } = await createDatabase();
    return { connect: () => orderedKeys.connect(url, {}), drop };
  },
};

const orderedKeysUnderTest: DialectUnderTest = {
  ...keyValueSyntax,
  name: 'ordered keys',
  skip,
  dialect: orderedKeys,
  module: new URL('./kit/ordered-keys.ts', import.meta.url),
  createDatabase,
  randomSchemas: 5,
};
dialectSuite(test, orderedKeysUnderTest);
recordStoreSuite(test, store);
approvalSuite(test, store);

const TOGETHER = 'the record writes of a segment are stored together, or none of them';

/** The case that each wrong server fails, and what the case reports. */
const FAULTS: Readonly<Record<WrongServer, readonly [name: string, message: RegExp]>> = {
  'makes its changes until a condition fails': [TOGETHER, /the other writes took effect/],
  'compares, and then makes its changes': [
    'of segments that write a record at the same time, one takes effect',
    /both segments succeeded: a change was overwritten/,
  ],
  'makes its changes one after the other': [
    'the record writes of a segment are visible together',
    /was that of segment \d+ after "\w+" was that of segment/,
  ],
  'makes its changes in two parts': [
    'a killed process leaves every record write of a segment, or none',
    /a killed process left (records of the segments|other entries)/,
  ],
};

for (const name of Object.keys(FAULTS) as WrongServer[]) {
  const [failing, message] = FAULTS[name];
  const title = `a server of ordered keys that ${name} fails: ${failing}`;
  if (skip !== undefined) test.skip(title, skip);
  else
    test(title, async () => {
      const cases = new Map<string, () => Promise<void>>();
      const dialect = orderedKeysWith(wrongServers[name]);
      const wrong = { ...orderedKeysUnderTest, dialect, module: moduleOf(name) };
      dialectSuite((title, body) => cases.set(title, body), wrong);
      const run = cases.get(`ordered keys: ${failing}`) ?? assert.fail(failing);
      await assert.rejects(run(), { name: 'ContractBroken', message });
    });
}

const ROUNDED = 'a row whose numbers reading would round is refused, and stays as it is';
if (skip !== undefined) test.skip(ROUNDED, skip);
else {
  test(ROUNDED, async () => {
    const { url, query, drop } = await createDatabase();
    const connection = await orderedKeys.connect(url, {});
    try {
      const model = await runOperations(orderedKeys, connection, [
        {
          type: 'createCollection',
          name: 't',
          fields: [
            { name: 'id', type: 'integer', primaryKey: true },
            { name: 'n', type: 'bigint' },
          ],
        },
      ]);
      await query(`INSERT INTO keys VALUES ('t:1', '{"id":1,"n":9007199254740993}')`);
      const rename: Operation = { type: 'renameField', collection: 't', from: 'n', to: 'm' };
      const error = await expectError(runOperations(orderedKeys, connection, [rename], model), 'data_violates');
      assert.match(String(error.why), /9007199254740993/);
      const [row] = await query(`SELECT convert_from(v, 'UTF8') AS text FROM keys WHERE k = 't:1'`);
      assert.equal(row?.text, '{"id":1,"n":9007199254740993}');
    } finally {
      await connection.close();
      await drop();
    }
  });
}
