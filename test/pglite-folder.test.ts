import * as assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { isSvcError } from '../core/errors.ts';
import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { freshFolder } from './kit/pglite.ts';
import { test } from './kit/test.ts';

const holder = `
import { postgresql } from ${JSON.stringify(new URL('../plugins/dialects/postgresql/dialect.ts', import.meta.url).href)};
const connection = await postgresql.connect(process.argv[1], {});
process.stdout.write('open');
process.stdin.once('data', () => connection.close().then(() => process.exit(0)));
`;

async function holding(url: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', holder, url], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  await once(child.stdout!, 'data');
  return child;
}

const inUse = (error: unknown) => isSvcError(error) && error.code === 'database_in_use';

test(
  'a folder that another process has open is refused, waited for, and taken over from the dead',
  async () => {
    const { url, drop } = await freshFolder();
    try {
      const first = await holding(url);
      await assert.rejects(postgresql.connect(url, {}), inUse);
      const waiting = postgresql.connect(url, { busyTimeoutMs: 20_000 });
      first.stdin!.write('x');
      await (await waiting).close();

      const second = await holding(url);
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

test('a process number that is used again keeps no folder, and half a lock file keeps none', async () => {
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

test('callers of one process share a folder, and the last one closes it', async () => {
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

test('a folder that is refused is let go of', async () => {
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
