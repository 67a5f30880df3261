import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { quote } from '../plugins/dialects/postgresql/grammar.ts';
import { storeOn } from './kit/approval-place.ts';
import { dialectSuite } from './kit/dialect.ts';
import { freshFolder } from './kit/pglite.ts';
import { recordStoreSuite } from './kit/record-store.ts';
import { sqlWords } from './kit/sql-words.ts';
import { test } from './kit/test.ts';

dialectSuite(test, { ...sqlWords(quote), name: 'PGlite', dialect: postgresql, fresh: freshFolder, cases: 20 });
recordStoreSuite(test, { ...storeOn(postgresql, freshFolder), name: 'PGlite' });
