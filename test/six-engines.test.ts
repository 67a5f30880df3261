import * as assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cleanEnv, scripted } from './kit/cli.ts';
import { sixEngines } from './kit/six-engines.ts';
import { test } from './kit/test.ts';
import type { TestDatabase } from './suites/test-database.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

const missing = sixEngines.flatMap((engine) => engine.missing ?? []);

if (missing.length > 0) test.skip('the example of six engines runs on all six', missing.join('; '));
else
  test(
    'the example of six engines runs on all six, and leaves nothing',
    async () => {
      const fresh: [string, TestDatabase][] = [];
      try {
        for (const engine of sixEngines) fresh.push([engine.name, await engine.createDatabase()]);
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
