import * as assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { assertDocumentedOutput } from './kit/json-output.ts';
import { test } from './kit/test.ts';

const kit = new URL('./kit/test.ts', import.meta.url).href;
const runner = fileURLToPath(new URL('./run.ts', import.meta.url));
const folder = await mkdtemp(join(tmpdir(), 'svc-kit-'));
await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
test.after(() => rm(folder, { recursive: true }));

let files = 0;
async function testFile(text: string): Promise<string> {
  files += 1;
  const file = join(folder, `${files}.test.ts`);
  await writeFile(file, `import { test } from ${JSON.stringify(kit)};\n${text}`);
  return file;
}

/** Runs a TypeScript file in its own process. */
function node(...args: string[]): Promise<{ status: number | null; output: string; stdout: string }> {
  return new Promise((settle) => {
    const child = execFile(process.execPath, ['--import', 'tsx', ...args], (_error, stdout, stderr) => {
      settle({ status: child.exitCode, output: stdout + stderr, stdout });
    });
  });
}

const cases: [name: string, text: string, status: number, summary: string, output: RegExp][] = [
  ['a good file', `test('a', () => {}); test('b', async () => {});`, 0, '2 passed, 0 failed, 0 skipped', /Passed/],
  [
    'a top-level await before the first test',
    `await new Promise((go) => setTimeout(go, 50)); test('a', () => {});`,
    0,
    '1 passed, 0 failed, 0 skipped',
    /./,
  ],
  [
    'a skip, with its reason',
    `test('a', () => {}); test.skip('b', 'no server');`,
    0,
    '1 passed, 0 failed, 1 skipped',
    /# skipped: b: no server/,
  ],
  [
    'a test that fails',
    `test('a', () => { throw new Error('broken'); }); test('b', () => {});`,
    1,
    '1 passed, 1 failed, 0 skipped',
    /"a"[\s\S]*broken/,
  ],
  [
    'a test that throws a value other than an Error',
    `test('a', () => { throw 'broken'; }); test('b', () => {});`,
    1,
    '1 passed, 1 failed, 0 skipped',
    /threw broken/,
  ],
  [
    'a before hook that throws',
    `test.before(() => { throw new Error('the hook failed'); }); test('a', () => {});`,
    1,
    '0 passed, 1 failed, 0 skipped',
    /before hook failed[\s\S]*the hook failed/,
  ],
  [
    'an after hook that throws',
    `test.after(() => { throw new Error('the hook failed'); }); test('a', () => {});`,
    1,
    '1 passed, 1 failed, 0 skipped',
    /after hook failed[\s\S]*the hook failed/,
  ],
  [
    'a test that hangs with something open',
    `test('slow', () => new Promise((go) => setTimeout(go, 1000)), { timeoutMs: 20 }); test('b', () => {});`,
    1,
    '1 passed, 1 failed, 0 skipped',
    /"slow" did not end within 20 ms/,
  ],
  [
    'a test that waits forever',
    `test('idle', () => new Promise(() => {}), { timeoutMs: 20 });`,
    1,
    '0 passed, 1 failed, 0 skipped',
    /"idle" did not end within 20 ms/,
  ],
  [
    'a hook that hangs',
    `test.before(() => new Promise(() => {}), { timeoutMs: 20 }); test('a', () => {});`,
    1,
    '0 passed, 1 failed, 0 skipped',
    /the before hook did not end within 20 ms/,
  ],
  [
    'something left open',
    `test('a', () => { setInterval(() => {}, 1000); });`,
    1,
    '1 passed, 1 failed, 0 skipped',
    /still open .* Timeout/,
  ],
  ['no test', 'void test;', 1, '0 passed, 1 failed, 0 skipped', /no test was declared/],
  [
    'a file that throws while loading',
    `test('a', () => {}); throw new Error('at load');`,
    1,
    '0 passed, 1 failed, 0 skipped',
    /at load/,
  ],
  [
    'a file whose top-level await never settles',
    `test('a', () => {}); await new Promise(() => {});`,
    1,
    '0 passed, 1 failed, 0 skipped',
    /did not load/,
  ],
  [
    'a test that ends the process with status 0',
    `test('a', () => process.exit(0)); test('b', () => {});`,
    1,
    '0 passed, 2 failed, 0 skipped',
    /ended before the tests did/,
  ],
  [
    'a test declared too late',
    `test('a', () => { test('inner', () => {}); });`,
    1,
    '1 passed, 1 failed, 0 skipped',
    /"inner" was declared after/,
  ],
  [
    'an unhandled rejection',
    `test('a', async () => { Promise.reject(new Error('stray')); await new Promise((go) => setTimeout(go, 1000)); });`,
    1,
    '0 passed, 1 failed, 0 skipped',
    /stray/,
  ],
  [
    'a failure after the last test',
    `test('a', () => { setTimeout(() => { throw new Error('afterwards'); }, 50); });`,
    1,
    '1 passed, 1 failed, 0 skipped',
    /afterwards/,
  ],
];

for (const [name, text, status, summary, expected] of cases) {
  test(name, async () => {
    const result = await node(await testFile(text));
    assert.match(result.output, expected);
    const printed = /^# .*\.test\.ts: (.+)$/m.exec(result.stdout)?.[1];
    assert.deepEqual({ status: result.status, summary: printed }, { status, summary }, result.output);
  });
}

test('the runner totals the results, prints failures in full, and ends with one line', async () => {
  const good = await testFile(`test('a', () => {}); test.skip('b', 'no server');`);
  const bad = await testFile(`test('c', () => { throw new Error('broken'); }); test('d', () => {});`);
  const { status, output, stdout } = await node(runner, good, bad);
  assert.equal(stdout.trimEnd().split('\n').at(-1), '2 passed, 1 failed, 1 skipped');
  assert.equal(stdout.match(/^\d+ passed, \d+ failed, \d+ skipped$/gm)?.length, 1);
  assert.match(output, /skipped: b: no server/);
  assert.match(output, /"c"[\s\S]*broken/);
  assert.equal(status, 1);
});

test('the runner fails if a file is killed before its summary line, and if no file matches', async () => {
  const killed = await testFile(`test('a', () => process.kill(process.pid, 'SIGKILL'));`);
  const { status, stdout } = await node(runner, killed);
  assert.match(stdout, /ended with SIGKILL\n0 passed, 1 failed, 0 skipped\n$/);
  assert.equal(status, 1);
  const none = await node(runner, 'there-is-no-such-test');
  assert.match(none.stdout, /0 passed, 1 failed, 0 skipped\n$/);
  assert.equal(none.status, 1);
});

test('the runner succeeds if all tests pass', async () => {
  const { status, stdout } = await node(runner, await testFile(`test('a', () => {});`));
  assert.match(stdout, /1 passed, 0 failed, 0 skipped\n$/);
  assert.equal(status, 0);
});

test('output with --json that its schema does not describe fails a test', () => {
  const checks = [{ name: 'node', result: 'ok', message: '20.19.0' }];
  const printed = (data: object) => JSON.stringify({ ok: true, code: 'ok', ...data, nextActions: [] }, null, 2);
  assertDocumentedOutput(['doctor', '--json'], printed({ checks }));
  assertDocumentedOutput(['no-such-command', '--json'], printed({ usage: 'svc <command>', commands: [] }));
  for (const wrong of [{ checks, more: 1 }, { checks: [{ ...checks[0], result: 'fine' }] }, {}]) {
    assert.throws(
      () => assertDocumentedOutput(['doctor', '--json'], printed(wrong)),
      /output-schemas\.ts does not describe/,
    );
  }
});
