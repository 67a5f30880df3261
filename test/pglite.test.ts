import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { dialectSuite } from './kit/dialect.ts';
import { freshFolder } from './kit/pglite.ts';
import { test } from './kit/test.ts';

dialectSuite(test, { name: 'PGlite', dialect: postgresql, fresh: freshFolder, cases: 20 });
