import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { freshDatabase, unavailable } from './kit/postgresql.ts';
import { storeUnderTest } from './kit/store-under-test.ts';
import { test } from './kit/test.ts';
import { approvalSuite } from './suites/approval-suite.ts';

approvalSuite(test, storeUnderTest(postgresql, freshDatabase, await unavailable()));
