import * as assert from 'node:assert/strict';
import type { Operation } from '../core/schema/operation.ts';
import { CREATE_KEYS, orderedKeys } from './kit/ordered-keys.ts';
import { freshDatabase } from './kit/postgresql.ts';
import { sixEngines } from './kit/six-engines.ts';
import { test } from './kit/test.ts';
import { approvalSuite } from './suites/approval-suite.ts';
import { dialectSuite } from './suites/dialect-suite.ts';
import { expectError } from './suites/expect-error.ts';
import { keyValueSyntax } from './suites/key-value-syntax.ts';
import { recordStoreSuite } from './suites/record-store-suite.ts';
import { runOperations } from './suites/run-operations.ts';

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

dialectSuite(test, {
  ...keyValueSyntax,
  name: 'ordered keys',
  skip,
  dialect: orderedKeys,
  module: new URL('./kit/ordered-keys.ts', import.meta.url),
  createDatabase,
  randomSchemas: 5,
});
recordStoreSuite(test, store);
approvalSuite(test, store);

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
