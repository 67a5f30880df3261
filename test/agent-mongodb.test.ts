import { mongodb } from '../plugins/dialects/mongodb/dialect.ts';
import { agentSuite } from './kit/agent-suite.ts';
import { storeOn } from './kit/approval-place.ts';
import { freshMongo, missing } from './kit/mongodb.ts';
import { test } from './kit/test.ts';

agentSuite(test, storeOn(mongodb, freshMongo, missing), { holdsMiB: 16 });
