import { rmSync } from 'node:fs';
import { COMPOSE } from './docker.ts';
import { ENGINES, type Engine } from './engine.ts';
import { isAlive, type ProcessIdentity, stop } from './process.ts';
import { runProgram } from './program.ts';
import { removeServer, type StartedServer, saveServer, startedServers, withStateLock } from './state.ts';

/** Stops the started servers of these engines that no live run uses. The servers left stop when their last run ends. */
export async function down(
  engines: readonly Engine[] = ENGINES,
  onWait?: () => void,
): Promise<{ stopped: readonly StartedServer[]; left: readonly StartedServer[] }> {
  return withStateLock(async () => {
    const named = startedServers().filter(({ engine }) => engines.includes(engine));
    for (const server of named) saveServer({ ...server, kept: false });
    const { stopped, left } = await sweep();
    return { stopped, left: left.filter(({ engine }) => engines.includes(engine)) };
  }, onWait);
}

/** Records that a run has ended, and stops the servers that nothing else uses. */
export async function release(user: ProcessIdentity): Promise<void> {
  await withStateLock(async () => {
    for (const server of startedServers())
      saveServer({
        ...server,
        users: server.users.filter(({ pid, started }) => pid !== user.pid || started !== user.started),
      });
    await sweep();
  });
}

async function sweep(): Promise<{ stopped: readonly StartedServer[]; left: readonly StartedServer[] }> {
  const all = startedServers();
  const left = all.filter(({ kept, users }) => kept || users.some(isAlive));
  const stopped = all.filter((server) => !left.includes(server));
  await Promise.all(stopped.map(stopServer));
  return { stopped, left };
}

/** Ends its processes by id, and removes its data. */
export async function stopServer(server: StartedServer): Promise<void> {
  for (const { signal, ...identity } of [...server.processes].reverse()) await stop(identity, signal);
  if (server.project !== undefined)
    await runProgram('docker', [...COMPOSE, '--project-name', server.project, 'down', '--volumes', '--timeout', '1']);
  rmSync(server.folder, { recursive: true, force: true, maxRetries: 3 });
  removeServer(server);
}
