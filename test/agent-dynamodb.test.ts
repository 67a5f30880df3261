import { dynamodb } from '../plugins/dialects/dynamodb/dialect.ts';
import { agentSuite } from './kit/agent-suite.ts';
import { freshPrefix } from './kit/dynamodb.ts';
import { type OwnDynamodb, ownDynamodb, unavailable } from './kit/own-dynamodb.ts';
import { storeUnderTest } from './kit/store-under-test.ts';
import { test } from './kit/test.ts';

// Not the shared server: there an index takes half a minute.
let server: Promise<OwnDynamodb> | undefined;

agentSuite(
  test,
  storeUnderTest(
    dynamodb,
    async () => {
      server ??= ownDynamodb();
      return freshPrefix((await server).port);
    },
    unavailable(),
  ),
);
test.after(async () => (await server)?.kill());
