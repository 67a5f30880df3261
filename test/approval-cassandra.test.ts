import { cassandra } from '../plugins/dialects/cassandra/dialect.ts';
import { storeOn } from './kit/approval-place.ts';
import { approvalSuite } from './suites/approval-suite.ts';
import { freshKeyspace, unavailable } from './kit/cassandra.ts';
import { test } from './kit/test.ts';

approvalSuite(test, { ...storeOn(cassandra, freshKeyspace, unavailable), patienceMs: 4_000 });
