import * as assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { Svc } from '../config/sdk/index.ts';
import { adviceProject, advised, commandsOf, svcInProcess, thrownError } from './kit/advice.ts';
import { folder } from './kit/folder.ts';
import { assertExit, json, users } from './kit/project.ts';
import { test } from './kit/test.ts';

/** No command of this file connects, except where it is expected to fail. */
const url = 'postgresql://127.0.0.1:1/none';
const GENERATE = ['db', 'schema', 'generate', '--dry-run'] as const;
const main = { dialect: 'postgresql', url: { dev: url, staging: url } };

test('without a configuration: init, or --config', async () => {
  const empty = folder();
  const failed = await svcInProcess([...GENERATE, '--json'], empty);
  assert.deepEqual(commandsOf(advised(failed, 'svc init')), [['init']]);
  assertExit(await svcInProcess(['init', '--no-install', '--json'], empty, { SVC_SDK_SPEC: 'file:../sdk.tgz' }));
  assertExit(await svcInProcess([...GENERATE, '--json'], empty));
  const elsewhere = folder();
  const without = await svcInProcess([...GENERATE, '--json'], elsewhere);
  assert.match(advised(without, 'Pass a file with --config <file>.'), /--config/);
  const wrong = await svcInProcess([...GENERATE, '--json', '--config', 'x.json'], elsewhere);
  assert.match(advised(wrong, 'Pass another file with --config <file>.'), /--config/);
  assertExit(await svcInProcess([...GENERATE, '--json', '--config', join(empty, 'svc.config.ts')], elsewhere));
});

test('without an environment: link one that has a URL, or add it', async () => {
  const config = {
    env: undefined,
    databases: { main: { dialect: 'postgresql', url: { staging: url } } },
    environments: {},
  };
  const shop = adviceProject({}, config);
  shop.schema(users);
  const failed = await shop.fails('config_invalid', ...GENERATE);
  await shop.follow(advised(failed, 'svc link --env <…>'));
  assertExit(await shop.svc(...GENERATE));
  rmSync(join(shop.root, 'svc/config.json'));
  await shop.fails('config_invalid', ...GENERATE);
  const [, env] = /^Add env: '(\w+)'/.exec(advised(failed, "Add env: '<…>' to the configuration.")) ?? [];
  shop.write('svc.config.json', { product: 'shop', ...config, env });
  assertExit(await shop.svc(...GENERATE));
});

test('a configuration in code has no link to advise', async () => {
  const failed = await thrownError(async () => {
    const client = new Svc({ config: { product: 'shop', databases: { main: { ...main, dialect: 'postgresql' } } } });
    await client.database.connect({ database: 'main' });
  }, 'config_invalid');
  assert.deepEqual(failed.next, [advised(failed, "Add env: '<…>' to the configuration.")]);
});

test('a link: misspelled, missing, broken, or of another product', async () => {
  const shop = adviceProject({}, { databases: { main } });
  shop.schema(users);
  const misspelled = await shop.fails('env_unknown', 'link', '--env', 'stagin');
  await shop.follow(advised(misspelled, 'svc link --env <…>'));
  const without = await shop.fails('usage', 'link');
  const linked = await shop.follow(advised(without, 'svc link --env <env>'), { '<env>': 'dev' });
  assert.deepEqual(commandsOf(advised(linked[0], 'svc doctor')), [['doctor']]);
  const unknown = await shop.fails('env_unknown', 'link', '--env', 'nowhere');
  advised(unknown, 'Add a URL for it to the configuration.');
  shop.write('svc/config.json', { product: 'shop', evn: 'prd' });
  const mistyped = await shop.fails('file_invalid', ...GENERATE);
  advised(mistyped, 'Delete it, then: svc link --env <env>');
  shop.write('svc/config.json', '{');
  const broken = await shop.fails('file_invalid', ...GENERATE);
  rmSync(join(shop.root, 'svc/config.json'));
  await shop.follow(advised(broken, 'Delete it, then: svc link --env <env>'), { '<env>': 'dev' });
  assertExit(await shop.svc(...GENERATE));
  shop.write('svc/config.json', { product: 'other', env: 'dev' });
  const other = await shop.fails('config_invalid', ...GENERATE);
  advised(other, 'Use the same product in the configuration and in svc/config.json.');
  shop.write('svc/config.json', { product: 'shop', env: 'dev' });
  assertExit(await shop.svc(...GENERATE));
});

test('a link that contradicts SVC_ENV', async () => {
  const shop = adviceProject({}, { databases: { main } }, { SVC_ENV: 'staging' });
  shop.schema(users);
  shop.write('svc/config.json', { env: 'dev' });
  const failed = await shop.fails('env_conflict', ...GENERATE);
  for (const [, env] of advised(failed, 'Use --env <…> or --env <…>.').matchAll(/--env (\w+)/g))
    assertExit(await shop.svc(...GENERATE, '--env', String(env)));
  advised(failed, 'Unset SVC_ENV.');
  await shop.follow(advised(failed, 'svc link --env <…>'));
  assertExit(await shop.svc(...GENERATE));
});

test('an environment without a URL', async () => {
  const shop = adviceProject({}, { databases: { main } });
  const failed = await shop.fails('env_unknown', 'db', 'migrate', '--env', 'test');
  const path = /^Add ([\w.]+) to/.exec(advised(failed, 'Add <…>.<…> to the configuration.'))?.[1];
  assert.equal(path, 'databases.main.url.test');
  const [, env = ''] = /--env (\w+)/.exec(advised(failed, 'Use --env <…>.')) ?? [];
  await shop.fails('connection_failed', 'db', 'migrate', '--env', env);
  const single = adviceProject({}, { databases: { main: { dialect: 'postgresql', url } } });
  const one = await single.fails('env_unknown', 'db', 'migrate', '--env', 'test');
  assert.equal(advised(one, 'Set <…> to { <…>: …, <…>: … }.'), 'Set databases.main.url to { dev: …, test: … }.');
  single.write('svc.config.json', {
    product: 'shop',
    env: 'dev',
    databases: { main: { dialect: 'postgresql', url: { dev: url, test: url } } },
  });
  await single.fails('connection_failed', 'db', 'migrate', '--env', 'test');
  const unnamed = { product: 'shop', databases: { main: { dialect: 'postgresql', url } } };
  single.write('svc.config.json', unnamed);
  const none = await single.fails('env_unknown', 'db', 'migrate', '--env', 'test');
  const [, added] = /^Add env: '(\w+)'/.exec(advised(none, "Add env: '<…>' to the configuration.")) ?? [];
  single.write('svc.config.json', { ...unnamed, env: added });
  await single.fails('connection_failed', 'db', 'migrate', '--env', 'test');
});

test('one of several databases', async () => {
  const shop = adviceProject({ main: url, more: url });
  const failed = await shop.fails('database_ambiguous', 'db', 'schema', 'pull');
  const flag = advised(failed, '--db <…>').split(' ');
  await shop.fails('connection_failed', 'db', 'schema', 'pull', ...flag);
  const near = await shop.fails('database_unknown', 'db', 'migrate', '--db', 'mian');
  const [, tag = ''] = /"(.*)"/.exec(advised(near, 'Did you mean "<…>"?')) ?? [];
  await shop.fails('connection_failed', 'db', 'migrate', '--db', tag);
  const unknown = await shop.fails('database_unknown', 'db', 'migrate', '--db', 'zzz');
  assert.match(advised(unknown, 'Add databases.<…> to <…>.'), /databases\.zzz/);
});

test('a plugin: not installed, elsewhere, broken', async () => {
  const plugins = (...names: readonly string[]) => adviceProject({}, { databases: { main }, plugins: names });
  const missing = await plugins('@acme/nothing/sub').fails('plugin_invalid', 'plugins', 'list');
  assert.equal(advised(missing, 'npm install <…>'), 'npm install @acme/nothing');
  const shop = plugins('./plugin.mjs');
  const elsewhere = await shop.fails('plugin_invalid', 'plugins', 'list');
  advised(elsewhere, 'Plugin paths are relative to the folder of the configuration.');
  const shapeless = adviceProject({}, { databases: { main }, plugins: ['./shapeless.mjs'] });
  shapeless.write('shapeless.mjs', 'export default { name: "mine", apply() {} }');
  const wrong = await shapeless.fails('plugin_version', 'plugins', 'list');
  const [, exported = ''] =
    /^Export (.*) as default/.exec(advised(wrong, 'Export definePlugin({ name, apply(kernel) { … } }) as default.')) ??
    [];
  const code = exported.replace('name,', "name: 'mine',").replace('…', '');
  shop.write('plugin.mjs', `import { definePlugin } from '@svc/sdk';\nexport default ${code};`);
  assertExit(await shop.svc('plugins', 'list'));
  const broken = plugins('./broken.mjs');
  broken.write('broken.mjs', 'throw new Error("boom")');
  const failed = await broken.fails('plugin_invalid', 'plugins', 'list');
  assert.deepEqual(json(failed).nextActions, [advised(failed, 'Fix the plugin, or remove it from svc.config.')]);
});

test('a dialect that is misspelled or of a plugin', async () => {
  const dialect = (name: string) => adviceProject({}, { databases: { main: { dialect: name, url } } });
  const near = await dialect('postgres').fails('name_unknown', 'db', 'migrate');
  assert.equal(advised(near, 'Did you mean "<…>"?'), 'Did you mean "postgresql"?');
  const unknown = await dialect('oracle').fails('name_unknown', 'db', 'migrate');
  advised(unknown, 'Add the plugin that registers the <…> to svc.config.');
});

test('a configuration without a database, or without a product', async () => {
  const shop = adviceProject({}, { databases: {} });
  const failed = await shop.fails('config_invalid', 'db', 'migrate');
  const [, added = ''] =
    /^Add (.*) to the configuration/.exec(
      advised(failed, "Add databases: { main: { dialect: 'postgresql', url: … } } to the configuration."),
    ) ?? [];
  rmSync(join(shop.root, 'svc.config.json'));
  shop.write('svc.config.mjs', `export default { product: 'shop', env: 'dev', ${added.replace('…', `'${url}'`)} };`);
  await shop.fails('connection_failed', 'db', 'migrate');
  const none = adviceProject({}, { product: undefined, databases: { main } });
  const without = await none.fails('config_invalid', 'db', 'migrate');
  assert.match(advised(without, "Add product: '<name>' to the configuration."), /product: /);
});
