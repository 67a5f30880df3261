import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import amqp from 'amqplib';
import { rabbitmqIn, rabbitmqMissing, urlAt } from '../servers/engines/rabbitmq.ts';
import { here } from '../servers/machine.ts';
import { freePort } from '../suites/free-port.ts';
import { waitUntil } from '../suites/wait-until.ts';

/** Why no server of one's own can be started here, or nothing. */
export const ownBrokerMissing = rabbitmqMissing;

const PATIENCE_MS = 180_000;

/** A broker that only this test has, so that it may be killed. */
export interface OwnBroker {
  readonly url: string;
  /** Starts it, again on the same data, and waits until it answers. */
  start(): Promise<void>;
  /** SIGKILL, as when the machine loses power. */
  kill(): Promise<void>;
  remove(): Promise<void>;
}

/** One that is not started yet. */
export async function ownBroker(): Promise<OwnBroker> {
  const home = mkdtempSync(join(tmpdir(), 'svc-own-mq-'));
  const [port, distribution, mapper] = [await freePort(), await freePort(), await freePort()];
  const { before, server, env } = rabbitmqIn(here, home, { port, distribution, mapper });
  const run = (file: string, args: readonly string[] = []): ChildProcess =>
    spawn(file, args, {
      cwd: home,
      env: { PATH: `${process.env.PATH}:/usr/sbin:/sbin`, LC_ALL: 'C.UTF-8', ...env },
      // A group of its own: the script starts Erlang, which starts helpers.
      detached: true,
      stdio: 'ignore',
    });
  const portMapper = run(before.file, before.args);
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
    async remove() {
      await broker.kill();
      await end(portMapper);
      rmSync(home, { recursive: true, force: true });
    },
  };
  return broker;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  process.kill(-child.pid, 'SIGKILL');
  await gone;
}
