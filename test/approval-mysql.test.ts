import { mysql } from '../plugins/dialects/mysql/dialect.ts';
import { storeOn } from './kit/approval-place.ts';
import { approvalSuite } from './suites/approval-suite.ts';
import { freshDatabase } from './kit/mysql.ts';
import { test } from './kit/test.ts';
import { find } from './servers/find.ts';

const found = await find('mysql');
const missing = 'missing' in found ? found.missing : undefined;
const url = 'url' in found ? found.url : '';

approvalSuite(
  test,
  storeOn(mysql, () => freshDatabase(url), missing),
);
