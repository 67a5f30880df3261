import { rmSync } from 'node:fs';
import { build } from './build.ts';
import { COMPOSE } from './compose.ts';
import { type Identity, isAlive, stop } from './process.ts';
import { exclusively, forget, record, type Started, servers } from './state.ts';

/** Stops what was started and what no living run uses; gives both. What is left goes when its last run ends. */
export async function down(onWait?: () => void): Promise<{ stopped: readonly Started[]; left: readonly Started[] }> {
  return exclusively(async () => {
    for (const server of servers()) record({ ...server, kept: false });
    return sweep();
  }, onWait);
}

/** A run does not use its servers any more. */
export async function release(user: Identity): Promise<void> {
  await exclusively(async () => {
    for (const server of servers())
      record({
        ...server,
        users: server.users.filter(({ pid, started }) => pid !== user.pid || started !== user.started),
      });
    await sweep();
  });
}

async function sweep(): Promise<{ stopped: readonly Started[]; left: readonly Started[] }> {
  const all = servers();
  const left = all.filter(({ kept, users }) => kept || users.some(isAlive));
  const stopped = all.filter((server) => !left.includes(server));
  await Promise.all(stopped.map(stopServer));
  return { stopped, left };
}

/** Ends its processes by their ids, and removes its data. */
export async function stopServer(server: Started): Promise<void> {
  for (const { signal, ...identity } of [...server.processes].reverse()) await stop(identity, signal);
  if (server.project !== undefined)
    await build('docker', [...COMPOSE, '--project-name', server.project, 'down', '--volumes', '--timeout', '1']);
  rmSync(server.folder, { recursive: true, force: true, maxRetries: 3 });
  forget(server);
}
