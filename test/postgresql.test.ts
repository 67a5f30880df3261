import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { dialectSuite } from './kit/dialect.ts';
import { freshDatabase, unavailable } from './kit/postgresql.ts';
import { test } from './kit/test.ts';

const missing = await unavailable();
if (missing) test.skip('the dialect suite on PostgreSQL', missing);
else dialectSuite(test, { name: 'PostgreSQL', dialect: postgresql, fresh: freshDatabase, cases: 60 });
