import { quoteIdentifier } from '../plugins/dialects/postgresql/compile/grammar.ts';
import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { freshFolder } from './kit/pglite.ts';
import { storeUnderTest } from './kit/store-under-test.ts';
import { test } from './kit/test.ts';
import { dialectSuite } from './suites/dialect-suite.ts';
import { recordStoreSuite } from './suites/record-store-suite.ts';
import { sqlSyntax } from './suites/sql-syntax.ts';

dialectSuite(test, {
  ...sqlSyntax(quoteIdentifier),
  name: 'PGlite',
  dialect: postgresql,
  createDatabase: freshFolder,
  randomSchemas: 20,
});
recordStoreSuite(test, { ...storeUnderTest(postgresql, freshFolder), name: 'PGlite' });
