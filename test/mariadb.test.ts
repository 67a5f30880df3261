import { mariadb } from '../plugins/dialects/mariadb/dialect.ts';
import { quote } from '../plugins/dialects/mysql/quote.ts';
import { storeOn } from './kit/approval-place.ts';
import { dialectSuite } from './kit/dialect.ts';
import { freshDatabase } from './kit/mysql.ts';
import { recordStoreSuite } from './kit/record-store.ts';
import { sqlWords } from './kit/sql-words.ts';
import { test } from './kit/test.ts';
import { find } from './servers/find.ts';

const found = await find('mariadb');
if ('missing' in found) test.skip('the dialect suite on MariaDB', found.missing);
else {
  dialectSuite(test, {
    ...sqlWords(quote),
    name: 'MariaDB',
    dialect: mariadb,
    fresh: () => freshDatabase(found.url),
    options: { allowCopy: true },
    skip: {
      'who watches hears of what its definition tells, and of nothing else':
        'the server tells nobody: who waits asks again',
    },
    cases: 60,
  });
  recordStoreSuite(test, { ...storeOn(mariadb, () => freshDatabase(found.url)), name: 'MariaDB' });
}
