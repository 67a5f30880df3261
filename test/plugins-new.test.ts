import * as assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { version } from '../core/version.ts';
import { svc } from './kit/cli.ts';
import { folder } from './kit/folder.ts';
import { test } from './kit/test.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const KINDS = ['dialect', 'channel', 'broker'] as const;
const SLOW = { timeoutMs: 180_000 };

const cwd = folder();
symlinkSync(join(root, 'node_modules'), join(cwd, 'node_modules'));
const packages = KINDS.map((kind) => `svc-${kind}-my-first`);

test('svc plugins new creates a package of each kind', async () => {
  for (const kind of KINDS) {
    const { status, stdout, stderr } = await svc(['plugins', 'new', kind, 'my-first', '--json'], {
      cwd,
      env: { SVC_SDK_SPEC: 'file:../svc-sdk.tgz' },
    });
    assert.equal(status, 0, stderr);
    const { created, nextActions } = JSON.parse(stdout);
    assert.deepEqual(nextActions, [`cd svc-${kind}-my-first`, 'npm install', 'npm test']);
    for (const file of created) assert.ok(existsSync(join(cwd, file)), file);
    const manifest = JSON.parse(readFileSync(join(cwd, `svc-${kind}-my-first/package.json`), 'utf8'));
    assert.equal(manifest.name, `svc-${kind}-my-first`);
    assert.equal(manifest.devDependencies['@svc/sdk'], 'file:../svc-sdk.tgz');
    assert.equal(manifest.peerDependencies['@svc/sdk'], `^${version}`);
  }
});

test(
  'the created packages compile under strict rules',
  async () => {
    // One program for all three, compiled against the sources instead of an installed package.
    const tsconfig = JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8'));
    const paths = Object.entries<string[]>(tsconfig.compilerOptions.paths).map(
      ([name, [file = '']]) => [name, [join(root, file)]] as const,
    );
    const own = JSON.parse(readFileSync(join(cwd, packages[0]!, 'tsconfig.json'), 'utf8')).compilerOptions;
    const { rootDir: _, outDir: __, ...rules } = own;
    const compilerOptions = {
      ...rules,
      noEmit: true,
      resolveJsonModule: true,
      skipLibCheck: true,
      lib: tsconfig.compilerOptions.lib,
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
    for (const name of packages) {
      const file = join(cwd, name, 'test/suite.test.ts');
      const { status, output } = await node('--import', import.meta.resolve('tsx'), file);
      assert.equal(status, 1, output);
      assert.match(output, /The contract requires: /, name);
      assert.match(output, /To do in (src\/index|test\/suite\.test)\.ts: /, name);
      assert.doesNotMatch(output, /^# tests 0$/m, name);
    }
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

function node(...args: string[]): Promise<{ status: number | null; output: string }> {
  return new Promise((settle) => {
    const env = { ...process.env, TSX_TSCONFIG_PATH: join(root, 'tsconfig.json'), NODE_TEST_CONTEXT: undefined };
    const child = execFile(process.execPath, args, { cwd, env, maxBuffer: 1 << 26 }, (_error, stdout, stderr) => {
      settle({ status: child.exitCode, output: stdout + stderr });
    });
  });
}
