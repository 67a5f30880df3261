import * as assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { isSvcError } from '../core/errors.ts';
import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { svc } from './kit/cli.ts';
import { folder } from './kit/folder.ts';
import { freshFolder } from './kit/pglite.ts';
import { test } from './kit/test.ts';

const holder = `
import { postgresql } from ${JSON.stringify(new URL('../plugins/dialects/postgresql/dialect.ts', import.meta.url).href)};
const connection = await postgresql.connect(process.argv[1], {});
process.stdout.write('open');
process.stdin.once('data', () => connection.close().then(() => process.exit(0)));
`;

async function startHolder(url: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', holder, url], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  await once(child.stdout!, 'data');
  return child;
}

const inUse = (error: unknown) => isSvcError(error) && error.code === 'database_in_use';

test(
  'a folder that another process has open is rejected, waited for, and taken over from a dead process',
  async () => {
    const { url, drop } = await freshFolder();
    try {
      const first = await startHolder(url);
      await assert.rejects(postgresql.connect(url, {}), inUse);
      const waiting = postgresql.connect(url, { busyTimeoutMs: 20_000 });
      first.stdin!.write('x');
      await (await waiting).close();

      const second = await startHolder(url);
      second.kill('SIGKILL');
      await once(second, 'exit');
      assert.ok(existsSync(`${new URL(url).pathname}.lock`));
      await (await postgresql.connect(url, {})).close();
      assert.ok(!existsSync(`${new URL(url).pathname}.lock`));
    } finally {
      await drop();
    }
  },
  { timeoutMs: 90_000 },
);

test('neither a reused process id nor a truncated lock file locks a folder', async () => {
  const { url, drop } = await freshFolder();
  try {
    const lock = `${new URL(url).pathname}.lock`;
    for (const text of [JSON.stringify({ pid: process.pid, started: '1' }), '{"pid":']) {
      writeFileSync(lock, text);
      await (await postgresql.connect(url, {})).close();
    }
  } finally {
    await drop();
  }
});

test('connections of one process share a folder, and the last one closes it', async () => {
  const { url, drop } = await freshFolder();
  try {
    const [first, second] = await Promise.all([postgresql.connect(url, {}), postgresql.connect(url, {})]);
    await first.query('CREATE TABLE t (id integer)');
    await first.close();
    await first.close();
    assert.ok((await second.introspect()).has('t'));
    await second.close();
    const again = await postgresql.connect(url, {});
    assert.ok((await again.introspect()).has('t'));
    await again.close();
  } finally {
    await drop();
  }
});

test('connections to one folder each use their own schema', async () => {
  const { url, drop } = await freshFolder();
  const raw = (statement: string) => postgresql.compile({ type: 'raw', dialect: 'postgresql', statement }, new Map());
  try {
    const main = await postgresql.connect(url, {});
    await main.query('CREATE SCHEMA billing');
    const billing = await postgresql.connect(url, { schema: 'billing' });
    const late = await postgresql.connect(url, {});
    for (const [name, connection] of Object.entries({ a: main, b: billing, c: late })) {
      const outcome = await connection.withLock((epoch) =>
        connection.run(
          [{ transactional: true, statements: raw(`CREATE TABLE ${name} (id integer)`), writes: [] }],
          epoch,
        ),
      );
      assert.equal(outcome.failure, undefined);
    }
    assert.deepEqual([...(await main.introspect()).keys()].sort(), ['a', 'c']);
    assert.deepEqual([...(await late.introspect()).keys()].sort(), ['a', 'c']);
    assert.deepEqual([...(await billing.introspect()).keys()], ['b']);
    const here = async ({ query }: typeof main) => (await query('SELECT current_schema() AS here'))[0]?.here;
    assert.deepEqual([await here(billing), await here(late), await here(main)], ['billing', 'public', 'public']);
    for (const connection of [main, billing, late]) await connection.close();
  } finally {
    await drop();
  }
});

test('a folder is unlocked when the connection fails', async () => {
  const { url, drop } = await freshFolder();
  try {
    const first = await postgresql.connect(url, {});
    await first.query('DROP SCHEMA public');
    await first.close();
    await assert.rejects(postgresql.connect(url, {}), (error) => isSvcError(error) && error.code === 'config_invalid');
    assert.ok(!existsSync(`${new URL(url).pathname}.lock`));
  } finally {
    await drop();
  }
});

test('svc approvals list says how to decide while the process of the agents has the store open', async () => {
  const { url, drop } = await freshFolder();
  const cwd = folder({
    'svc.config.json': JSON.stringify({
      product: 'shop',
      env: 'dev',
      databases: { main: { dialect: 'postgresql', url } },
      approvals: { store: { database: 'main' } },
    }),
  });
  const holder = await postgresql.connect(url, {});
  try {
    const { status, stdout } = await svc(['approvals', 'list', '--json'], { cwd });
    const { code, nextActions } = JSON.parse(stdout);
    assert.deepEqual([status, code], [7, 'database_in_use']);
    assert.match(nextActions.join(' '), /svc\.agents\.signal in its code.*database server for approvals\.store/);
  } finally {
    await holder.close();
    await drop();
  }
});
