import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';

const VERSION = '2.3.232';
const START_MS = 30_000;

/** The file of H2 in the local repository of Maven, which fetches it the first time; or the one that `H2_JAR` names. */
function findJar(): string {
  const { H2_JAR } = process.env;
  const jar = H2_JAR ?? join(homedir(), `.m2/repository/com/h2database/h2/${VERSION}/h2-${VERSION}.jar`);
  if (existsSync(jar)) return jar;
  const artifact = `com.h2database:h2:${VERSION}`;
  execFileSync('mvn', ['-B', '-q', 'dependency:get', `-Dartifact=${artifact}`], { stdio: 'ignore' });
  return jar;
}

/** Starts a server, which stops with this process. Returns its URL without a database, or why it did not start. */
export async function startServer(): Promise<{ readonly url: string } | { readonly missing: string }> {
  let jar: string;
  try {
    jar = findJar();
  } catch (error) {
    return { missing: `Maven does not fetch H2: ${(error as Error).message}` };
  }
  const folder = mkdtempSync(join(tmpdir(), 'svc-h2-'));
  const port = String(await freePort());
  const options = ['-pg', '-pgPort', port, '-ifNotExists', '-baseDir', folder];
  const server = spawn('java', ['-Xmx512m', '-cp', jar, 'org.h2.tools.Server', ...options], { stdio: 'ignore' });
  server.unref();
  process.once('exit', () => {
    server.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });
  const failed = once(server, 'error').then(([error]) => ({ missing: `java does not start: ${error.message}` }));
  const ended = once(server, 'exit').then(([status]) => ({ missing: `the server ended with status ${status}` }));
  return Promise.race([untilReady(`h2://sa:sa@127.0.0.1:${port}`), failed, ended]);
}

async function untilReady(url: string): Promise<{ readonly url: string }> {
  for (const deadline = performance.now() + START_MS; ; await wait(50)) {
    const client = new pg.Client(`${url.replace('h2:', 'postgresql:')}/ready`).on('error', () => undefined);
    try {
      await client.connect();
      await client.end();
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
