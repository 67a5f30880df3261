import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { agentSuite } from './kit/agent-suite.ts';
import { freshDatabase, unavailable } from './kit/postgresql.ts';
import { storeUnderTest } from './kit/store-under-test.ts';
import { test } from './kit/test.ts';

agentSuite(test, storeUnderTest(postgresql, freshDatabase, await unavailable()));
