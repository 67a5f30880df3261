import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { postgresqlUnderTest, unavailable } from './kit/postgresql.ts';
import { test } from './kit/test.ts';
import { dialectSuite } from './suites/dialect-suite.ts';
import type { TestFunction } from './suites/suite.ts';

const missing = await unavailable();
const online: typeof postgresql = {
  ...postgresql,
  compile: (operation, before) =>
    postgresql.compileOnline?.(operation, before) ?? postgresql.compile(operation, before),
};

/** Those in which it matters how an operation is compiled. */
const CASES = [
  'every operation and its inverse',
  'destructive statements are those that lose values',
  'random schemas and the differences between them read back unchanged',
  'rows that violate a change are an error',
  'a foreign key that a row violates is rejected',
  'a change reaches every row',
  'names that look like code',
];
const declareSelected: TestFunction = (name, body, timeoutMs) => {
  if (CASES.some((one) => name.endsWith(one))) test(name, body, timeoutMs);
};

if (missing) test.skip('PostgreSQL, online: the dialect suite', missing);
else
  dialectSuite(declareSelected, {
    ...postgresqlUnderTest,
    name: 'PostgreSQL, online',
    dialect: online,
    randomSchemas: 20,
  });
