import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { freePort } from '../suites/free-port.ts';
import { build, lastOf } from './build.ts';
import { COMPOSE } from './compose.ts';
import { handshake } from './handshake.ts';
import { command } from './machine.ts';
import { identify } from './process.ts';
import type { Launch, Tell } from './source.ts';
import { record, type Started } from './state.ts';

/** Several servers start at once, and beside tests: one that ended is not waited for. */
const PATIENCE_MS = 300_000;
const POLL_MS = 100;

/** Ports that servers of this process were given and may not listen on yet. */
const given = new Set<number>();

/** A server that starts as that entry, which grows with what has to be undone; `before` is the port it once had. */
export function launch(entry: Started, tell: Tell, before?: number): Launch {
  let current = entry;
  const log = join(entry.folder, 'log');
  const children: ChildProcess[] = [];
  let broken: Error | undefined;
  const grow = (more: Partial<Started>): void => {
    current = { ...current, ...more };
    record(current);
  };
  const environment = (more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv => ({
    PATH: `${process.env.PATH}:/usr/sbin:/sbin`,
    HOME: entry.folder,
    LC_ALL: 'C.UTF-8',
    ...more,
  });
  let first = before;
  return {
    folder: entry.folder,
    tell,
    async port(...usual) {
      const wanted = [...(first === undefined ? [] : [first]), ...usual].filter((port) => !given.has(port));
      first = undefined;
      for (;;) {
        const port = await freePort(...wanted);
        if (given.has(port)) continue;
        given.add(port);
        return port;
      }
    },
    async run(machine, file, args, { as, env, cwd = '/' } = {}) {
      const how = command(machine, file, args, as);
      await build(how.file, how.args, { cwd, env: environment(env), ...how.user });
    },
    spawn(machine, file, args, { as, env, cwd = '/', signal = 'SIGTERM' } = {}) {
      const how = command(machine, file, args, as);
      const output = openSync(log, 'a');
      const child = spawn(how.file, how.args, {
        cwd,
        env: environment(env),
        ...how.user,
        detached: true,
        stdio: ['ignore', output, output],
      });
      closeSync(output);
      child.on('error', (error) => {
        broken ??= error;
      });
      child.on('exit', (code, cause) => {
        // Stopped by ourselves, its folder has gone before it.
        const said = existsSync(log) ? lastOf(readFileSync(log, 'utf8')) : '';
        broken ??= new Error(`${file} ended with ${cause ?? code}: ${said}`);
      });
      child.unref();
      children.push(child);
      const identity = child.pid === undefined ? undefined : identify(child.pid);
      if (identity) grow({ processes: [...current.processes, { ...identity, signal }] });
    },
    async answers(engine, url) {
      const deadline = performance.now() + PATIENCE_MS;
      for (;;) {
        const refusal = await handshake(engine, url).then(
          () => undefined,
          (error: Error) => error,
        );
        if (broken) throw broken;
        if (refusal === undefined) break;
        if (performance.now() > deadline) throw new Error(`it does not answer at ${url}: ${refusal.message}`);
        await wait(POLL_MS);
      }
      if (engine === entry.engine) grow({ url });
    },
    async compose(service, port) {
      const project = `svc-test-${entry.folder.slice(-8)}`;
      grow({ project });
      await build('docker', [...COMPOSE, '--project-name', project, 'up', '--detach', '--quiet-pull', service], {
        env: { ...process.env, SVC_TEST_PORT: String(port) },
      });
    },
  };
}
