import { dynamodb } from '../plugins/dialects/dynamodb/dialect.ts';
import { dynamodbSyntax, freshPrefix } from './kit/dynamodb.ts';
import { ownDynamodb, unavailable } from './kit/own-dynamodb.ts';
import { storeUnderTest } from './kit/store-under-test.ts';
import { test } from './kit/test.ts';
import { dialectSuite } from './suites/dialect-suite.ts';
import { recordStoreSuite } from './suites/record-store-suite.ts';

const missing = unavailable();
if (missing) test.skip('the dialect suite on DynamoDB', missing);
else {
  // Not the shared server, where an index takes half a minute: the suite creates hundreds.
  const server = await ownDynamodb();
  test.after(() => server.kill());
  dialectSuite(test, {
    name: 'DynamoDB',
    dialect: dynamodb,
    module: new URL('../plugins/dialects/dynamodb/dialect.ts', import.meta.url),
    // A killed process holds the lock for as long as its lease.
    options: { leaseMs: 4000 },
    createDatabase: async () => freshPrefix(server.port),
    urlAt: (port) => `dynamodb://127.0.0.1:${port}/shop`,
    ...dynamodbSyntax,
    skip: {
      'a watcher is notified of the records that notifyOn selects':
        'DynamoDB has no change notifications; streams are left to the application',
    },
    randomSchemas: 20,
  });
  recordStoreSuite(test, { ...storeUnderTest(dynamodb, async () => freshPrefix(server.port)), name: 'DynamoDB' });
}
