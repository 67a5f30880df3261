import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import amqp from 'amqplib';
import { rabbitmqIn, rabbitmqMissing, urlAt } from '../servers/engines/rabbitmq.ts';
import { localMachine } from '../servers/machine.ts';
import { freePort } from '../suites/free-port.ts';
import { waitUntil } from '../suites/wait-until.ts';

/** Why no server can be started here, or undefined. */
export const ownBrokerMissing = rabbitmqMissing;

const PATIENCE_MS = 180_000;

/** A broker for one test, which may kill it. */
export interface OwnBroker {
  readonly url: string;
  /** Starts it, a second time on the same data, and waits until it accepts connections. */
  start(): Promise<void>;
  /** SIGKILL, which simulates a power failure. */
  kill(): Promise<void>;
  /** Stops it, so that it writes what it keeps, and starts it again. */
  restart(): Promise<void>;
  remove(): Promise<void>;
}

/** Creates a broker, which is not started yet. */
export async function ownBroker(): Promise<OwnBroker> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-own-mq-'));
  const [port, distribution, mapper] = [await freePort(), await freePort(), await freePort()];
  const {
    portMapper: portMapperCommand,
    server,
    env,
  } = rabbitmqIn(localMachine, folder, { port, distribution, mapper });
  const run = (file: string, args: readonly string[] = []): ChildProcess =>
    spawn(file, args, {
      cwd: folder,
      env: { PATH: `${process.env.PATH}:/usr/sbin:/sbin`, LC_ALL: 'C.UTF-8', ...env },
      // A separate process group: the script starts Erlang, which starts helpers.
      detached: true,
      stdio: 'ignore',
    });
  const portMapper = run(portMapperCommand.file, portMapperCommand.args);
  const url = urlAt(port);
  let running: ChildProcess | undefined;
  const answers = async (): Promise<boolean> => {
    if (running?.exitCode != null) throw new Error(`rabbitmq-server ended with ${running.exitCode}.`);
    try {
      await (await amqp.connect(url)).close();
      return true;
    } catch {
      return false;
    }
  };
  const broker: OwnBroker = {
    url,
    async start() {
      running = run(server);
      await waitUntil(answers, 'the broker does not answer', PATIENCE_MS);
    },
    async kill() {
      const child = running;
      running = undefined;
      if (child) await end(child);
    },
    async restart() {
      const child = running;
      running = undefined;
      if (child) await end(child, 'SIGTERM');
      await broker.start();
    },
    async remove() {
      await broker.kill();
      await end(portMapper);
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return broker;
}

async function end(child: ChildProcess, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  process.kill(-child.pid, signal);
  await gone;
}
