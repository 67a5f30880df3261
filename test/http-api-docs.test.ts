import * as assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startServer } from '../cli/approvals/server.ts';
import { openApi } from '../config/sdk/callback/api/openapi.ts';
import { docsBlocks, readPage } from './kit/docs-blocks.ts';
import { folder } from './kit/folder.ts';
import { operationsOf } from './kit/openapi.ts';
import { SERVER } from './kit/people-api.ts';
import { LONG } from './kit/project.ts';
import { test } from './kit/test.ts';
import { withGate } from './suites/gate-client.ts';

// The commands of the page, run as they are.

const PAGE = 'docs/reference/http-api.md';
const run = promisify(execFile);
const RULE = { approve: [{ role: 'deciders' }], standing: 'deciders' };

test(
  'every curl of the page works',
  () =>
    withGate({ approvals: { ...SERVER, rules: [RULE] } }, async ({ svc, refund, refunds }) => {
      const stopping = new AbortController();
      const handler = svc.approvals.handler({ stopping: stopping.signal });
      const server = await startServer({ host: '127.0.0.1', port: 0, handler, isReady: async () => true });
      const { token } = await svc.people.createToken({ id: 'cy' }, { validForMs: 600_000 });
      const { request } = await refund();
      const { requestId, executionId } = request;
      const cwd = folder({});
      const UNTIL = new Date(Date.now() + 86_400_000).toISOString();
      const env = {
        ...process.env,
        SERVER: server.url,
        TOKEN: token,
        REQUEST: requestId,
        EXECUTION: executionId,
        UNTIL,
      };
      try {
        const blocks = docsBlocks().filter(({ page, language }) => page === PAGE && language === 'sh');
        for (const { text, line } of blocks) {
          if (text.includes('/events')) {
            const child = spawn('bash', ['-c', `exec ${text}`], { env, cwd, stdio: ['ignore', 'pipe', 'inherit'] });
            const [first] = (await once(child.stdout, 'data')) as [Buffer];
            assert.match(first.toString(), /^retry: 3000\n\nid: \S+\nevent: sync\n/);
            child.kill('SIGKILL');
            continue;
          }
          const { stdout } = await run('bash', ['-c', text], { env, cwd });
          assert.ok(text.includes('>') || Object.keys(JSON.parse(stdout)).length > 0, `${PAGE}:${line}`);
        }
        assert.equal(JSON.parse(readFileSync(join(cwd, 'openapi.json'), 'utf8')).openapi, '3.1.0');
        assert.equal((await svc.approvals.get(requestId)).status, 'approved');
        assert.deepEqual(JSON.parse(JSON.stringify(refunds)), [{ orderId: '1234', amount: 15 }]);
      } finally {
        stopping.abort();
        await server.close();
      }
    }),
  LONG,
);

test('the page lists exactly the routes that the description has', () => {
  const listed = [...readPage(PAGE).matchAll(/^\| `(GET|POST) (\/\S+)` \|/gm)].map(
    ([, method = '', path = '']) => `${method} ${path.replaceAll('<', '{').replaceAll('>', '}')}`,
  );
  const described = operationsOf(openApi()).map(({ method, path }) => `${method.toUpperCase()} ${path}`);
  assert.deepEqual(listed.sort(), described.sort());
});
