import { mysql } from '../plugins/dialects/mysql/dialect.ts';
import { agentSuite } from './kit/agent-suite.ts';
import { freshDatabase } from './kit/mysql.ts';
import { storeUnderTest } from './kit/store-under-test.ts';
import { test } from './kit/test.ts';
import { find } from './servers/find.ts';

const found = await find('mysql');
const missing = 'missing' in found ? found.missing : undefined;
const url = 'url' in found ? found.url : '';

agentSuite(
  test,
  storeUnderTest(mysql, () => freshDatabase(url), missing),
);
