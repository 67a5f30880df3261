import { mongodb } from '../plugins/dialects/mongodb/dialect.ts';
import { freshMongo, isDocumentdb, missing, mongoDialect } from './kit/mongodb.ts';
import { storeUnderTest } from './kit/store-under-test.ts';
import { test } from './kit/test.ts';
import { dialectSuite } from './suites/dialect-suite.ts';
import { recordStoreSuite } from './suites/record-store-suite.ts';

if (missing) test.skip('the dialect suite on MongoDB', missing);
else
  dialectSuite(test, {
    ...mongoDialect,
    name: 'MongoDB',
    dialect: mongodb,
    module: new URL('../plugins/dialects/mongodb/dialect.ts', import.meta.url),
    // A killed process holds the lock for as long as its lease.
    options: { leaseMs: 4000 },
    createDatabase: freshMongo,
    urlAt: (port) => `mongodb://127.0.0.1:${port}/shop`,
    randomSchemas: 20,
    skip: {
      'a watcher is notified of the records that notifyOn selects':
        'change streams need a replica set of mongod; callers poll',
      ...((await isDocumentdb()) && {
        'of concurrent updates of a row, one finds the value that all expect':
          'DocumentDB updates a document of a collection with a validator although it has stopped matching the filter',
      }),
    },
  });
recordStoreSuite(test, { ...storeUnderTest(mongodb, freshMongo, missing), name: 'MongoDB' });
