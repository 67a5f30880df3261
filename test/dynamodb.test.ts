import { dynamodb } from '../plugins/dialects/dynamodb/dialect.ts';
import { storeOn } from './kit/approval-place.ts';
import { dialectSuite } from './kit/dialect.ts';
import { dynamodbWords, freshPrefix } from './kit/dynamodb.ts';
import { ownDynamodb, unavailable } from './kit/own-dynamodb.ts';
import { recordStoreSuite } from './kit/record-store.ts';
import { test } from './kit/test.ts';

const missing = unavailable();
if (missing) test.skip('the dialect suite on DynamoDB', missing);
else {
  // Not the shared server: there an index takes half a minute, and the suite makes hundreds.
  const server = await ownDynamodb();
  test.after(() => server.kill());
  dialectSuite(test, {
    name: 'DynamoDB',
    dialect: dynamodb,
    fresh: async () => freshPrefix(server.port),
    ...dynamodbWords,
    skip: {
      'who watches hears of what its definition tells, and of nothing else':
        'DynamoDB tells of no write; streams are the application’s',
    },
    cases: 20,
  });
  recordStoreSuite(test, { ...storeOn(dynamodb, async () => freshPrefix(server.port)), name: 'DynamoDB' });
}
