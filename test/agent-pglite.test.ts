import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { agentSuite } from './kit/agent-suite.ts';
import { freshFolder } from './kit/pglite.ts';
import { storeUnderTest } from './kit/store-under-test.ts';
import { test } from './kit/test.ts';

agentSuite(test, { ...storeUnderTest(postgresql, freshFolder), name: 'pglite' });
