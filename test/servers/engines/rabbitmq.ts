import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fromBinaries } from '../binaries.ts';
import { fromDocker } from '../docker.ts';
import { inside, type Machine, program } from '../machine.ts';
import type { Launch, Source } from '../source.ts';

/** Debian's program on the path changes the user; the one behind it does not. */
const PACKAGED = '/usr/lib/rabbitmq/bin/rabbitmq-server';

interface Ports {
  readonly port: number;
  readonly distribution: number;
  readonly mapper: number;
}

/** What to run, and on which environment, for a server that keeps everything in a folder that is empty yet. */
export function rabbitmqIn(machine: Machine, folder: string, { port, distribution, mapper }: Ports) {
  const server = existsSync(join(machine.root, PACKAGED)) ? PACKAGED : (program('rabbitmq-server') ?? PACKAGED);
  const at = (name: string) => inside(machine, join(folder, name));
  for (const name of ['data', 'logs', 'config']) mkdirSync(join(folder, name));
  writeFileSync(join(folder, 'enabled_plugins'), '[].\n');
  writeFileSync(join(folder, 'environment'), '');
  // Erlang wants its cookie readable by its owner only.
  writeFileSync(join(folder, '.erlang.cookie'), `SVC${process.pid}`);
  chmodSync(join(folder, '.erlang.cookie'), 0o400);
  const env = {
    HOME: at(''),
    ERL_EPMD_PORT: String(mapper),
    ERL_EPMD_ADDRESS: '127.0.0.1',
    RABBITMQ_NODENAME: `svc-${port}@localhost`,
    RABBITMQ_NODE_IP_ADDRESS: '127.0.0.1',
    RABBITMQ_NODE_PORT: String(port),
    RABBITMQ_DIST_PORT: String(distribution),
    RABBITMQ_MNESIA_BASE: at('data'),
    RABBITMQ_LOG_BASE: at('logs'),
    RABBITMQ_LOGS: '-',
    RABBITMQ_GENERATED_CONFIG_DIR: at('config'),
    RABBITMQ_CONFIG_FILE: at('config/rabbitmq'),
    RABBITMQ_CONF_ENV_FILE: at('environment'),
    RABBITMQ_ENABLED_PLUGINS_FILE: at('enabled_plugins'),
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '-kernel inet_dist_use_interface {127,0,0,1} +sbwt none',
  };
  // Erlang would start its port mapper by itself, as a process that nobody ends.
  const before = { file: portMapper(machine), args: ['-port', String(mapper), '-address', '127.0.0.1'] };
  return { before, server, env };
}

async function start(machine: Machine, launch: Launch): Promise<string> {
  const [port, distribution, mapper] = [await launch.port(5672), await launch.port(), await launch.port()];
  const { before, server, env } = rabbitmqIn(machine, launch.folder, { port, distribution, mapper });
  launch.tell(`starts on port ${port}`);
  launch.spawn(machine, before.file, before.args, { env });
  // Asked to stop, its script starts a second Erlang that asks the first; there is nothing to save.
  launch.spawn(machine, server, [], { env, signal: 'SIGKILL' });
  await launch.answers('rabbitmq', urlAt(port));
  return urlAt(port);
}

function portMapper(machine: Machine): string {
  const folder = join(machine.root, '/usr/lib/erlang');
  const runtime = existsSync(folder) ? readdirSync(folder).find((name) => name.startsWith('erts-')) : undefined;
  if (runtime !== undefined) return inside(machine, join(folder, runtime, 'bin/epmd'));
  return program('epmd') ?? 'epmd';
}

export const urlAt = (port: number): string => `amqp://guest:guest@127.0.0.1:${port}`;

export const rabbitmqMissing = (): string | undefined =>
  program('rabbitmq-server') === undefined ? 'rabbitmq-server is not installed' : undefined;

export const rabbitmq: readonly Source[] = [
  ...fromBinaries({
    title: 'RabbitMQ',
    missing: rabbitmqMissing,
    packages: ['rabbitmq-server'],
    start,
  }),
  fromDocker('rabbitmq', 5672, urlAt),
];
