import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { quote } from '../plugins/dialects/postgresql/grammar.ts';
import { storeOn } from './kit/approval-place.ts';
import { dialectSuite } from './kit/dialect.ts';
import { freshDatabase, unavailable } from './kit/postgresql.ts';
import { recordStoreSuite } from './kit/record-store.ts';
import { sqlWords } from './kit/sql-words.ts';
import { test } from './kit/test.ts';

const missing = await unavailable();
if (missing) test.skip('the dialect suite on PostgreSQL', missing);
else
  dialectSuite(test, { ...sqlWords(quote), name: 'PostgreSQL', dialect: postgresql, fresh: freshDatabase, cases: 60 });
recordStoreSuite(test, { ...storeOn(postgresql, freshDatabase, missing), name: 'PostgreSQL' });
