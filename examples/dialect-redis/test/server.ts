import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { createClient } from 'redis';

const START_MS = 20_000;
const DATABASES = 5000;

/** Starts a server with durable writes, which stops with this process. Returns its URL, or why it did not start. */
export async function startServer(): Promise<{ readonly url: string } | { readonly missing: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-redis-'));
  const options = { bind: '127.0.0.1', port: await freePort(), dir: folder, databases: DATABASES, save: '' };
  const durable = { appendonly: 'yes', appendfsync: 'always' };
  const given = Object.entries({ ...options, ...durable }).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const server = spawn('redis-server', given, { stdio: 'ignore' });
  server.unref();
  process.once('exit', () => {
    server.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });
  const url = `redis://127.0.0.1:${options.port}`;
  const failed = once(server, 'error').then(([error]) => ({
    missing: `redis-server does not start: ${error.message}`,
  }));
  const ended = once(server, 'exit').then(([status]) => ({ missing: `redis-server ended with status ${status}` }));
  return Promise.race([untilReady(url), failed, ended]);
}

async function untilReady(url: string): Promise<{ readonly url: string }> {
  for (const deadline = performance.now() + START_MS; ; await wait(20)) {
    const client = createClient({ url, socket: { reconnectStrategy: false } }).on('error', () => undefined);
    try {
      await client.connect();
      await client.close();
      return { url };
    } catch (error) {
      if (performance.now() > deadline) throw error;
    }
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  return address.port;
}
