import { mariadb } from '../plugins/dialects/mariadb/dialect.ts';
import { storeOn } from './kit/approval-place.ts';
import { approvalSuite } from './suites/approval-suite.ts';
import { freshDatabase } from './kit/mysql.ts';
import { test } from './kit/test.ts';
import { find } from './servers/find.ts';

const found = await find('mariadb');
const missing = 'missing' in found ? found.missing : undefined;
const url = 'url' in found ? found.url : '';

approvalSuite(
  test,
  storeOn(mariadb, () => freshDatabase(url), missing),
);
