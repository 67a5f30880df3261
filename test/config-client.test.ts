import * as assert from 'node:assert/strict';
import { join } from 'node:path';
import {
  type Config,
  type Database,
  DatabaseService,
  definePlugin,
  isSvcError,
  MigrationEngine,
  Svc,
} from '../config/sdk/index.ts';
import type { ErrorCode } from '../core/error-codes.ts';
import { folder } from './kit/folder.ts';
import { freshFolder } from './kit/pglite.ts';
import { test } from './kit/test.ts';

delete process.env.SVC_ENV;

const [main, staging, other, watched] = await Promise.all([freshFolder(), freshFolder(), freshFolder(), freshFolder()]);
test.after(() => Promise.all([main, staging, other, watched].map((fresh) => fresh.drop())));

const CONFIG: Config = {
  product: 'shop',
  env: 'dev',
  databases: {
    main: { dialect: 'postgresql', url: { dev: main.url, staging: staging.url } },
    same: { dialect: 'postgresql', url: { dev: `${main.url}/../data` } },
    other: { dialect: 'postgresql', url: other.url },
  },
};

async function refused(code: ErrorCode, work: Promise<unknown>): Promise<void> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!isSvcError(error)) throw error ?? new Error(`${code} was expected, but nothing was thrown`);
  assert.equal(error.code, code, `${error.message} ${error.why}`);
}

const tables = async (db: Database): Promise<string[]> => [...(await db.getAdapter().connection.introspect()).keys()];

test('a client reads nothing before its first use, and finds the configuration like the CLI', async () => {
  const unused = new Svc({ cwd: join(folder(), 'not', 'there') });
  await unused.close();
  const cwd = folder({ 'svc.config.json': CONFIG, 'a/b/c': '' });
  const svc = new Svc({ cwd: join(cwd, 'a', 'b') });
  try {
    const db = await svc.database.connect({ database: 'main' });
    const { migration } = await db.schema.create('users', {
      id: { type: 'integer', primaryKey: true },
      name: 'string',
    });
    assert.match(migration.tag, /^\d{8}_\d{6}_create_users$/);
    const adapter = db.getAdapter();
    assert.deepEqual(
      [adapter.product, adapter.env, adapter.database, adapter.dialect.name],
      ['shop', 'dev', 'main', 'postgresql'],
    );
    assert.deepEqual(await tables(db), ['users']);
    const staging = await svc.database.connect({ database: 'main', env: 'staging' });
    assert.deepEqual(await tables(staging), []);
    assert.equal(staging.getAdapter().env, 'staging');
  } finally {
    await svc.close();
  }
});

test('a configuration in code takes env from the options, and an unknown env is rejected', async () => {
  const svc = new Svc({
    product: 'shop',
    env: 'dev',
    cwd: folder(),
    config: { databases: { main: { dialect: 'postgresql', url: 'pglite://memory' } } },
  });
  try {
    const db = await svc.database.connect({ database: 'main' });
    assert.deepEqual(await tables(db), []);
    await refused('env_unknown', svc.database.connect({ database: 'main', env: 'prd' }));
  } finally {
    await svc.close();
  }
});

test('a standalone service accepts product and env in connect', async () => {
  const service = new DatabaseService({ cwd: folder({ 'svc.config.json': CONFIG }) });
  try {
    const db = await service.connect({ product: 'shop', env: 'staging', database: 'main' });
    assert.equal(db.getAdapter().env, 'staging');
    await refused('config_invalid', service.connect({ product: 'another', env: 'dev', database: 'main' }));
    await refused('database_unknown', service.connect({ database: 'maim' }));
    await refused('env_unknown', service.connect({ env: 'nowhere', database: 'main' }));
  } finally {
    await service.close();
  }
});

test('two tags for one physical database are rejected when both are used', async () => {
  const svc = new Svc({ cwd: folder({ 'svc.config.json': CONFIG }) });
  try {
    await svc.database.connect({ database: 'main' });
    await svc.database.connect({ database: 'other' });
    await refused('database_shared', svc.database.connect({ database: 'same' }));
  } finally {
    await svc.close();
  }
});

test('closing the client closes open databases once, and skips closed ones', async () => {
  const svc = new Svc({ cwd: folder({ 'svc.config.json': CONFIG }) });
  const one = await svc.database.connect({ database: 'main' });
  const two = await svc.database.connect({ database: 'main' });
  await one.close();
  await one.close();
  assert.deepEqual(await tables(two), ['users']);
  await svc.close();
  await svc.close();
  await assert.rejects(tables(two));
});

test('product and env are enough where there is no configuration file', async () => {
  const cwd = folder({});
  const svc = new Svc({ product: 'shop', env: 'test', cwd });
  try {
    const turns = [{ calls: [{ tool: 'look' }] }, { text: 'Done.' }];
    const agent = await svc.agents.define({
      tag: 'clerk',
      model: { provider: 'scripted', model: 'x', settings: { turns } },
      tools: [{ tag: 'look', handler: () => 'seen' }],
    });
    assert.equal((await agent.run({ prompt: 'Go.' }).result).text, 'Done.');
    assert.deepEqual((await svc.approvals.list()).records, []);
    await refused('database_unknown', svc.database.connect({ database: 'main' }));
    await refused('config_missing', new Svc({ env: 'test', cwd }).approvals.list());
    await refused('config_missing', new Svc({ product: 'shop', env: 'test', cwd, configFile: 'no.ts' }).agents.list());
    await refused('config_invalid', new Svc({ product: 'shop', cwd }).approvals.list());
    await refused(
      'database_unknown',
      new DatabaseService({ cwd }).connect({ database: 'main', product: 'a', env: 'b' }),
    );
  } finally {
    await svc.close();
  }
});

test('plugins of the configuration tap the hooks of the engine', async () => {
  const seen: string[] = [];
  const plugin = definePlugin({
    name: 'watches',
    apply(kernel) {
      kernel.hooks['migration:up'].tap('watches', (step) => {
        seen.push(`${step.direction} ${step.database} ${step.env} ${step.migration.name}`);
      });
    },
  });
  const svc = new Svc({
    cwd: folder(),
    config: {
      ...CONFIG,
      databases: { main: { dialect: 'postgresql', url: { dev: watched.url } } },
      plugins: [plugin],
    },
  });
  try {
    const db = await svc.database.connect({ database: 'main' });
    await db.schema.create('users', { id: 'integer' });
    assert.deepEqual(seen, ['up main dev users']);
    assert.equal((await new MigrationEngine(db.getAdapter()).getHistory()).length, 1);
  } finally {
    await svc.close();
  }
});
