import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { freePort } from '../suites/free-port.ts';
import { COMPOSE } from './docker.ts';
import { handshake } from './handshake.ts';
import { commandOn, withInMemory } from './machine.ts';
import { identify } from './process.ts';
import { lastErrorLines, runProgram } from './program.ts';
import type { Launch, ReportProgress } from './source.ts';
import { type StartedServer, saveServer } from './state.ts';

/** Long, because several servers start at once on a busy machine; a server that exits fails at once. */
const START_TIMEOUT_MS = 300_000;
const POLL_MS = 100;

/** Ports handed out by this process whose servers may not listen yet. */
const reservedPorts = new Set<number>();

/** Starts a server and records in its state entry what `down` has to undo; `previousPort` is tried first. */
export function launch(entry: StartedServer, report: ReportProgress, previousPort?: number): Launch {
  let current = entry;
  const log = join(entry.folder, 'log');
  const children: ChildProcess[] = [];
  let failure: Error | undefined;
  const update = (more: Partial<StartedServer>): void => {
    current = { ...current, ...more };
    saveServer(current);
  };
  const environment = (more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv => ({
    PATH: `${process.env.PATH}:/usr/sbin:/sbin`,
    HOME: entry.folder,
    LC_ALL: 'C.UTF-8',
    ...more,
  });
  let preferred = previousPort;
  return {
    folder: entry.folder,
    report,
    async port(...defaults) {
      const wanted = [...(preferred === undefined ? [] : [preferred]), ...defaults].filter(
        (port) => !reservedPorts.has(port),
      );
      preferred = undefined;
      for (;;) {
        const port = await freePort(...wanted);
        if (reservedPorts.has(port)) continue;
        reservedPorts.add(port);
        return port;
      }
    },
    async run(machine, file, args, { as, env, cwd = '/' } = {}) {
      const how = commandOn(machine, file, args, as);
      await runProgram(how.file, how.args, { cwd, env: environment(env), ...how.user });
    },
    spawn(machine, file, args, { as, env, cwd = '/', signal = 'SIGTERM', data } = {}) {
      const command = commandOn(machine, file, args, as);
      // On this machine, the folder is where temporary files are.
      const how = data === undefined || machine.root === '' ? command : withInMemory(data, command);
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
        failure ??= error;
      });
      child.on('exit', (code, cause) => {
        // After `down` the folder may be gone already.
        const output = existsSync(log) ? lastErrorLines(readFileSync(log, 'utf8')) : '';
        failure ??= new Error(`${file} ended with ${cause ?? code}: ${output}`);
      });
      child.unref();
      children.push(child);
      const identity = child.pid === undefined ? undefined : identify(child.pid);
      if (identity) update({ processes: [...current.processes, { ...identity, signal }] });
    },
    async waitForAnswer(engine, url) {
      const deadline = performance.now() + START_TIMEOUT_MS;
      for (;;) {
        const error = await handshake(engine, url).then(
          () => undefined,
          (reason: Error) => reason,
        );
        if (failure) throw failure;
        if (error === undefined) break;
        if (performance.now() > deadline) throw new Error(`it does not answer at ${url}: ${error.message}`);
        await wait(POLL_MS);
      }
      if (engine === entry.engine) update({ url });
    },
    async compose(service, port) {
      const project = `svc-test-${entry.folder.slice(-8)}`;
      update({ project });
      await runProgram('docker', [...COMPOSE, '--project-name', project, 'up', '--detach', '--quiet-pull', service], {
        env: { ...process.env, SVC_TEST_PORT: String(port) },
      });
    },
  };
}
