import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { postgresqlPrograms, whyPostgresqlUnavailable as unavailable } from '../servers/engines/postgresql.ts';
import { account, isRoot, localMachine } from '../servers/machine.ts';
import { freePort } from '../suites/free-port.ts';
import { waitUntil } from '../suites/wait-until.ts';

export { unavailable };

const PASSWORD = 'correct horse';
const START_TIMEOUT_MS = 30_000;

/** A server of one test, which may kill it. Every user needs a password. */
export interface OwnServer {
  readonly port: number;
  url(user?: string, password?: string, database?: string): string;
  /** Runs a query as the superuser with a separate client. */
  query(text: string, database?: string): Promise<Record<string, unknown>[]>;
  /** SIGKILL to the postmaster and all its children, like a power failure. */
  kill(): Promise<void>;
  /** Starts it again on the same data. */
  start(): Promise<void>;
  remove(): Promise<void>;
}

/** `data`: a folder for the data, which must not exist; default a temporary one. */
export async function ownServer(data?: string): Promise<OwnServer> {
  const bin = postgresqlPrograms(localMachine);
  const user = isRoot() ? account(localMachine, 'postgres') : userInfo();
  if (bin === undefined || user === undefined) throw new Error(unavailable());
  const root = mkdtempSync(join(tmpdir(), 'svc-own-pg-'));
  chmodSync(root, 0o777);
  const folder = data ?? join(root, 'data');
  const password = join(root, 'password');
  writeFileSync(password, PASSWORD);
  const as = { uid: user.uid, gid: user.gid, cwd: root, env: { PATH: process.env.PATH, LC_ALL: 'C' } };
  await ended(
    spawn(
      join(bin, 'initdb'),
      ['-D', folder, '-U', 'postgres', '-A', 'scram-sha-256', '-E', 'UTF8', '--no-sync', `--pwfile=${password}`],
      { ...as, stdio: ['ignore', 'ignore', 'pipe'] },
    ),
  );
  const port = await freePort();
  let running: ChildProcess | undefined;
  const url = (user = 'postgres', secret = PASSWORD, database = 'postgres'): string =>
    `postgresql://${encodeURIComponent(user)}:${encodeURIComponent(secret)}@127.0.0.1:${port}/${database}`;
  const query = async (text: string, database?: string): Promise<Record<string, unknown>[]> => {
    const client = new pg.Client({ connectionString: url(undefined, undefined, database) });
    client.on('error', () => {});
    await client.connect();
    try {
      return (await client.query(text)).rows ?? [];
    } finally {
      await client.end().catch(() => {});
    }
  };
  const server: OwnServer = {
    port,
    url,
    query,
    async kill() {
      const child = running;
      running = undefined;
      if (!child?.pid || child.exitCode !== null) return;
      const gone = once(child, 'close');
      const backends = childrenOf(child.pid);
      for (const pid of [child.pid, ...backends]) kill(pid);
      await gone;
      await waitUntil(() => backends.every((pid) => !isAlive(pid)), 'the backends kept running');
    },
    async start() {
      const settings = [
        'fsync=off',
        'dynamic_shared_memory_type=mmap', // Files in /dev/shm would outlive a kill.
        `unix_socket_directories=${root}`,
        'shared_buffers=16MB',
        'max_wal_size=32MB',
        'min_wal_size=32MB',
      ];
      running = spawn(
        join(bin, 'postgres'),
        ['-D', folder, '-p', String(port), '-h', '127.0.0.1', ...settings.flatMap((setting) => ['-c', setting])],
        { ...as, stdio: ['ignore', 'ignore', 'pipe'] },
      );
      let log = '';
      running.stderr?.on('data', (text) => {
        log += text;
      });
      const deadline = Date.now() + START_TIMEOUT_MS;
      for (;;) {
        const error = await query('SELECT 1').then(
          () => undefined,
          (reason: unknown) => reason,
        );
        if (error === undefined) return;
        if (Date.now() > deadline || running.exitCode !== null)
          throw new Error(`The server did not start: ${error}\n${log}`);
        await wait(20);
      }
    },
    async remove() {
      await server.kill();
      rmSync(root, { recursive: true, force: true });
    },
  };
  await server.start();
  return server;
}

async function ended(child: ChildProcess): Promise<void> {
  let output = '';
  child.stderr?.on('data', (text) => {
    output += text;
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`initdb ended with ${code}: ${output}`);
}

function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
        return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === parent;
      } catch {
        return false;
      }
    })
    .map(Number);
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended already.
  }
}

function isAlive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2)[0] !== 'Z';
  } catch {
    return false;
  }
}
