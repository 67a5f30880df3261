import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { freshFolder } from './kit/pglite.ts';
import { postgresqlUnderTest } from './kit/postgresql.ts';
import { storeUnderTest } from './kit/store-under-test.ts';
import { test } from './kit/test.ts';
import { dialectSuite } from './suites/dialect-suite.ts';
import { recordStoreSuite } from './suites/record-store-suite.ts';

dialectSuite(test, {
  ...postgresqlUnderTest,
  name: 'PGlite',
  createDatabase: freshFolder,
  skip: {
    'a deadline does not depend on the clock of the process': 'PGlite runs in the process and uses its clock',
  },
});
recordStoreSuite(test, { ...storeUnderTest(postgresql, freshFolder), name: 'PGlite' });
