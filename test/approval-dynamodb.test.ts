import { dynamodb } from '../plugins/dialects/dynamodb/dialect.ts';
import { storeOn } from './kit/approval-place.ts';
import { approvalSuite } from './suites/approval-suite.ts';
import { freshPrefix } from './kit/dynamodb.ts';
import { type OwnDynamodb, ownDynamodb, unavailable } from './kit/own-dynamodb.ts';
import { test } from './kit/test.ts';

// Not the shared server: there an index takes half a minute.
let server: Promise<OwnDynamodb> | undefined;

approvalSuite(
  test,
  storeOn(
    dynamodb,
    async () => {
      server ??= ownDynamodb();
      return freshPrefix((await server).port);
    },
    unavailable(),
  ),
);
test.after(async () => (await server)?.kill());
