import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { agentSuite } from './kit/agent-suite.ts';
import { storeOn } from './kit/approval-place.ts';
import { freshFolder } from './kit/pglite.ts';
import { test } from './kit/test.ts';

agentSuite(test, { ...storeOn(postgresql, freshFolder), name: 'pglite' });
