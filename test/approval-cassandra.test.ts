import { cassandra } from '../plugins/dialects/cassandra/dialect.ts';
import { freshKeyspace, unavailable } from './kit/cassandra.ts';
import { storeUnderTest } from './kit/store-under-test.ts';
import { test } from './kit/test.ts';
import { approvalSuite } from './suites/approval-suite.ts';

approvalSuite(test, { ...storeUnderTest(cassandra, freshKeyspace, unavailable), maxWriteMs: 4_000 });
