import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { agentSuite } from './kit/agent-suite.ts';
import { storeOn } from './kit/approval-place.ts';
import { freshDatabase, unavailable } from './kit/postgresql.ts';
import { test } from './kit/test.ts';

agentSuite(test, storeOn(postgresql, freshDatabase, await unavailable()));
