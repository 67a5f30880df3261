import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { freshDatabase, postgresqlUnderTest, unavailable } from './kit/postgresql.ts';
import { storeUnderTest } from './kit/store-under-test.ts';
import { test } from './kit/test.ts';
import { dialectSuite } from './suites/dialect-suite.ts';
import { recordStoreSuite } from './suites/record-store-suite.ts';

const missing = await unavailable();
if (missing) test.skip('the dialect suite on PostgreSQL', missing);
else {
  dialectSuite(test, { ...postgresqlUnderTest, randomSchemas: 60 });
}
recordStoreSuite(test, { ...storeUnderTest(postgresql, freshDatabase, missing), name: 'PostgreSQL' });
