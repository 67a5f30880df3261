import { mongodb } from '../plugins/dialects/mongodb/dialect.ts';
import { storeOn } from './kit/approval-place.ts';
import { freshMongo, missing, mongoDialect } from './kit/mongodb.ts';
import { test } from './kit/test.ts';
import { dialectSuite } from './suites/dialect-suite.ts';
import { recordStoreSuite } from './suites/record-store-suite.ts';

if (missing) test.skip('the dialect suite on MongoDB', missing);
else
  dialectSuite(test, {
    ...mongoDialect,
    name: 'MongoDB',
    dialect: mongodb,
    createDatabase: freshMongo,
    cases: 20,
    skip: {
      'who watches hears of what its definition tells, and of nothing else':
        'change streams need a replica set of mongod; who waits polls instead',
    },
  });
recordStoreSuite(test, { ...storeOn(mongodb, freshMongo, missing), name: 'MongoDB' });
