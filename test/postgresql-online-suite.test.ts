import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { postgresqlUnderTest, unavailable } from './kit/postgresql.ts';
import { test } from './kit/test.ts';
import { dialectSuite } from './suites/dialect-suite.ts';

const missing = await unavailable();
const online: typeof postgresql = {
  ...postgresql,
  compile: (operation, before) =>
    postgresql.compileOnline?.(operation, before) ?? postgresql.compile(operation, before),
};
if (missing) test.skip('the dialect suite on PostgreSQL, online', missing);
else dialectSuite(test, { ...postgresqlUnderTest, dialect: online, randomSchemas: 20 });
