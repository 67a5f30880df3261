import { mariadb } from '../plugins/dialects/mariadb/dialect.ts';
import { quoteIdentifier } from '../plugins/dialects/mysql/compile/literal.ts';
import { storeOn } from './kit/approval-place.ts';
import { dialectSuite } from './suites/dialect-suite.ts';
import { freshDatabase } from './kit/mysql.ts';
import { recordStoreSuite } from './suites/record-store-suite.ts';
import { sqlSyntax } from './suites/sql-syntax.ts';
import { test } from './kit/test.ts';
import { find } from './servers/find.ts';

const found = await find('mariadb');
if ('missing' in found) test.skip('the dialect suite on MariaDB', found.missing);
else {
  dialectSuite(test, {
    ...sqlSyntax(quoteIdentifier),
    name: 'MariaDB',
    dialect: mariadb,
    createDatabase: () => freshDatabase(found.url),
    options: { allowCopy: true },
    skip: {
      'who watches hears of what its definition tells, and of nothing else':
        'the server tells nobody: who waits asks again',
    },
    cases: 60,
  });
  recordStoreSuite(test, { ...storeOn(mariadb, () => freshDatabase(found.url)), name: 'MariaDB' });
}
