import * as assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { docsBlocks } from './kit/docs-blocks.ts';
import { deadLinks } from './kit/docs-links.ts';
import { test } from './kit/test.ts';

/** Uses the package as a new user does: installs it into an empty folder, and uses the command line and the API. */

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const npm = { timeoutMs: 5 * 60_000 };

const folder = await mkdtemp(join(tmpdir(), 'svc-packaging-'));
const app = join(folder, 'app');
test.after(() => rm(folder, { recursive: true, force: true }));

let tarball = '';

/** The examples that are packages. */
async function packagedExamples(): Promise<readonly string[]> {
  const files = await readdir(join(root, 'examples'), { recursive: true });
  return files.filter((file) => /^[^/]+\/package\.json$/.test(file)).map(dirname);
}

async function run(cwd: string, command: string, ...args: string[]): Promise<string> {
  return new Promise((settle, reject) => {
    const child = execFile(command, args, { cwd, maxBuffer: 1 << 26 }, (error, stdout, stderr) => {
      const output = `${command} ${args.join(' ')}\n${stdout}${stderr}`;
      if (error) reject(new Error(`status ${child.exitCode}: ${output}`));
      else settle(stdout);
    });
    child.stdin?.end();
  });
}

async function svc(...args: string[]): Promise<Record<string, unknown>> {
  const answer: Record<string, unknown> = JSON.parse(await run(app, 'npx', 'svc', ...args, '--json'));
  assert.equal(answer.ok, true);
  return answer;
}

test(
  'npm pack',
  async () => {
    const [packed] = JSON.parse(
      await run(root, 'npm', 'pack', '--json', '--ignore-scripts', '--pack-destination', folder),
    );
    tarball = join(folder, packed.filename);
    const paths: string[] = packed.files.map((file: { path: string }) => file.path);
    const unexpected = paths.filter(
      (path) =>
        !/^(dist\/.+\.(c?js|d\.ts|json)|dist\/THIRD-PARTY\.txt|docs\/([a-z-]+\/)?[A-Za-z-]+\.md|docs\/images\/[a-z-]+\.webp|docs\/reference\/json\/[a-z-]+\.json|examples\/README\.md|examples\/[a-z0-9-]+\/(README\.md|(package|tsconfig)\.json|run\.ts|(src|test)\/[a-z.-]+\.ts|svc\.config\.ts|svc\/[a-z/]+\.json)|(README|CONTRIBUTING)\.md|package\.json|LICENSE)$/.test(
          path,
        ),
    );
    assert.deepEqual(unexpected, []);
    // A package that is copied is built where it is.
    for (const name of await packagedExamples()) {
      for (const file of ['package.json', 'tsconfig.json']) assert.ok(paths.includes(`examples/${name}/${file}`), name);
    }
    assert.ok(packed.unpackedSize < 8_100_000, `${packed.unpackedSize} bytes`);
    const images = packed.files.filter((file: { path: string }) => file.path.startsWith('docs/images/'));
    const imageBytes = images.reduce((sum: number, { size }: { size: number }) => sum + size, 0);
    assert.ok(imageBytes < 90_000, `${imageBytes} bytes of images`);
  },
  npm,
);

test('the package contains no paths of this machine and no tests', async () => {
  await mkdir(join(folder, 'content'));
  await run(folder, 'tar', '-xzf', tarball, '-C', join(folder, 'content'));
  for (const entry of await readdir(join(folder, 'content'), { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = join(entry.parentPath, entry.name);
    const text = await readFile(file, 'utf8');
    for (const path of [root, homedir(), tmpdir()]) {
      assert.ok(path === '/' || !text.includes(`${path}/`), `${file} contains ${path}/`);
    }
    // It includes the test suites for plugin authors, and the examples with their tests.
    const own = file
      .slice(folder.length)
      .replace('/dist/test/suites/', '/dist/')
      .replace(/\/package\/examples\/.*/, '');
    assert.doesNotMatch(own, /\.test\.|\/(test|kit|bench)\//);
  }
});

test('what workflows of Temporal import has no imports: their sandbox has no modules of Node', async () => {
  const text = await readFile(join(root, 'dist/plugins/frameworks/temporal.js'), 'utf8');
  assert.doesNotMatch(text, /^import\b|\bimport\(|\brequire\b/m);
});

test('every relative link of the packed pages leads to a packed file', async () => {
  const content = join(folder, 'content', 'package');
  const names = await readdir(content, { recursive: true });
  const pages = names.filter((name) => name.endsWith('.md'));
  assert.ok(pages.includes('README.md') && pages.some((name) => name.endsWith('write-a-dialect.md')));
  assert.deepEqual(deadLinks(content, pages), []);
});

test('npm shows where the project lives, and how to find it', async () => {
  const manifest = JSON.parse(await readFile(join(folder, 'content', 'package', 'package.json'), 'utf8'));
  for (const url of [manifest.homepage, manifest.repository.url.replace(/^git\+/, ''), manifest.bugs.url]) {
    assert.equal(new URL(url).protocol, 'https:');
  }
  assert.ok(manifest.keywords.length >= 5);
});

test(
  'it installs into an empty folder, and svc init creates a project',
  async () => {
    await mkdir(app);
    const readme = await readFile(join(root, 'README.md'), 'utf8');
    const lines = /^```sh install\n([\s\S]*?)^```$/m.exec(readme)?.[1]?.trim().split('\n') ?? [];
    assert.ok(lines.includes('npm install @svc/sdk'));
    for (const line of lines) {
      await run(app, ...(line.replace(/^npm install @svc\/sdk$/, `npm install ${tarball}`).split(' ') as [string]));
    }
    assert.deepEqual((await readdir(app)).filter((name) => name !== 'node_modules').sort(), [
      '.gitignore',
      'package-lock.json',
      'package.json',
      'svc',
      'svc.config.ts',
    ]);
  },
  npm,
);

for (const name of ['first-migration.md', 'first-approval.md']) {
  test(
    `the installation of the tutorial ${name}`,
    async () => {
      const [block] = docsBlocks().filter(
        ({ page, annotation }) => page === `docs/tutorials/${name}` && annotation === 'install',
      );
      assert.match(block?.text ?? '', /^npm install @svc\/sdk$/m);
      await run(folder, 'sh', '-ec', (block?.text ?? '').replace('npm install @svc/sdk', `npm install ${tarball}`));
    },
    npm,
  );
}

test(
  'generate, migrate, status, rollback',
  async () => {
    await svc('db', 'schema', 'generate');
    await svc('db', 'migrate');
    assert.match(await run(app, 'npx', 'svc', 'db', 'migrate', 'status'), /^OK\b/);
    await svc('db', 'migrate', 'rollback');
    assert.match(await run(app, 'npx', 'svc', 'db', 'migrate', 'status'), /^PENDING 1\b/);
    await svc('db', 'migrate');
    await svc('doctor');
  },
  npm,
);

test('the version is the one of package.json', async () => {
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
  assert.equal((await run(app, 'npx', 'svc', '--version')).trim(), version);
});

test(
  'a strict TypeScript file that uses the public API compiles and runs',
  async () => {
    await run(app, 'npm', 'install', '--no-audit', '--no-fund', '--save-dev', 'typescript', '@types/node@20');
    await writeFile(join(app, 'use.mts'), USE);
    const compilerOptions = {
      target: 'ES2023',
      module: 'NodeNext',
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      skipLibCheck: false,
      types: ['node'],
    };
    await writeFile(
      join(app, 'tsconfig.json'),
      JSON.stringify({ compilerOptions, include: ['use.mts', 'svc.config.ts'] }),
    );
    await run(app, 'npx', 'tsc', '-p', '.');
    assert.equal((await run(app, process.execPath, 'use.mjs')).trim(), 'used');
    // By itself: an augmentation alone does not make TypeScript look for the module.
    const page = await readFile(join(root, 'docs/how-to/write-a-plugin.md'), 'utf8');
    const [, abacus = ''] = /```ts\n(import type \{\} from '@svc\/sdk';[\s\S]+?)```/.exec(page) ?? [];
    assert.match(abacus, /interface Dialects/);
    await writeFile(join(app, 'abacus.config.ts'), abacus);
    await writeFile(
      join(app, 'tsconfig.abacus.json'),
      JSON.stringify({ compilerOptions: { ...compilerOptions, noEmit: true }, include: ['abacus.config.ts'] }),
    );
    await run(app, 'npx', 'tsc', '-p', 'tsconfig.abacus.json');
  },
  npm,
);

test(
  'a package that svc plugins new creates installs and compiles, and its suite describes the work left',
  async () => {
    for (const [name, flag, todo] of [
      ['abacus', '--sql', /To do in src\/database\.ts: openDriver/],
      ['slate', '--key-value', /To do in src\/database\.ts: openDatabase/],
    ] as const) {
      await run(app, 'env', `SVC_SDK_SPEC=file:${tarball}`, 'npx', 'svc', 'plugins', 'new', 'dialect', name, flag);
      const created = join(app, `svc-dialect-${name}`);
      await run(created, 'npm', 'install', '--no-audit', '--no-fund', '--no-package-lock');
      await assert.rejects(run(created, 'npm', 'test'), todo);
    }
  },
  npm,
);

const USE = `
import { strict as assert } from 'node:assert';
import { createRequire } from 'node:module';
import { type Migration, MigrationEngine, MigrationHelpers, SvcError, Svc, DatabaseService, definePlugin, migration } from '@svc/sdk';
import { defineConfig } from '@svc/sdk/config';

const announced: string[] = [];
const announcer = definePlugin({
  name: 'acme-announcer',
  apply(kernel) {
    kernel.hooks['migration:up'].tapPromise('acme-announcer', async (step) => void announced.push(step.migration.tag));
  },
});

const config = defineConfig({
  product: 'shop',
  env: 'dev',
  databases: { main: { dialect: 'postgresql', url: { dev: 'pglite://memory', prd: process.env.DATABASE_URL } } },
  plugins: [announcer],
});

const svc = new Svc({ product: 'shop', env: 'dev', config });
const db = await svc.database.connect({ database: 'main' });

const { migration: made } = await db.schema.create('users', {
  id: { type: 'integer', primaryKey: true },
  email: { type: 'string', length: 255, required: true, unique: true },
  first: 'string',
  last: 'string',
  name: 'text',
  age: 'integer',
}, { timestamps: true });
assert.match(made.tag, /^\\d{8}_\\d{6}_create_users$/);
await db.schema.createIndex('users', ['email', 'age'], { unique: true, name: 'users_email_age' });

const m: Migration = migration(MigrationHelpers.generateTag('add_orders'))
  .description('orders of a user')
  .createCollection('orders', [
    { name: 'id', type: 'integer', primaryKey: true },
    { name: 'total', type: 'decimal', precision: 10, scale: 2, nullable: false },
  ])
  .createIndex('orders', 'orders_total', [{ name: 'total' }])
  .raw('postgresql', 'CREATE VIEW big_orders AS SELECT * FROM orders WHERE total > 1000', { down: 'DROP VIEW big_orders' })
  .build();
assert.equal(MigrationHelpers.validate(m), true);
assert.equal(typeof MigrationHelpers.checksum(m), 'string');

const engine = new MigrationEngine(db.getAdapter());
assert.equal((await engine.up(m)).status, 'completed');
assert.equal((await engine.up(m)).status, 'skipped');
assert.equal((await engine.getStatus({ definedMigrations: [m] })).pending, 0);
assert.equal((await engine.getHistory()).length, 3);
await db.update({ table: 'users', data: { name: { $CONCAT: ['first', ' ', 'last'] } }, where: { name: null } });
assert.equal((await engine.down(m)).status, 'rolled_back');
assert.ok(announced.includes(m.tag));

await assert.rejects(db.schema.create('users', { id: { type: 'integer', primaryKey: true } }), (error: unknown) => {
  return error instanceof SvcError && error.code === 'collection_exists' && error.message.includes('already exists');
});
assert.throws(() => createRequire(import.meta.url).resolve('@opentelemetry/api'), 'spans cost nothing where it is not installed');
const gate = svc.gate({ agentTag: 'reader', tools: [{ tag: 'look', handler: () => 'seen' }] });
assert.equal((await gate.run({ tool: 'look', parameters: {} })).result, 'seen');
await svc.close();

const service = new DatabaseService();
const alone = await service.connect({ product: 'app', env: 'dev', database: 'main' });
assert.ok((await new MigrationEngine(alone.getAdapter()).getHistory()).length > 0);
await service.close();
console.log('used');
`;
