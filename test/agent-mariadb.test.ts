import { mariadb } from '../plugins/dialects/mariadb/dialect.ts';
import { agentSuite } from './kit/agent-suite.ts';
import { freshDatabase } from './kit/mysql.ts';
import { storeUnderTest } from './kit/store-under-test.ts';
import { test } from './kit/test.ts';
import { find } from './servers/find.ts';

const found = await find('mariadb');
const missing = 'missing' in found ? found.missing : undefined;
const url = 'url' in found ? found.url : '';

agentSuite(
  test,
  storeUnderTest(mariadb, () => freshDatabase(url), missing),
);
