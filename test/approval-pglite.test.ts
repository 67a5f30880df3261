import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { storeOn } from './kit/approval-place.ts';
import { approvalSuite } from './suites/approval-suite.ts';
import { freshFolder } from './kit/pglite.ts';
import { test } from './kit/test.ts';

approvalSuite(test, { ...storeOn(postgresql, freshFolder), name: 'pglite' });
