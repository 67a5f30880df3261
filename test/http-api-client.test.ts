import * as assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { startServer } from '../cli/approvals/server.ts';
import { type DocsBlock, docsBlocks } from './kit/docs-blocks.ts';
import { folder } from './kit/folder.ts';
import { installFolder } from './kit/install-folder.ts';
import { SERVER } from './kit/people-api.ts';
import { LONG } from './kit/project.ts';
import { test } from './kit/test.ts';
import { withGate } from './suites/gate-client.ts';

// A client is generated from the description that a server answers, by a generator that knows nothing of svc.

const own = new URL('./clients/', import.meta.url);
const root = fileURLToPath(new URL('../', import.meta.url));
const run = promisify(execFile);

/** The program of the page about the API. */
function exampleOfPage(): string {
  const isExample = ({ page, language }: DocsBlock) => page.endsWith('http-api.md') && language === 'typescript';
  const example = docsBlocks().find(isExample);
  assert.ok(example);
  return `declare const SERVER: string;\ndeclare const TOKEN: string;\n${example.text}`;
}

/** What the compiler says of a folder. */
async function compile(cwd: string): Promise<string> {
  const { stdout } = await run(join(root, 'node_modules/.bin/tsc'), ['-p', cwd]).catch((failed) => failed);
  return stdout;
}

const TSCONFIG = {
  compilerOptions: {
    ...{ strict: true, noUncheckedIndexedAccess: true, noEmit: true },
    ...{ target: 'ES2023', lib: ['ES2023', 'DOM', 'DOM.Iterable'], module: 'ESNext', moduleResolution: 'Bundler' },
    ...{ typeRoots: [join(root, 'node_modules/@types')], types: ['node'] },
  },
  include: ['.'],
};

const masked = { orderId: '1', amount: 5, card: { masked: true } };
const FOUND = {
  me: ['shop', 'cy', 'token'],
  login: 'none',
  waiting: 2,
  requests: [masked, { orderId: '2', amount: 6 }],
  first: 'list them',
  masked,
  wrong: [422, 'approval_parameters_invalid', 'amount'],
  decided: ['approved', 'approved'],
  late: [409, 'approval_decided', 'approved'],
  events: ['approved by cy'],
  audit: [
    ['revealed', 'cy'],
    ['approved', 'cy'],
  ],
  execution: ['of no agent', ['approved']],
  unknown: [404, 'approval_unknown'],
  denied: [401, 'token_invalid'],
};

const name =
  'a client generated from openapi.json compiles under strict, and lists, shows, decides and follows requests';
const missing = installFolder(own, '@hey-api/openapi-ts');
if (missing !== undefined) test.skip(name, missing);
else
  test(
    name,
    () =>
      withGate({ approvals: SERVER }, async ({ svc, refund, refunds }) => {
        const stopping = new AbortController();
        const handler = svc.approvals.handler({ stopping: stopping.signal });
        const server = await startServer({ host: '127.0.0.1', port: 0, handler, isReady: async () => true });
        try {
          const { token } = await svc.people.createToken({ id: 'cy' }, { validForMs: 600_000 });
          await refund({ orderId: '1', amount: 5, card: '4111-secret' });
          await refund({ orderId: '2', amount: 6 });
          const cwd = folder({ 'tsconfig.json': TSCONFIG, 'page.ts': exampleOfPage() });
          const generator = fileURLToPath(new URL('node_modules/.bin/openapi-ts', own));
          const options = ['--output', join(cwd, 'generated'), '--client', '@hey-api/client-fetch', '--no-log-file'];
          await run(generator, ['--input', `${server.url}/api/v1/openapi.json`, ...options], { cwd });
          cpSync(fileURLToPath(new URL('program.ts', own)), join(cwd, 'program.ts'));
          assert.equal(await compile(cwd), '');
          const outfile = join(cwd, 'program.mjs');
          const bundle = { bundle: true, platform: 'node', format: 'esm', outfile } as const;
          await build({ ...bundle, absWorkingDir: cwd, entryPoints: ['program.ts'], logLevel: 'silent' });
          const { stdout } = await run(process.execPath, [outfile, server.url, token], { timeout: 60_000 });
          assert.deepEqual(JSON.parse(stdout), FOUND);
          assert.deepEqual(JSON.parse(JSON.stringify(refunds)), [{ orderId: '1', amount: 4, card: '4111-secret' }]);
        } finally {
          stopping.abort();
          await server.close();
        }
      }),
    LONG,
  );
