import { mongodb } from '../plugins/dialects/mongodb/dialect.ts';
import { storeOn } from './kit/approval-place.ts';
import { dialectSuite } from './kit/dialect.ts';
import { freshMongo, missing, mongoWords } from './kit/mongodb.ts';
import { recordStoreSuite } from './kit/record-store.ts';
import { test } from './kit/test.ts';

if (missing) test.skip('the dialect suite on MongoDB', missing);
else
  dialectSuite(test, {
    ...mongoWords,
    name: 'MongoDB',
    dialect: mongodb,
    fresh: freshMongo,
    cases: 20,
    skip: {
      'who watches hears of what its definition tells, and of nothing else':
        'change streams need a replica set of mongod; who waits polls instead',
    },
  });
recordStoreSuite(test, { ...storeOn(mongodb, freshMongo, missing), name: 'MongoDB' });
