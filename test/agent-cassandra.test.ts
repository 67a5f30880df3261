import { cassandra } from '../plugins/dialects/cassandra/dialect.ts';
import { agentSuite } from './kit/agent-suite.ts';
import { freshKeyspace, unavailable } from './kit/cassandra.ts';
import { storeUnderTest } from './kit/store-under-test.ts';
import { test } from './kit/test.ts';

agentSuite(test, { ...storeUnderTest(cassandra, freshKeyspace, unavailable), maxWriteMs: 4_000 }, { maxRecordMiB: 16 });
