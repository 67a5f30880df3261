import * as assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { svc } from './kit/cli.ts';
import { folder } from './kit/folder.ts';
import { LONG } from './kit/project.ts';
import { test } from './kit/test.ts';

const CONFIG = `export default { product: 'shop', env: 'dev', databases: { main: { dialect: 'postgresql', url: { dev: 'pglite://./.svc/main' } } } };`;
const ENDED = /^error The process ended before the command was done\. \(interrupted\)$/m;

const endings: readonly (readonly [string, string])[] = [
  ['calls process.exit()', 'process.exit(0);'],
  ['calls process.exit(7)', 'process.exit(7);'],
  ['waits for what never happens', 'await new Promise(() => {});'],
];

for (const [what, code] of endings) {
  test(
    `a configuration that ${what} is an error, not a success`,
    async () => {
      const cwd = folder();
      writeFileSync(join(cwd, 'svc.config.mjs'), `${code}\n${CONFIG}\n`);
      const text = await svc(['db', 'migrate'], { cwd });
      assert.equal(text.status, 130, text.stderr);
      assert.match(text.stderr, ENDED);
      const json = await svc(['db', 'migrate', 'status', '--json'], { cwd });
      assert.deepEqual([json.status, JSON.parse(json.stdout).code], [130, 'interrupted'], json.stderr);
    },
    LONG,
  );
}

test(
  'a configuration that ends the process later is an error, and NODE_OPTIONS=--trace-exit names its line',
  async () => {
    const cwd = folder();
    writeFileSync(join(cwd, 'svc.config.mjs'), `setImmediate(() => process.exit(0));\n${CONFIG}\n`);
    const { status, stderr } = await svc(['db', 'migrate'], { cwd, env: { NODE_OPTIONS: '--trace-exit' } });
    assert.equal(status, 130, stderr);
    assert.match(stderr, ENDED);
    assert.match(stderr, /svc\.config\.mjs\S*:1:/);
  },
  LONG,
);

test(
  'an error that nobody catches is reported by Node alone',
  async () => {
    const cwd = folder();
    writeFileSync(join(cwd, 'svc.config.mjs'), `setImmediate(() => { throw new Error('late'); });\n${CONFIG}\n`);
    const { status, stderr } = await svc(['db', 'migrate'], { cwd });
    assert.equal(status, 1, stderr);
    assert.match(stderr, /Error: late/);
    assert.doesNotMatch(stderr, ENDED);
  },
  LONG,
);
