import * as assert from 'node:assert/strict';
import { cpSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Config } from '../config/define.ts';
import type { Runtime } from '../config/load/runtime.ts';
import type { ErrorCode } from '../core/error-codes.ts';
import { isSvcError, type SvcError } from '../core/errors.ts';
import type { Kernel, Plugin } from '../core/kernel.ts';
import { definePlugin } from '../core/plugin.ts';
import { folder } from './kit/folder.ts';
import { loadRuntime } from './kit/load.ts';
import { test } from './kit/test.ts';

const BASE = { product: 'shop', env: 'dev' };

function inCode(config: Config): Promise<Runtime> {
  return loadRuntime({ cwd: folder(), config: { ...BASE, ...config } });
}

async function refused(code: ErrorCode, work: Promise<unknown>): Promise<SvcError> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!isSvcError(error)) throw error ?? new Error(`${code} was expected, but nothing was thrown`);
  assert.equal(error.code, code, `${error.message} ${error.why}`);
  return error;
}

function plugged(...plugins: readonly unknown[]): Promise<Runtime> {
  return inCode({ plugins: plugins as readonly Plugin[] });
}

const channel = (name: string) =>
  definePlugin({
    name: `plugin-${name}`,
    apply(kernel: Kernel) {
      kernel.channels.register(name, () => ({ name, deliver: async () => {} }));
      kernel.hooks['migration:up'].tap(`plugin-${name}`, () => {});
      kernel.hooks['migration:up'].tapPromise('second', async () => {});
    },
  });

test('an object, a package and a path are loaded, with the names they register and tap', async () => {
  const source = (name: string, type = '') =>
    `export default { name: '${name}', api: 1, apply(kernel${type}) { kernel.brokers.register('${name}', () => ({})); kernel.hooks.beforeToolCall.tap('${name}', () => {}); } };\n`;
  const root = folder({
    'svc.config.mjs': `export default { product: 'shop', env: 'dev', plugins: ['./plugins/own.ts', './plugins/plain.mjs', '@acme/pager', '@acme/esm', { name: 'inline', api: 1, apply() {} }] };\n`,
    'plugins/own.ts': source('own', ': { brokers: any; hooks: any }'),
    'plugins/plain.mjs': source('plain'),
    'node_modules/@acme/pager/package.json': { name: '@acme/pager', type: 'module', main: './index.js' },
    'node_modules/@acme/pager/index.js': source('pager'),
    'node_modules/@acme/esm/package.json': { name: '@acme/esm', type: 'module', exports: { import: './index.js' } },
    'node_modules/@acme/esm/index.js': source('esm'),
  });
  const runtime = await loadRuntime({ cwd: root });
  const plugins = await runtime.plugins();
  assert.deepEqual(
    plugins.map(({ name, from }) => [name, from]),
    [
      ['own', './plugins/own.ts'],
      ['plain', './plugins/plain.mjs'],
      ['pager', '@acme/pager'],
      ['esm', '@acme/esm'],
      ['inline', 'svc.config'],
    ],
  );
  for (const { name, registers, taps } of plugins.slice(0, 4)) {
    assert.deepEqual([registers, taps], [{ brokers: [name] }, { beforeToolCall: 1 }]);
  }
});

test('definePlugin stamps the version, and a plugin applied by object registers', async () => {
  const runtime = await plugged(channel('a'), channel('b'));
  const [a, b] = await runtime.plugins();
  assert.deepEqual(a?.registers, { channels: ['a'] });
  assert.deepEqual(b?.taps, { 'migration:up': 2 });
  assert.ok((await runtime.kernel()).channels.has('a'));
  assert.equal(await runtime.kernel(), await runtime.kernel());
});

test('plugins are loaded once and only on demand', async () => {
  let applied = 0;
  const runtime = await plugged(
    definePlugin({
      name: 'counts',
      apply: () => {
        applied++;
      },
    }),
  );
  assert.equal(applied, 0);
  await Promise.all([runtime.kernel(), runtime.plugins(), runtime.kernel()]);
  assert.equal(applied, 1);
});

test('anything that is not a plugin is rejected with the reason', async () => {
  for (const thing of [{}, { name: 'x', api: 1 }, { name: '', api: 1, apply() {} }]) {
    const error = await refused(
      'plugin_invalid',
      plugged(thing).then((runtime) => runtime.kernel()),
    );
    assert.ok(error.next[0]?.includes('definePlugin'));
  }
  const version = await refused(
    'plugin_version',
    plugged({ name: 'old', api: 99, apply() {} }).then((r) => r.kernel()),
  );
  assert.match(version.message, /"old"/);
  assert.match(version.why ?? '', /99/);
  assert.match(version.next[0] ?? '', /npm install @svc\/sdk@latest/);
  const older = await refused(
    'plugin_version',
    plugged({ name: 'ancient', api: 0, apply() {} }).then((r) => r.kernel()),
  );
  assert.deepEqual(older.next, ['Install a version of "ancient" that fits this SDK.']);
  await refused(
    'plugin_version',
    plugged({ name: 'none', apply() {} }).then((r) => r.kernel()),
  );
  await refused(
    'plugin_invalid',
    plugged('./is-not-there.ts').then((r) => r.kernel()),
  );
  const missing = await refused(
    'plugin_invalid',
    plugged('@acme/not-installed').then((r) => r.kernel()),
  );
  assert.deepEqual(missing.next, ['npm install @acme/not-installed']);
});

test('a plugin that throws is named', async () => {
  const error = await refused(
    'plugin_invalid',
    plugged(
      definePlugin({
        name: 'boom',
        apply() {
          throw new TypeError('no such thing');
        },
      }),
    ).then((r) => r.kernel()),
  );
  assert.match(error.message, /"boom"/);
  assert.equal(error.why, 'no such thing');
});

test('an unknown hook or registry is rejected with the existing ones', async () => {
  const taps = (name: string) => ({
    name: 'lost',
    api: 1,
    apply(kernel: { hooks: Record<string, { tap(name: string, fn: () => void): void }> }) {
      kernel.hooks[name]?.tap('lost', () => {});
    },
  });
  const hook = await refused(
    'plugin_invalid',
    plugged(taps('migrationUp')).then((r) => r.kernel()),
  );
  assert.match(hook.why ?? '', /beforeToolCall.*migration:up/);
  const near = await refused(
    'plugin_invalid',
    plugged(taps('beforeToolcal')).then((r) => r.kernel()),
  );
  assert.deepEqual(near.next, ['Did you mean "beforeToolCall"?']);
  const registry = {
    name: 'lost',
    api: 1,
    apply(kernel: Record<string, { register(name: string, value: unknown): void }>) {
      kernel.dialect?.register('x', {});
    },
  };
  assert.deepEqual(
    (
      await refused(
        'plugin_invalid',
        plugged(registry).then((r) => r.kernel()),
      )
    ).next,
    ['Did you mean "dialects"?'],
  );
});

test('two plugins that register the same name are rejected, with both names', async () => {
  const twice = { ...channel('a'), name: 'other' };
  const error = await refused(
    'name_taken',
    plugged(channel('a'), twice).then((r) => r.kernel()),
  );
  assert.match(error.why ?? '', /"plugin-a" and "other"/);
  assert.equal(error.where, 'svc.config');
  const own = await refused(
    'name_taken',
    plugged(
      definePlugin({
        name: 'stutter',
        apply(kernel) {
          for (const _ of [1, 2]) kernel.channels.register('pager', () => ({ name: 'pager', deliver: async () => {} }));
        },
      }),
    ).then((r) => r.kernel()),
  );
  assert.match(own.why ?? '', /"stutter" registers it a second time/);
});

test('a plugin declares the API version it was written for', async () => {
  const built = { name: 'built', api: 2 as never, apply() {} };
  const error = await refused(
    'plugin_version',
    plugged(definePlugin(built)).then((r) => r.kernel()),
  );
  assert.match(error.why ?? '', /version 2 of the plugin contract; this SDK has version 1/);
  assert.equal(definePlugin({ name: 'fits', api: 1, apply() {} }).api, 1);
});

test('a plugin that is listed twice is rejected, because it would tap twice', async () => {
  const policy = definePlugin({
    name: 'policy',
    apply: (kernel) => kernel.hooks.beforeToolCall.tap('policy', () => {}),
  });
  const error = await refused(
    'name_taken',
    plugged(policy, policy).then((r) => r.kernel()),
  );
  assert.match(error.message, /Two plugins are named "policy"/);
});

test('an unknown dialect is rejected with the existing ones and the nearest', async () => {
  // @ts-expect-error: TypeScript finds it first
  const runtime = await inCode({ databases: { main: { dialect: 'postgres', url: 'x://y' } } });
  const error = await refused('name_unknown', runtime.dialectOf('main'));
  assert.match(error.why ?? '', /postgresql/);
  assert.deepEqual(error.next, ['Did you mean "postgresql"?']);
});

test('a second copy of the SDK modules changes nothing', async () => {
  const root = folder({
    'package.json': { type: 'module' },
    'svc.config.js': `import { defineConfig } from './copy/config/define.ts';
import { definePlugin, SvcError } from './copy/config/sdk/index.ts';
export default defineConfig(({ env }) => {
  if (env === 'prd') throw new SvcError('env_unknown', 'Not from here.');
  return { product: 'shop', env: 'dev', plugins: [definePlugin({ name: 'copied', apply(kernel) { kernel.hooks.beforeToolCall.tap('copied', () => {}); kernel.models.register('m', () => ({})); } })] };
});
`,
  });
  const checkout = fileURLToPath(new URL('..', import.meta.url));
  const copy = join(root, 'copy');
  for (const part of ['core', 'config', 'plugins', 'package.json']) {
    cpSync(join(checkout, part), join(copy, part), { recursive: true });
  }
  mkdirSync(join(copy, 'node_modules'));
  for (const part of ['tapable', 'uuid'])
    symlinkSync(join(checkout, 'node_modules', part), join(copy, 'node_modules', part));
  const [plugin] = await (await loadRuntime({ cwd: root })).plugins();
  assert.deepEqual(
    [plugin?.name, plugin?.registers, plugin?.taps],
    ['copied', { models: ['m'] }, { beforeToolCall: 1 }],
  );
  const error = await refused('env_unknown', loadRuntime({ cwd: root, env: 'prd' }));
  assert.equal(error.message, 'Not from here.');
});
