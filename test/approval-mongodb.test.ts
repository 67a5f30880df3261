import { mongodb } from '../plugins/dialects/mongodb/dialect.ts';
import { storeOn } from './kit/approval-place.ts';
import { approvalSuite } from './suites/approval-suite.ts';
import { freshMongo, missing } from './kit/mongodb.ts';
import { test } from './kit/test.ts';

approvalSuite(test, storeOn(mongodb, freshMongo, missing));
