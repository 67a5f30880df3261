import { mongodb } from '../plugins/dialects/mongodb/dialect.ts';
import { freshMongo, missing } from './kit/mongodb.ts';
import { storeUnderTest } from './kit/store-under-test.ts';
import { test } from './kit/test.ts';
import { approvalSuite } from './suites/approval-suite.ts';

approvalSuite(test, storeUnderTest(mongodb, freshMongo, missing));
