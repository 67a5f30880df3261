import * as assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freshKeyspace } from './kit/cassandra.ts';
import { cleanEnv, scripted } from './kit/cli.ts';
import { freshPrefix } from './kit/dynamodb.ts';
import { freshMongo } from './kit/mongodb.ts';
import { freshDatabase as freshMysql } from './kit/mysql.ts';
import { freshDatabase } from './kit/postgresql.ts';
import { test } from './kit/test.ts';
import { find } from './servers/find.ts';
import type { TestDatabase } from './suites/test-database.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

/** A new database on each available engine. */
const databases: Readonly<Record<string, (url: string) => TestDatabase | Promise<TestDatabase>>> = {
  postgresql: () => freshDatabase(),
  mysql: (url) => freshMysql(url),
  mariadb: (url) => freshMysql(url),
  mongodb: () => freshMongo(),
  dynamodb: (url) => freshPrefix(Number(new URL(url).port)),
  cassandra: () => freshKeyspace(),
};

const missing: string[] = [];
const servers = new Map<string, string>();
for (const engine of Object.keys(databases)) {
  const found = await find(engine as Parameters<typeof find>[0]);
  if ('missing' in found) missing.push(found.missing);
  else servers.set(engine, found.url);
}

if (missing.length > 0) test.skip('the example of six engines runs on all six', missing.join('; '));
else
  test(
    'the example of six engines runs on all six, and leaves nothing',
    async () => {
      const fresh: [string, TestDatabase][] = [];
      try {
        for (const [engine, url] of servers) {
          const make = databases[engine];
          if (make) fresh.push([engine, await make(url)]);
        }
        const urls = Object.fromEntries(fresh.map(([engine, { url }]) => [`${engine.toUpperCase()}_URL`, url]));
        const local = { AWS_ACCESS_KEY_ID: 'local', AWS_SECRET_ACCESS_KEY: 'local', AWS_REGION: 'us-east-1' };
        const [node, ...args] = scripted(join(root, 'examples', 'six-engines', 'run.ts'));
        const env = cleanEnv({ ...urls, ...local });
        const { status, stdout, stderr } = spawnSync(node, args, {
          cwd: root,
          env,
          encoding: 'utf8',
          timeout: 240_000,
        });
        assert.equal(status, 0, `${stdout}\n${stderr}`);
        assert.match(stdout, /^ +postgresql +mysql +mariadb +mongodb +dynamodb +cassandra$/m);
        assert.match(stdout, /^rolled back, remaining( {2,}nothing){6}$/m);
        assert.match(stdout, /^indexes( {2,}orders_customer){6}$/m);
      } finally {
        for (const [, { drop }] of fresh) await drop();
      }
    },
    { timeoutMs: 300_000 },
  );
