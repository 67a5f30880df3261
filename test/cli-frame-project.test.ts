import * as assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { svc } from './kit/cli.ts';
import { folder } from './kit/folder.ts';
import { LIFTOFF_ONLY } from './kit/node-flags.ts';
import { test } from './kit/test.ts';

const read = (root: string, file: string): string => readFileSync(join(root, file), 'utf8');
const json = (root: string, file: string) => JSON.parse(read(root, file));
const SPEC = { SVC_SDK_SPEC: 'file:../svc-sdk.tgz' };

test('init in an empty folder writes a project that the next command can load', async () => {
  const cwd = folder();
  const { status, stdout, stderr } = await svc(['init', '--no-install', '--product', 'shop'], { cwd, env: SPEC });
  assert.equal(status, 0, stderr);
  for (const file of ['svc.config.ts', 'svc/database/schema.json', 'svc/config.json', 'package.json', '.gitignore']) {
    assert.ok(stdout.includes(`created  ${file}`), stdout);
    assert.ok(existsSync(join(cwd, file)), file);
  }
  assert.match(stderr, /npx svc db schema generate[\s\S]*npx svc db migrate/);
  assert.deepEqual(json(cwd, 'svc/config.json'), { product: 'shop', env: 'dev' });
  assert.equal(json(cwd, 'package.json').dependencies['@svc/sdk'], SPEC.SVC_SDK_SPEC);
  const ours = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  assert.equal(
    json(cwd, 'package.json').dependencies['@electric-sql/pglite'],
    ours.devDependencies['@electric-sql/pglite'],
  );
  const [entry] = json(cwd, 'svc/database/schema.json');
  assert.deepEqual([entry.db, Object.keys(entry.tables)], ['main', ['notes']]);
  const next = await svc(['plugins', 'list', '--json'], { cwd });
  assert.deepEqual(
    [next.status, JSON.parse(next.stdout).plugins[0].name],
    [0, 'postgresql'],
    next.stdout + next.stderr,
  );
});

test('init through npx prints npx commands, and configures the database of prd', async () => {
  const cwd = folder();
  const made = await svc(['init', '--no-install', '--env', 'prd'], { cwd, env: { ...SPEC, npm_command: 'exec' } });
  assert.equal(made.status, 0, made.stderr);
  assert.match(made.stderr, /^ +npx svc db schema generate/m);
  assert.doesNotMatch(made.stderr, /npx npx/);
  const { status, stdout } = await svc(['doctor', '--json'], { cwd, node: [LIFTOFF_ONLY] });
  const [found] = JSON.parse(stdout).checks.filter((check: { name: string }) => /^database main/.test(check.name));
  assert.match(found?.message, /PGlite|pglite/, `${status} ${stdout}`);
});

test('init for a dialect writes its driver, a URL from the environment, and a schema that it supports', async () => {
  const drivers: Readonly<Record<string, readonly string[]>> = {
    mysql: [],
    mariadb: ['mariadb'],
    mongodb: ['mongodb'],
    dynamodb: ['@aws-sdk/client-dynamodb'],
    cassandra: ['cassandra-driver'],
  };
  for (const [dialect, packages] of Object.entries(drivers)) {
    const cwd = folder();
    const made = await svc(['init', '--no-install', '--dialect', dialect], { cwd, env: SPEC });
    assert.equal(made.status, 0, made.stderr);
    assert.match(made.stderr, /Set DATABASE_URL/);
    assert.deepEqual(Object.keys(json(cwd, 'package.json').dependencies), [...packages, '@svc/sdk']);
    assert.match(read(cwd, 'svc.config.ts'), new RegExp(`dev: process\\.env\\.DATABASE_URL, // ${dialect}://`));
    const generated = await svc(['db', 'schema', 'generate', '--name', 'notes'], { cwd });
    assert.equal(generated.status, 0, `${dialect} ${generated.stderr}`);
    const unset = await svc(['db', 'migrate', '--json'], { cwd, env: { DATABASE_URL: undefined } });
    assert.deepEqual([unset.status, JSON.parse(unset.stdout).code], [2, 'env_unknown'], unset.stdout);
  }
  const cwd = folder();
  const { status, stderr } = await svc(['init', '--no-install', '--dialect', 'mysq'], { cwd });
  assert.deepEqual([status, existsSync(join(cwd, 'package.json'))], [2, false]);
  assert.match(stderr, /svc init --dialect mysql/);
});

test('init keeps what exists, adds what is missing, and changes nothing the second time', async () => {
  const cwd = folder({
    'package.json': { name: '@acme/my shop', scripts: { start: 'x' }, devDependencies: { '@svc/sdk': '^9' } },
    'svc/database/schema.json': '[]',
    '.gitignore': 'node_modules\nmine',
  });
  const first = await svc(['init', '--no-install'], { cwd });
  assert.equal(first.status, 0, first.stderr);
  assert.match(first.stdout, /kept +svc\/database\/schema\.json/);
  assert.match(first.stdout, /extended +package\.json/);
  assert.equal(read(cwd, 'svc/database/schema.json'), '[]');
  assert.equal(read(cwd, '.gitignore'), 'node_modules\nmine\n.svc/\n.env\n');
  const manifest = json(cwd, 'package.json');
  assert.deepEqual([manifest.scripts, manifest.devDependencies], [{ start: 'x' }, { '@svc/sdk': '^9' }]);
  assert.deepEqual(Object.keys(manifest.dependencies), ['@electric-sql/pglite']);
  assert.match(read(cwd, 'svc.config.ts'), /product: 'my-shop'/);
  const files = ['package.json', '.gitignore', 'svc.config.ts', 'svc/config.json'];
  const before = files.map((file) => read(cwd, file));
  const second = await svc(['init', '--no-install', '--json'], { cwd });
  assert.deepEqual(JSON.parse(second.stdout).created, []);
  assert.deepEqual(
    files.map((file) => read(cwd, file)),
    before,
  );
});

test('init writes no second configuration next to one of another format, and no conflicting link', async () => {
  const there: readonly Record<string, string | object>[] = [
    { 'svc.config.yaml': 'product: shop\nenv: staging\n' },
    { 'package.json': { name: 'other', svc: { product: 'shop', env: 'staging' } } },
  ];
  for (const files of there) {
    const cwd = folder(files);
    const made = await svc(['init', '--no-install', '--env', 'staging', '--json'], { cwd });
    assert.equal(made.status, 0, made.stdout);
    const { product, env, nextActions } = JSON.parse(made.stdout);
    assert.deepEqual([product, env], [undefined, undefined]);
    assert.ok(nextActions.includes('npx svc link --env staging'), made.stdout);
    assert.ok(!existsSync(join(cwd, 'svc.config.ts')));
    assert.ok(!existsSync(join(cwd, 'svc/config.json')));
    assert.ok(!existsSync(join(cwd, 'svc/database/schema.json')), 'its database may not support the example');
    assert.deepEqual(Object.keys(JSON.parse(read(cwd, 'package.json')).dependencies), ['@svc/sdk']);
    assert.ok(nextActions.includes('npx svc doctor'), made.stdout);
    const next = await svc(['doctor', '--json'], { cwd });
    assert.equal(next.status, 0, next.stdout);
  }
});

test('init rejects an invalid package.json and invalid names before it writes', async () => {
  const broken = folder({ 'package.json': '{' });
  const { status, stderr } = await svc(['init', '--no-install'], { cwd: broken });
  assert.deepEqual([status, existsSync(join(broken, 'svc.config.ts'))], [2, false]);
  assert.match(stderr, /file_invalid/);
  const empty = folder();
  assert.equal((await svc(['init', '--no-install', '--product', "it's"], { cwd: empty })).status, 2);
  assert.ok(!existsSync(join(empty, 'svc.config.ts')));
});

test('a failed installation reports that the files exist', async () => {
  const cwd = folder();
  const { status, stderr } = await svc(['init'], { cwd, env: { PATH: cwd } });
  assert.equal(status, 1);
  assert.match(stderr, /install_failed[\s\S]*The files were written\.[\s\S]*npm install/);
  assert.ok(existsSync(join(cwd, 'svc.config.ts')));
});

const TWO = {
  product: 'shop',
  env: 'dev',
  databases: { main: { dialect: 'postgresql', url: { dev: 'pglite://memory', staging: 'pglite://memory' } } },
};

test('link writes the environment, and resolves a conflict', async () => {
  const cwd = folder({ 'svc.config.json': TWO, 'a/b': '' });
  const first = await svc(['link', '--env', 'staging'], { cwd: join(cwd, 'a') });
  assert.equal(first.status, 0, first.stderr);
  assert.deepEqual(json(cwd, 'svc/config.json'), { product: 'shop', env: 'staging' });
  const conflict = await svc(['plugins', 'list', '--json'], { cwd, env: { SVC_ENV: 'dev' } });
  assert.deepEqual([conflict.status, JSON.parse(conflict.stdout).code], [2, 'env_conflict']);
  assert.equal((await svc(['link', '--env', 'dev', '--json'], { cwd, env: { SVC_ENV: 'dev' } })).status, 0);
  assert.deepEqual(json(cwd, 'svc/config.json'), { product: 'shop', env: 'dev' });
});

test('link rejects an environment that no database has, and keeps the old link', async () => {
  const cwd = folder({ 'svc.config.json': TWO });
  const { status, stderr } = await svc(['link', '--env', 'stagin'], { cwd });
  assert.equal(status, 2);
  assert.match(stderr, /env_unknown[\s\S]*svc link --env staging/);
  assert.ok(!existsSync(join(cwd, 'svc')));
});

// ---- doctor

async function doctor(cwd: string, args: readonly string[] = []) {
  const { status, stdout, stderr } = await svc(['doctor', '--json', ...args], { cwd, node: [LIFTOFF_ONLY] });
  assert.equal(stderr, '');
  const { ok, checks } = JSON.parse(stdout);
  assert.equal(ok, status === 0);
  return { status, checks: checks as { name: string; result: string; message: string; next?: string[] }[], stdout };
}

test('doctor passes on PGlite, and creates no history', async () => {
  const cwd = folder({
    'svc.config.json': { ...TWO, databases: { main: { dialect: 'postgresql', url: { dev: 'pglite://./.svc/main' } } } },
  });
  for (const _ of ['new', 'again']) {
    const { status, checks } = await doctor(cwd);
    assert.equal(status, 0, JSON.stringify(checks, null, 1));
    assert.deepEqual(
      [...new Set(checks.map((check) => check.name))],
      ['node', 'configuration', 'environment', 'plugins', 'database main'],
    );
    assert.ok(checks.some((check) => /no history yet/.test(check.message)));
    assert.ok(
      checks.some((check) => /PostgreSQL \d+/.test(check.message)),
      'the version of the server is printed',
    );
  }
  const text = await svc(['doctor'], { cwd });
  assert.match(text.stdout, /^ok {4}node: [\d.]+$/m);
  assert.match(text.stdout, /All checks passed\.\n$/);
});

test('doctor checks the configuration of approvals', async () => {
  const key = Buffer.alloc(32, 7).toString('base64');
  const of = async (approvals: object, brokers: object = {}) => {
    const { checks } = await doctor(folder({ 'svc.config.json': { product: 'shop', env: 'dev', approvals, brokers } }));
    return checks
      .filter(({ name }) => /^(approvals|plugins|broker )/.test(name))
      .map(({ name, result, message }) => [name, result, message]);
  };
  const [plugins, ...others] = await of({});
  assert.deepEqual(plugins, ['plugins', 'ok', 'none']);
  assert.deepEqual(others, [['approvals', 'warn', 'stored in memory, lost when the process exits']]);
  const [, [, , keyless] = []] = await of({ callbackBase: 'https://shop.example' });
  assert.match(`${keyless}`, /callbackBase needs approvals\.callbackKey/);
  const [decisions] = (
    await doctor(
      folder({ 'svc.config.json': { product: 'shop', env: 'dev', approvals: { decisions: { broker: 'bus' } } } }),
    )
  ).checks.filter(({ name }) => name === 'approvals');
  assert.match(`${decisions?.next}`, /approvals: \{ callbackKey: process\.env\.SVC_CALLBACK_KEY \}/);
  const [, [, result, unknown] = []] = await of({ store: { database: 'main' }, callbackKey: key });
  assert.deepEqual([result, /No database has the tag "main"/.test(`${unknown}`)], ['fail', true]);
  const [unusable, , broker] = await of({}, { queue: { type: 'pigeon' } });
  assert.deepEqual(unusable?.slice(0, 2), ['plugins', 'fail']);
  assert.match(`${unusable?.[2]}`, /pigeon/);
  assert.deepEqual(broker?.slice(1), ['warn', 'not checked, because of the failed check of plugins']);
});

test('doctor fails on a store of approvals that belongs to another product or environment', async () => {
  const approvals = { store: { database: 'main' } };
  const databases = {
    main: { dialect: 'postgresql', url: { dev: 'pglite://./.svc/main', qa: 'pglite://./.svc/main' } },
  };
  const cwd = folder({ 'svc.config.json': { ...TWO, databases, approvals } });
  const found = async () => {
    const { status, checks } = await doctor(cwd);
    const { result, message, next } = checks.find(({ name }) => name === 'approvals') ?? {};
    return { status, result, message, next };
  };
  const empty = { status: 0, result: 'ok', message: 'the store has no tables yet', next: undefined };
  assert.deepEqual(await found(), empty);
  assert.equal((await svc(['approvals', 'list', '--json'], { cwd })).status, 0);
  assert.deepEqual(await found(), { ...empty, message: 'the store belongs to shop (dev)' });
  for (const change of [{ product: 'bank' }, { env: 'qa' }]) {
    writeFileSync(join(cwd, 'svc.config.json'), JSON.stringify({ ...TWO, databases, approvals, ...change }));
    const foreign = await found();
    assert.deepEqual([foreign.status, foreign.result], [1, 'fail']);
    assert.match(foreign.message ?? '', /belong to shop \(dev\), not to (bank \(dev\)|shop \(qa\))/);
    assert.match(`${foreign.next}`, /approvals\.store/);
  }
});

test('doctor creates channels and brokers, and says which entry has invalid options', async () => {
  const cwd = folder({
    'pager.ts': `import { definePlugin, SvcError } from '@svc/sdk';
      const create = ({ url }: { url?: unknown }) => {
        if (typeof url !== 'string') throw new SvcError('config_invalid', 'There is no url.');
        return { name: 'pager', deliver: async () => {}, publish: async () => {}, close: async () => {} };
      };
      export default definePlugin({ name: 'pager', apply(kernel) {
        kernel.channels.register('pager', create);
        kernel.brokers.register('pager', create);
      } });`,
    'svc.config.json': {
      product: 'shop',
      env: 'dev',
      plugins: ['./pager.ts'],
      approvals: { channels: { ops: { type: 'pager' }, night: { type: 'pager', url: 'https://night.example' } } },
      brokers: { bus: { type: 'pager' } },
    },
  });
  const { status, checks } = await doctor(cwd);
  assert.equal(status, 1);
  assert.deepEqual(
    checks.filter(({ name }) => /^(channel|broker) /.test(name)).map(({ name, message }) => `${name}: ${message}`),
    [
      'channel ops: There is no url. (approvals.channels.ops)',
      'channel night: configured; doctor delivers nothing',
      'broker bus: There is no url. (brokers.bus)',
    ],
  );
});

test('doctor reports problems, and never a password', async () => {
  const url = (rest: string): object => ({
    dialect: 'postgresql',
    url: { dev: `postgresql://postgres:hush-hush@127.0.0.1:${rest}` },
  });
  const cwd = folder({
    'svc.config.json': {
      ...TWO,
      databases: {
        down: url('1/postgres'),
        missing: url('5432/is_not_there_at_all'),
        other: { dialect: 'postgresql', url: { prd: 'postgresql://h/d' } },
        typo: { dialect: 'postgers', url: { dev: 'x://y' } },
      },
    },
  });
  const { status, checks, stdout } = await doctor(cwd);
  assert.equal(status, 1);
  const of = (tag: string) => checks.find((check) => check.name === `database ${tag}`);
  for (const tag of ['down', 'missing', 'other']) {
    assert.equal(of(tag)?.result, 'fail', tag);
    assert.ok((of(tag)?.next ?? []).length > 0, tag);
  }
  // The check of plugins names the dialect that none registers.
  assert.equal(of('typo')?.message, 'not checked, because of the failed check of plugins');
  assert.match(checks.find(({ name }) => name === 'plugins')?.message ?? '', /"postgers"/);
  assert.ok(!stdout.includes('hush-hush'));
  assert.deepEqual(
    (await doctor(cwd, ['--db', 'other', '--env', 'dev'])).checks.filter((check) => check.name.startsWith('database'))
      .length,
    1,
  );
});

test('doctor works without a configuration', async () => {
  const { status, checks } = await doctor(folder());
  assert.equal(status, 1);
  assert.deepEqual(
    checks.map((check) => [check.name, check.result]),
    [
      ['node', 'ok'],
      ['configuration', 'fail'],
    ],
  );
});

test('every command reports the line of a config that throws', async () => {
  const cwd = folder({ 'svc.config.ts': `const a: number = 1;\nthrow new Error('no database today ' + a);\n` });
  const { status, stderr } = await svc(['plugins', 'list'], { cwd });
  assert.equal(status, 2);
  assert.match(stderr, /config_failed[\s\S]*no database today 1[\s\S]*svc\.config\.ts:2:\d+/);
  assert.ok(stderr.trimEnd().split('\n').length <= 5);
  writeFileSync(join(cwd, 'svc.config.ts'), `export default { product: 'shop', env: 'dev' };\n`);
  assert.equal((await svc(['plugins', 'list'], { cwd })).status, 0);
});

test('the driver of the project is used, wherever svc and the shell are', async () => {
  const at = (tag: string) => ({ dialect: tag, url: `${tag}://127.0.0.1:1/x` });
  const own = (name: string) =>
    `const fail = async () => { throw new Error('the own ${name}') };
     exports.createConnection = fail;
     exports.MongoClient = class { connect = fail; async close() {} };`;
  const root = folder({
    'svc.config.json': {
      product: 'shop',
      env: 'dev',
      databases: { mongodb: at('mongodb'), mariadb: at('mariadb') },
    },
    'node_modules/mongodb/index.js': own('mongodb'),
    'node_modules/mariadb/package.json': { name: 'mariadb', main: 'it.cjs' },
    'node_modules/mariadb/it.cjs': own('mariadb'),
  });
  const status = async (tag: string) =>
    (await svc(['db', 'migrate', 'status', '--db', tag, '--config', join(root, 'svc.config.json')], { cwd: folder() }))
      .stderr;
  assert.match(await status('mongodb'), /the own mongodb/);
  assert.match(await status('mariadb'), /the own mariadb/);
});

test('plugins list shows the built-in channels and brokers that the configuration uses', async () => {
  const approvals = { channels: { log: { type: 'console' } } };
  const brokers = { bus: { type: 'rabbitmq', url: 'amqp://127.0.0.1:1' } };
  const cwd = folder({ 'svc.config.json': JSON.stringify({ product: 'shop', env: 'dev', approvals, brokers }) });
  const { status, stdout } = await svc(['plugins', 'list', '--json'], { cwd });
  assert.equal(status, 0, stdout);
  const plugins: { readonly name: string; readonly from: string; readonly registers: object }[] =
    JSON.parse(stdout).plugins;
  assert.deepEqual(
    plugins.map(({ from, registers }) => [from, registers]),
    [
      ['built in', { channels: ['console'] }],
      ['built in', { brokers: ['rabbitmq'] }],
    ],
  );
});
