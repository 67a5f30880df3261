import { cassandra } from '../plugins/dialects/cassandra/dialect.ts';
import { agentSuite } from './kit/agent-suite.ts';
import { storeOn } from './kit/approval-place.ts';
import { freshKeyspace, unavailable } from './kit/cassandra.ts';
import { test } from './kit/test.ts';

agentSuite(test, { ...storeOn(cassandra, freshKeyspace, unavailable), patienceMs: 4_000 }, { holdsMiB: 16 });
