import { mongodb } from '../plugins/dialects/mongodb/dialect.ts';
import { agentSuite } from './kit/agent-suite.ts';
import { freshMongo, missing } from './kit/mongodb.ts';
import { storeUnderTest } from './kit/store-under-test.ts';
import { test } from './kit/test.ts';

agentSuite(test, storeUnderTest(mongodb, freshMongo, missing), { maxRecordMiB: 16 });
