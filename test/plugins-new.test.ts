import * as assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { version } from '../core/version.ts';
import { svc } from './kit/cli.ts';
import { folder } from './kit/folder.ts';
import { terminal } from './kit/terminal.ts';
import { test } from './kit/test.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
/** The arguments for each package. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  'svc-dialect-my-first': ['dialect', 'my-first'],
  'svc-dialect-my-second': ['dialect', 'my-second', '--sql'],
  'svc-dialect-my-third': ['dialect', 'my-third', '--key-value'],
  'svc-dialect-my-fourth': ['dialect', 'my-fourth', '--sql-server'],
  'svc-dialect-my-fifth': ['dialect', 'my-fifth', '--key-value-server'],
  'svc-channel-my-first': ['channel', 'my-first'],
  'svc-broker-my-first': ['broker', 'my-first', '--port', '7654'],
};
const SLOW = { timeoutMs: 600_000 };

const cwd = folder();
/** For what the suites of the packages create. */
const temporary = folder();
symlinkSync(join(root, 'node_modules'), join(cwd, 'node_modules'));
const packages = Object.keys(PACKAGES);
const read = (file: string) => readFileSync(join(cwd, file), 'utf8');

test('svc plugins new creates a package of each kind, and a dialect for each kind of engine', async () => {
  for (const [name, args] of Object.entries(PACKAGES)) {
    const { status, stdout, stderr } = await svc(['plugins', 'new', ...args, '--json'], {
      cwd,
      env: { SVC_SDK_SPEC: 'file:../svc-sdk.tgz' },
    });
    assert.equal(status, 0, stderr);
    const { created, nextActions } = JSON.parse(stdout);
    assert.deepEqual(nextActions, [`cd ${name}`, 'npm install', 'npm test']);
    for (const file of created) assert.ok(existsSync(join(cwd, file)), file);
    const manifest = JSON.parse(read(`${name}/package.json`));
    assert.equal(manifest.name, name);
    assert.equal(manifest.devDependencies['@svc/sdk'], 'file:../svc-sdk.tgz');
    assert.equal(manifest.peerDependencies['@svc/sdk'], `^${version}`);
  }
  const brokerTest = read('svc-broker-my-first/test/suite.test.ts');
  assert.match(brokerTest, /port: 7654 }/);
  for (const member of ['listen', 'send', 'takeDeadLetters', 'refuse', 'close', '// Restarts.* restart'])
    assert.match(brokerTest, new RegExp(`^ .*${member}\\b`, 'm'));
  assert.match(read('svc-channel-my-first/README.md'), /store: \{ database: 'main' \}/);
  assert.match(read('svc-dialect-my-third/README.md'), /1\. `openDatabase` in `src\/database\.ts`/);
  assert.match(read('svc-dialect-my-fourth/README.md'), /1\. a server for the tests.*`export MY_FOURTH_URL=my-fourth:/);
  assert.match(read('svc-dialect-my-fifth/README.md'), /2\. `openServer` in `src\/server\.ts`/);
  assert.match(read('svc-dialect-my-second/README.md'), /1\. `openDriver` in `src\/database\.ts`/);
});

test(
  'the created packages compile under strict rules',
  async () => {
    // One program for all, compiled against the sources instead of an installed package.
    const tsconfig = JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8'));
    const paths = Object.entries<string[]>(tsconfig.compilerOptions.paths).map(
      ([name, [file = '']]) => [name, [join(root, file)]] as const,
    );
    const own = JSON.parse(read(`${packages[0]}/tsconfig.json`)).compilerOptions;
    const { rootDir: _, outDir: __, ...rules } = own;
    const compilerOptions = {
      ...rules,
      noEmit: true,
      resolveJsonModule: true,
      lib: tsconfig.compilerOptions.lib,
      jsx: tsconfig.compilerOptions.jsx,
      jsxImportSource: tsconfig.compilerOptions.jsxImportSource,
      typeRoots: [join(root, 'node_modules/@types')],
      paths: Object.fromEntries(paths),
    };
    writeFileSync(join(cwd, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: packages }));
    const { status, output } = await node(join(root, 'node_modules/typescript/bin/tsc'), '-p', cwd);
    assert.equal(status, 0, output);
  },
  SLOW,
);

test(
  'the suite of a created package runs and reports what is left to implement',
  async () => {
    for (const [name, args] of Object.entries(PACKAGES)) {
      if (name.startsWith('svc-channel')) continue;
      const file = join(cwd, name, 'test/suite.test.ts');
      const { status, output } = await node('--test-reporter=tap', '--import', import.meta.resolve('tsx'), file);
      assert.equal(status, 1, output);
      assert.match(output, /The contract requires: /, name);
      assert.match(output, /To do in (src\/(index|database)|test\/suite\.test)\.ts: /, name);
      assert.doesNotMatch(output, /^# tests 0$/m, name);
      if (args.length > 2 && name.startsWith('svc-dialect')) assert.match(output, /^# skipped [1-9]/m, name);
      if (name.startsWith('svc-broker')) {
        const todos = new Set([...output.matchAll(/To do in [^\n]*/g)].map(([text]) => text));
        assert.equal(todos.size, 1, [...todos].join('\n'));
      }
    }
    const left = readdirSync(temporary).filter((name) => name.startsWith('svc-'));
    assert.deepEqual(left, [], 'the databases of cases that failed are dropped');
  },
  SLOW,
);

test(
  'the suite of a created channel passes, with its buttons',
  async () => {
    const file = join(cwd, 'svc-channel-my-first/test/suite.test.ts');
    const { status, output } = await node('--test-reporter=tap', '--import', import.meta.resolve('tsx'), file);
    assert.equal(status, 0, output);
    assert.match(output, /^# skipped 0$/m);
    assert.match(output, /^ok .* - my-first: a press decides its request/m);
  },
  SLOW,
);

test('existing files are not overwritten, and an invalid name or kind is rejected', async () => {
  const before = readdirSync(cwd);
  const again = await svc(['plugins', 'new', 'channel', 'my-first'], { cwd });
  assert.notEqual(again.status, 0);
  assert.match(again.stderr, /svc-channel-my-first already exists\.[\s\S]*Nothing was written/);
  for (const name of ['Pager', '../up']) {
    const { status, stderr } = await svc(['plugins', 'new', 'channel', '--', name], { cwd });
    assert.notEqual(status, 0, name);
    assert.match(stderr, /is not a valid plugin name/, name);
  }
  const near = await svc(['plugins', 'new', 'chanel', 'pager', '--json'], { cwd });
  const { code, nextActions } = JSON.parse(near.stdout);
  assert.deepEqual([code, nextActions], ['usage', ['Did you mean "channel"?']]);
  assert.deepEqual(readdirSync(cwd), before);
});

test('a flag of another kind and an invalid port are rejected', async () => {
  const before = readdirSync(cwd);
  for (const [args, message] of [
    [['channel', 'pager', '--sql'], /--sql is not for a channel/],
    [['broker', 'pager', '--key-value'], /--key-value is not for a broker/],
    [['channel', 'pager', '--sql-server'], /--sql-server is not for a channel/],
    [['dialect', 'pager', '--sql', '--key-value'], /--sql and --key-value exclude each other/],
    [['dialect', 'pager', '--sql-server', '--sql'], /--sql and --sql-server exclude each other/],
    [['dialect', 'pager', '--port', '5'], /--port is not for a dialect/],
    [['broker', 'pager', '--port', '70000'], /"70000" is not a port/],
    [['broker', 'pager', '--port', '4222x'], /"4222x" is not a port/],
  ] as const) {
    const { status, stderr } = await svc(['plugins', 'new', ...args], { cwd });
    assert.equal(status, 2, stderr);
    assert.match(stderr, message);
    assert.match(stderr, /Nothing was written/);
  }
  assert.deepEqual(readdirSync(cwd), before);
});

test('the port of a broker is prompted for; without a terminal the error names the flag', async () => {
  const { status, stdout } = await svc(['plugins', 'new', 'broker', 'queue', '--json'], { cwd });
  const { code, nextActions } = JSON.parse(stdout);
  assert.deepEqual(
    [status, code, nextActions],
    [2, 'confirmation_required', ['svc plugins new broker queue --port <port>']],
  );
  assert.ok(!existsSync(join(cwd, 'svc-broker-queue')));
  const { until, type, ended } = terminal(['plugins', 'new', 'broker', 'queue'], { cwd });
  await until('The port of the queue server');
  type('5671\r');
  assert.equal(await ended, 0);
  assert.match(read('svc-broker-queue/test/suite.test.ts'), /port: 5671 }/);
});

function node(...args: string[]): Promise<{ status: number | null; output: string }> {
  return new Promise((settle) => {
    const env = {
      ...process.env,
      TSX_TSCONFIG_PATH: join(root, 'tsconfig.json'),
      NODE_TEST_CONTEXT: undefined,
      TMPDIR: temporary,
    };
    const child = execFile(process.execPath, args, { cwd, env, maxBuffer: 1 << 26 }, (_error, stdout, stderr) => {
      settle({ status: child.exitCode, output: stdout + stderr });
    });
  });
}
