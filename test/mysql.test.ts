import { quoteIdentifier } from '../plugins/dialects/mysql/compile/literal.ts';
import { mysql } from '../plugins/dialects/mysql/dialect.ts';
import { freshDatabase } from './kit/mysql.ts';
import { storeUnderTest } from './kit/store-under-test.ts';
import { test } from './kit/test.ts';
import { find } from './servers/find.ts';
import { dialectSuite } from './suites/dialect-suite.ts';
import { recordStoreSuite } from './suites/record-store-suite.ts';
import { sqlSyntax } from './suites/sql-syntax.ts';

const found = await find('mysql');
if ('missing' in found) test.skip('the dialect suite on MySQL', found.missing);
else {
  dialectSuite(test, {
    ...sqlSyntax(quoteIdentifier),
    name: 'MySQL',
    dialect: mysql,
    module: new URL('../plugins/dialects/mysql/dialect.ts', import.meta.url),
    addUnsupportedObject: async (connection, table) =>
      void (await connection.query(`ALTER TABLE ${quoteIdentifier(table)} ADD p int COLUMN_FORMAT FIXED`)),
    createDatabase: () => freshDatabase(found.url),
    urlAt: (port) => `mysql://root@127.0.0.1:${port}/shop`,
    badUrls: { [new URL('/svc_test_missing', found.url).href]: 'database_missing' },
    options: { allowCopy: true },
    skip: {
      'a watcher is notified of the records that notifyOn selects':
        'the server has no change notifications: callers poll',
    },
    randomSchemas: 60,
  });
  recordStoreSuite(test, { ...storeUnderTest(mysql, () => freshDatabase(found.url)), name: 'MySQL' });
}
