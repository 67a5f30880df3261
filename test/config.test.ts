import * as assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Config, defineConfig } from '../config/define.ts';
import { builtins } from '../config/load/builtin.ts';
import { findConfig, SEARCH_PLACES } from '../config/load/config-file.ts';
import type { RuntimeOptions } from '../config/load/runtime.ts';
import type { ConnectOptions } from '../core/dialect.ts';
import type { ErrorCode } from '../core/error-codes.ts';
import { isSvcError, type SvcError } from '../core/errors.ts';
import { Kernel } from '../core/kernel.ts';
import { applyPlugin } from '../core/plugin.ts';
import { withoutPassword } from '../core/url.ts';
import { readSettings } from '../plugins/dialects/shared/settings.ts';
import { assertInstalled, type Driver, loadDriver } from '../plugins/shared/driver.ts';
import { folder } from './kit/folder.ts';
import { loadRuntime } from './kit/load.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

delete process.env.SVC_ENV;

const PLAIN = {
  product: 'shop',
  env: 'dev',
  databases: { main: { dialect: 'postgresql', url: { dev: 'pglite://memory' } } },
};

const PLAIN_FOLDER = { ...PLAIN, databases: { main: { dialect: 'postgresql', url: 'pglite://./data' } } };

async function refused(
  code: ErrorCode,
  options: RuntimeOptions,
  use?: (runtime: Awaited<ReturnType<typeof loadRuntime>>) => unknown,
): Promise<SvcError> {
  try {
    const runtime = await loadRuntime(options);
    await use?.(runtime);
  } catch (error) {
    if (!isSvcError(error)) throw error;
    assert.equal(error.code, code, `${error.message} ${error.why}`);
    return error;
  }
  throw new Error(`${code} was expected, but nothing was thrown`);
}

async function withEnv<T>(values: Record<string, string>, work: () => Promise<T>): Promise<T> {
  Object.assign(process.env, values);
  try {
    return await work();
  } finally {
    for (const name of Object.keys(values)) delete process.env[name];
  }
}

// ---- finding and loading

const written = (body: string): string => `export default ${body};\n`;
const JSON_BODY = JSON.stringify(PLAIN);
const WAYS: Readonly<Record<string, string>> = {
  'svc.config.ts': `import { defineConfig } from '@svc/sdk/config';\nconst env: string = 'dev';\nexport default defineConfig({ ...${JSON_BODY}, env });\n`,
  'svc.config.mts': written(`${JSON_BODY} as const`),
  'svc.config.js': written(JSON_BODY),
  'svc.config.mjs': written(JSON_BODY),
  'svc.config.cjs': `module.exports = ${JSON_BODY};\n`,
  'svc.config.json': JSON_BODY,
  'svc.config.yaml':
    'product: shop\nenv: dev\ndatabases:\n  main: { dialect: postgresql, url: { dev: "pglite://memory" } }\n',
  '.svcrc': 'product: shop\nenv: dev\ndatabases:\n  main: { dialect: postgresql, url: { dev: "pglite://memory" } }\n',
  '.svcrc.json': JSON_BODY,
  '.svcrc.ts': written(`${JSON_BODY} as const`),
  '.svcrc.cjs': `module.exports = ${JSON_BODY};\n`,
  'package.json': JSON.stringify({ name: 'x', type: 'module', svc: PLAIN }),
};
for (const [name, text] of Object.entries(WAYS)) {
  test(`${name} is found from a folder below and says what it says`, async () => {
    const root = folder({ [name]: text, 'a/b/c.txt': '' });
    const runtime = await loadRuntime({ cwd: join(root, 'a', 'b') });
    assert.equal(runtime.file, join(root, name));
    assert.equal(runtime.root, root);
    assert.deepEqual({ ...runtime.config }, PLAIN);
    assert.deepEqual([runtime.product, runtime.env, runtime.envFrom], ['shop', 'dev', 'config']);
  });
}

test('the precedence within a folder is that of cosmiconfig', async () => {
  const { cosmiconfig } = await import('cosmiconfig');
  const ignore = Object.fromEntries(
    ['.ts', '.mts', '.js', '.mjs', '.cjs', '.json', '.yaml', '.yml', 'noExt'].map((end) => [end, () => ({})]),
  );
  for (let first = 0; first < SEARCH_PLACES.length - 1; first++) {
    const places = SEARCH_PLACES.slice(first);
    const root = folder(
      Object.fromEntries(places.map((place) => [place, place === 'package.json' ? '{"svc":{}}' : 'x: 1'])),
    );
    const theirs = await cosmiconfig('svc', { searchPlaces: SEARCH_PLACES, loaders: ignore }).search(root);
    assert.equal(findConfig(root), theirs?.filepath);
  }
});

test('a package.json without a section is skipped, and a nearer configuration wins', async () => {
  const root = folder({
    'svc.config.json': PLAIN,
    'app/package.json': { name: 'app', keywords: ['svc'] },
    'app/src/x': '',
  });
  assert.equal(findConfig(join(root, 'app', 'src')), join(root, 'svc.config.json'));
  writeFileSync(join(root, 'app', '.svcrc.json'), JSON.stringify(PLAIN));
  assert.equal(findConfig(join(root, 'app', 'src')), join(root, 'app', '.svcrc.json'));
});

test('without a configuration the error explains how to create one', async () => {
  const error = await refused('config_missing', { cwd: folder() });
  assert.ok(error.next.includes('svc init'));
  await refused('config_missing', { cwd: folder(), configFile: 'other.json' });
});

test('a named file is used instead of the nearest', async () => {
  const root = folder({ 'svc.config.json': PLAIN, 'other/svc.config.json': { ...PLAIN, product: 'other' } });
  assert.equal((await loadRuntime({ cwd: root, configFile: 'other/svc.config.json' })).product, 'other');
});

test('the transpile cache is reused, follows the content, and survives a broken entry', async () => {
  const root = folder({ 'node_modules/x/package.json': '{}', 'svc.config.ts': written(`${JSON_BODY} as const`) });
  const cache = join(root, 'node_modules', '.cache', 'svc');
  await loadRuntime({ cwd: root });
  const [name = ''] = readdirSync(cache);
  const cached = readFileSync(join(cache, name), 'utf8');
  writeFileSync(join(cache, name), cached.replace('"shop"', '"from the cache"'));
  assert.equal(
    (await loadRuntime({ cwd: root, product: 'from the cache' }).catch((error: SvcError) => error)).constructor.name,
    'SvcError',
  );
  writeFileSync(join(root, 'svc.config.ts'), written(`${JSON.stringify({ ...PLAIN, product: 'changed' })} as const`));
  assert.equal((await loadRuntime({ cwd: root })).product, 'changed');
  writeFileSync(join(cache, name), 'rubbish');
  assert.equal((await loadRuntime({ cwd: root })).product, 'changed');
  assert.equal(readdirSync(cache).length, 1);
});

test('a config in TypeScript imports files, packages and Node modules', async () => {
  const root = folder({
    'svc.config.ts': `import { join } from 'node:path';\nimport name, { env } from './product.ts';\nimport url from 'some-url';\nconst here: string = import.meta.url;\nexport default { product: name + '-' + join('a', 'b').length, env, databases: { main: { dialect: 'postgresql', url: { [env]: url + (here.endsWith('svc.config.ts') ? '1' : '0') } } } };\n`,
    'product.ts': `export const env: string = 'dev';\nexport default 'shop' as string;\n`,
    'node_modules/some-url/package.json': { name: 'some-url', type: 'module', exports: { import: './index.js' } },
    'node_modules/some-url/index.js': `export default 'pg://x/';\n`,
  });
  for (const _ of ['cold', 'warm']) {
    const runtime = await loadRuntime({ cwd: root });
    assert.equal(runtime.product, 'shop-3');
    assert.equal(runtime.urlOf('main'), 'pg://x/1');
  }
});

test('a config function receives the environment', async () => {
  const root = folder({
    'svc.config.ts': `export default async ({ env }: { env?: string }) => ({ product: 'p-' + (env ?? 'none'), env: 'dev' });\n`,
  });
  assert.equal((await loadRuntime({ cwd: root })).product, 'p-none');
  assert.equal((await loadRuntime({ cwd: root, env: 'prd' })).product, 'p-prd');
});

test('.env next to the configuration is read, and does not override', async () => {
  const root = folder({
    '.env': 'SVC_TEST_A=file\nSVC_TEST_B=file\n',
    'svc.config.ts': `export default { product: process.env.SVC_TEST_A + '-' + process.env.SVC_TEST_B, env: 'dev' };\n`,
  });
  await withEnv({ SVC_TEST_A: 'shell' }, async () => {
    assert.equal((await loadRuntime({ cwd: root })).product, 'shell-file');
  });
  delete process.env.SVC_TEST_B;
});

// ---- errors

test('a config that throws is reported with file, line and message, with and without the cache', async () => {
  const root = folder({
    'node_modules/x/package.json': '{}',
    'svc.config.ts': `interface A { b: string }\nconst a: A = { b: 'c' };\nthrow new Error('no ' + a.b);\n`,
  });
  for (const _ of ['cold', 'warm']) {
    const error = await refused('config_failed', { cwd: root });
    assert.equal(error.why, 'no c');
    assert.match(error.where ?? '', /svc\.config\.ts:3:\d+$/);
  }
  const plain = folder({ 'svc.config.mjs': `\nnull.x;\n` });
  assert.match((await refused('config_failed', { cwd: plain })).where ?? '', /svc\.config\.mjs:2:\d+$/);
  const later = folder({ 'svc.config.ts': `export default () => {\n  throw new Error('later');\n};\n` });
  assert.match((await refused('config_failed', { cwd: later })).where ?? '', /svc\.config\.ts:2:\d+$/);
  const syntax = folder({ 'svc.config.ts': `export default {\n  product: 'a\n};\n` });
  assert.match((await refused('config_failed', { cwd: syntax })).where ?? '', /svc\.config\.ts:2/);
  const broken = folder({ 'svc.config.json': '{ "product": }' });
  assert.match((await refused('config_failed', { cwd: broken })).why ?? '', /JSON/);
});

test('a callback base must be a valid URL, with https unless it is local', async () => {
  const withApprovals = (approvals: object) => ({ cwd: folder({ 'svc.config.json': { ...PLAIN, approvals } }) });
  const at = (callbackBase: string) => withApprovals({ callbackBase });
  for (const [base, why] of [
    ['shop.example', /^approvals\.callbackBase: is not a URL\.$/],
    ['http://shop.example/svc', /is not https/],
    ['ftp://shop.example/svc', /is not an https URL/],
    ['https://a:hush-secret@shop.example/svc', /contains credentials/],
    ['https://shop.example/svc?x=1', /must not have a query or a fragment/],
    ['https://shop.example/svc#top', /must not have a query or a fragment/],
  ] as const) {
    const error = await refused('config_invalid', at(base));
    assert.match(error.why ?? '', why, base);
    assert.ok(!error.why?.includes('hush-secret'));
  }
  for (const base of ['https://shop.example', 'https://shop.example/svc/', 'http://127.0.0.1:8787/svc']) {
    assert.equal((await loadRuntime(at(base))).config.approvals?.callbackBase, base);
  }
  const server = { role: 'deciders', environments: { prd: 'http://shop.example/svc' } };
  const { why } = await refused('config_invalid', withApprovals({ roles: { deciders: ['user:ann'] }, server }));
  assert.match(why ?? '', /^approvals\.server\.environments\.prd: is not https/);
});

test('all problems are reported at once with their paths, and without values', async () => {
  const config = {
    product: 'sh op',
    databses: {},
    databases: { main: { dialekt: 'postgresql', url: 42, protected: true, keep: '30m' } },
    environments: { prd: { protected: 'yes-secret' } },
    approvals: {
      callbackKey: 7,
      channels: { webhook: { type: 'console' }, broker: {} },
      webhook: { secrets: { 'https://x/': 'hush-secret' } },
    },
    plugins: [3],
  };
  const error = await refused('config_invalid', { cwd: folder({ 'svc.config.json': config }) });
  const why = error.why ?? '';
  for (const part of [
    'product:',
    'databses: is not a known setting. Did you mean "databases"?',
    'databases.main.dialect: is missing',
    'databases.main.dialekt: is not a known setting. Did you mean "dialect"?',
    'databases.main.url:',
    'databases.main.keep: is not a duration from 1h to 52w, such as 12h, 30d or 4w',
    'environments.prd.protected:',
    'approvals.callbackKey:',
    'approvals.channels.webhook: must have another name',
    'approvals.channels.broker: must have another name',
    'approvals.channels.broker.type: is missing',
    'approvals.webhook.secrets.https://x/:',
    'plugins[0]:',
  ]) {
    assert.ok(why.includes(part), `${part}\n${why}`);
  }
  assert.ok(!why.includes('secret') || !/yes-secret|hush-secret/.test(why));
  for (const nothing of ['export default undefined;', 'export const a = 1;', 'export default [];']) {
    await refused('config_invalid', { cwd: folder({ 'svc.config.mjs': nothing }) });
  }
  await refused('config_invalid', { cwd: folder({ 'svc.config.yaml': '' }) });
});

test('a configuration in code that is a text or an array is not an object', async () => {
  for (const config of ['svc.config.ts', [{ product: 'shop' }]]) {
    const { why } = await refused('config_invalid', { config: config as unknown as Config, product: 'shop' });
    assert.match(why ?? '', /^The configuration: must be an object, not (a string|an array)\.$/);
  }
});

// ---- the environment

const LINKED = { 'svc.config.json': PLAIN, 'svc/config.json': { product: 'shop', env: 'linked' } };

test('an argument overrides the link, the link SVC_ENV, and SVC_ENV the configuration', async () => {
  const linked = folder(LINKED);
  const plain = folder({ 'svc.config.json': PLAIN });
  assert.deepEqual(await loadRuntime({ cwd: linked, env: 'said' }).then((r) => [r.env, r.envFrom]), [
    'said',
    'argument',
  ]);
  assert.deepEqual(await loadRuntime({ cwd: linked }).then((r) => [r.env, r.envFrom]), ['linked', 'link']);
  await withEnv({ SVC_ENV: 'variable' }, async () => {
    assert.deepEqual(await loadRuntime({ cwd: plain }).then((r) => [r.env, r.envFrom]), ['variable', 'SVC_ENV']);
    const error = await refused('env_conflict', { cwd: linked });
    assert.ok(error.next[0]?.includes('--env linked'));
    assert.equal((await loadRuntime({ cwd: linked, env: 'said' })).env, 'said');
  });
  await withEnv({ SVC_ENV: 'linked' }, async () => assert.equal((await loadRuntime({ cwd: linked })).env, 'linked'));
  assert.deepEqual(await loadRuntime({ cwd: plain }).then((r) => [r.env, r.envFrom]), ['dev', 'config']);
});

test('a missing environment, two products and an invalid link are errors', async () => {
  await refused('config_invalid', { cwd: folder({ 'svc.config.json': { product: 'shop' } }) });
  await refused('config_invalid', { cwd: folder({ 'svc.config.json': { env: 'dev' } }) });
  await refused('config_invalid', { cwd: folder({ ...LINKED, 'svc/config.json': { product: 'other', env: 'dev' } }) });
  await refused('config_invalid', { cwd: folder(LINKED), product: 'other' });
  for (const link of ['{', '[]', '{"env":3}'])
    await refused('file_invalid', { cwd: folder({ ...LINKED, 'svc/config.json': link }) });
});

test('a protected environment is detected', async () => {
  const root = folder({ 'svc.config.json': { ...PLAIN, environments: { prd: { protected: true } } } });
  assert.equal((await loadRuntime({ cwd: root })).protectedEnv, false);
  assert.equal((await loadRuntime({ cwd: root, env: 'prd' })).protectedEnv, true);
});

// ---- URLs

test('a URL is resolved on first use, and a missing one is named', async () => {
  const root = folder({
    'svc.config.mjs': `export default { product: 'shop', env: 'dev', databases: { map: { dialect: 'postgresql', url: { dev: 'pglite://./.svc/a', prd: process.env.NOT_SET } }, one: { dialect: 'postgresql', url: 'postgresql://h/d' }, none: { dialect: 'postgresql', url: process.env.NOT_SET } } };\n`,
    'deep/er/x': '',
  });
  const dev = await loadRuntime({ cwd: join(root, 'deep', 'er') });
  assert.equal(dev.urlOf('map'), `pglite://${root}/.svc/a`);
  assert.equal(dev.urlOf('one'), 'postgresql://h/d');
  const odd = folder({ 'a b%41#c/svc.config.json': PLAIN_FOLDER });
  assert.equal(
    (await loadRuntime({ cwd: join(odd, 'a b%41#c') })).urlOf('main'),
    `pglite://${odd}/a%20b%2541%23c/data`,
  );
  const unset = await refused('env_unknown', { cwd: root, env: 'prd' }, (runtime) => runtime.urlOf('map'));
  assert.equal(unset.why, 'databases.map.url.prd is undefined.');
  assert.equal(
    (await refused('env_unknown', { cwd: root, env: 'staging' }, (runtime) => runtime.urlOf('map'))).why,
    'databases.map.url has URLs for: dev.',
  );
  assert.match(
    (await refused('env_unknown', { cwd: root, env: 'prd' }, (runtime) => runtime.urlOf('one'))).why ?? '',
    /only to the configuration's own env "dev"/,
  );
  await refused('env_unknown', { cwd: root }, (runtime) => runtime.urlOf('none'));
  const near = await refused('database_unknown', { cwd: root }, (runtime) => runtime.urlOf('mapp'));
  assert.deepEqual(near.next, ['Did you mean "map"?']);
});

test('a password is never printed', () => {
  const cases: [string, string][] = [
    ['postgresql://u:p@ss@h:5432/d', 'postgresql://u:***@h:5432/d'],
    ['postgresql://u:p%40:x@h/d?sslmode=require', 'postgresql://u:***@h/d?sslmode=require'],
    ['postgresql://u@h/d', 'postgresql://u@h/d'],
    ['postgresql://h/d?user=u&password=hush&x=1', 'postgresql://h/d?user=u&password=***&x=1'],
    ['mongodb://u:p@a:1,b:2/d', 'mongodb://u:***@a:1,b:2/d'],
    ['pglite://./.svc/main', 'pglite://./.svc/main'],
    ['pglite:///a@b/c:d', 'pglite:///a@b/c:d'],
  ];
  for (const [url, printed] of cases) assert.equal(withoutPassword(url), printed);
});

// ---- in code

test('TypeScript finds a misspelled name in a configuration', () => {
  // @ts-expect-error: databases
  assert.ok(defineConfig({ product: 'shop', databse: {} }));
  assert.ok(defineConfig(({ env = 'dev' }) => ({ product: 'shop', env })));
});

test('a configuration in code needs no file, and takes product and env from the options', async () => {
  const config = defineConfig({ databases: { main: { dialect: 'postgresql', url: 'postgresql://h/d' } } });
  const runtime = await loadRuntime({ cwd: folder(), product: 'shop', env: 'dev', config });
  assert.deepEqual(
    [runtime.product, runtime.env, runtime.urlOf('main'), runtime.file],
    ['shop', 'dev', 'postgresql://h/d', undefined],
  );
  assert.ok(!existsSync(join(runtime.root, '.svc')));
  mkdirSync(join(runtime.root, 'svc'));
});

test('every dialect rejects connection options that are misspelled, of a wrong type or too long for a timer', async () => {
  const dialects = new Kernel();
  for (const [name, load] of Object.entries(builtins.dialects)) applyPlugin(dialects, (await load()).default, name);
  for (const [name, url] of [
    ['postgresql', 'pglite://memory'],
    ['mysql', 'mysql://127.0.0.1:1/x'],
    ['mariadb', 'mariadb://127.0.0.1:1/x'],
    ['mongodb', 'mongodb://127.0.0.1:1/x'],
    ['dynamodb', 'dynamodb://127.0.0.1:1/x'],
    ['cassandra', 'cassandra://127.0.0.1:1/x?dc=a'],
  ] as const) {
    const why = async (options: ConnectOptions) => {
      const error = await dialects.dialects
        .get(name)
        .connect(url, options)
        .then(
          () => undefined,
          (reason: unknown) => reason,
        );
      assert.ok(isSvcError(error) && error.code === 'config_invalid', `${name} ${JSON.stringify(options)}: ${error}`);
      return error.why ?? '';
    };
    const bad = { conectTimeoutMs: 1, connectTimeoutMs: 3e9 };
    assert.match(
      await why(bad),
      /no option "conectTimeoutMs"; did you mean connectTimeoutMs\?.*3000000000 and must be/,
    );
    for (const connectTimeoutMs of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '1000', null]) {
      assert.match(await why({ connectTimeoutMs } as ConnectOptions), /^connectTimeoutMs is .* whole number from 1 to/);
    }
    assert.match(await why({ allowCopy: 'true' } as unknown as ConnectOptions), /^allowCopy is "true".*true or false/);
    assert.match(await why({ onProgress: true } as unknown as ConnectOptions), /a function/);
    assert.match(await why({ toString: 1 }), /no option "toString"/);
    if (name !== 'postgresql') assert.match(await why({ schema: 'public' }), /its URL specifies where tables live/);
  }
});

test('a dialect without options of its own accepts those that svc passes to every dialect', () => {
  assert.equal(readSettings('Acme', {}, { connectTimeoutMs: 5000, busyTimeoutMs: 0, readOnly: true }).readOnly, true);
  const whyNot = (given: ConnectOptions) => {
    try {
      return readSettings('Acme', {}, given);
    } catch (error) {
      return isSvcError(error) && error.why;
    }
  };
  assert.equal(whyNot({ beads: 7 }), 'There is no option "beads": it has no options of its own.');
  assert.match(String(whyNot({ connectTimeoutMs: 0 })), /^connectTimeoutMs is 0 and must be a whole number/);
});

test('a missing driver is reported with the searched folders, and one of the project is found', async () => {
  const root = folder({ 'node_modules/own-driver/index.js': 'exports.own = true;' });
  const driver = (name: string): Driver<object> => ({ name, package: name, load: () => import(name) });
  assert.equal(((await loadDriver(driver('own-driver'), root)) as { own?: true }).own, true);
  await assert.rejects(loadDriver(driver('no-driver'), root), (error) => {
    assert.ok(isSvcError(error) && error.code === 'driver_missing');
    assert.ok(error.why?.includes(`from ${root}`), error.why);
    return true;
  });
});

test('a driver that only the command line contains, or that throws, cannot be loaded in the project', async () => {
  const root = folder({
    'node_modules/own-driver/index.js': 'exports.own = true;',
    'node_modules/broken-driver/index.js': "throw new TypeError('needs another Node');",
  });
  const driver = (name: string): Driver<object> => ({ name, package: name, load: async () => ({ bundled: true }) });
  const why = async (name: string) => {
    const error = await expectError(assertInstalled(driver(name), root), 'driver_missing');
    assert.deepEqual(error.next, [`npm install ${name}`]);
    return `${error.message} ${error.why}`;
  };
  await assertInstalled(driver('own-driver'), root);
  assert.deepEqual(await loadDriver(driver('no-driver'), root), { bundled: true });
  assert.match(await why('no-driver'), /not installed in this project\..*contains its own/);
  assert.match(await why('broken-driver'), /cannot be loaded\. .*needs another Node/);
});
