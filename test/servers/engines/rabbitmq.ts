import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fromBinaries } from '../debian.ts';
import { fromDocker } from '../docker.ts';
import { findProgram, type Machine, pathInside } from '../machine.ts';
import type { Launch, Source } from '../source.ts';

/** Debian's program on the PATH switches the user; this one does not. */
const PACKAGED = '/usr/lib/rabbitmq/bin/rabbitmq-server';

interface Ports {
  readonly port: number;
  readonly distribution: number;
  readonly mapper: number;
}

/** Prepares an empty folder for a server that stores everything there; returns the commands and environment to run it. */
export function rabbitmqIn(machine: Machine, folder: string, { port, distribution, mapper }: Ports) {
  const server = existsSync(join(machine.root, PACKAGED)) ? PACKAGED : (findProgram('rabbitmq-server') ?? PACKAGED);
  const pathOf = (name: string) => pathInside(machine, join(folder, name));
  for (const name of ['data', 'logs', 'config']) mkdirSync(join(folder, name));
  writeFileSync(join(folder, 'enabled_plugins'), '[].\n');
  writeFileSync(join(folder, 'environment'), '');
  // Erlang requires that only the owner can read the cookie.
  writeFileSync(join(folder, '.erlang.cookie'), `SVC${process.pid}`);
  chmodSync(join(folder, '.erlang.cookie'), 0o400);
  const env = {
    HOME: pathOf(''),
    ERL_EPMD_PORT: String(mapper),
    ERL_EPMD_ADDRESS: '127.0.0.1',
    RABBITMQ_NODENAME: `svc-${port}@localhost`,
    RABBITMQ_NODE_IP_ADDRESS: '127.0.0.1',
    RABBITMQ_NODE_PORT: String(port),
    RABBITMQ_DIST_PORT: String(distribution),
    RABBITMQ_MNESIA_BASE: pathOf('data'),
    RABBITMQ_LOG_BASE: pathOf('logs'),
    RABBITMQ_LOGS: '-',
    RABBITMQ_GENERATED_CONFIG_DIR: pathOf('config'),
    RABBITMQ_CONFIG_FILE: pathOf('config/rabbitmq'),
    RABBITMQ_CONF_ENV_FILE: pathOf('environment'),
    RABBITMQ_ENABLED_PLUGINS_FILE: pathOf('enabled_plugins'),
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '-kernel inet_dist_use_interface {127,0,0,1} +sbwt none',
  };
  // Otherwise Erlang starts a port mapper of its own, which nothing would stop.
  const portMapper = { file: portMapperPath(machine), args: ['-port', String(mapper), '-address', '127.0.0.1'] };
  return { portMapper, server, env };
}

async function start(machine: Machine, launch: Launch): Promise<string> {
  const [port, distribution, mapper] = [await launch.port(5672), await launch.port(), await launch.port()];
  const { portMapper, server, env } = rabbitmqIn(machine, launch.folder, { port, distribution, mapper });
  launch.report(`starting on port ${port}`);
  launch.spawn(machine, portMapper.file, portMapper.args, { env });
  // SIGKILL: on SIGTERM its script starts a second Erlang to stop the first, and there is nothing to save.
  launch.spawn(machine, server, [], { env, signal: 'SIGKILL' });
  await launch.waitForAnswer('rabbitmq', urlAt(port));
  return urlAt(port);
}

function portMapperPath(machine: Machine): string {
  const folder = join(machine.root, '/usr/lib/erlang');
  const runtime = existsSync(folder) ? readdirSync(folder).find((name) => name.startsWith('erts-')) : undefined;
  if (runtime !== undefined) return pathInside(machine, join(folder, runtime, 'bin/epmd'));
  return findProgram('epmd') ?? 'epmd';
}

export const urlAt = (port: number): string => `amqp://guest:guest@127.0.0.1:${port}`;

export const rabbitmqMissing = (): string | undefined =>
  findProgram('rabbitmq-server') === undefined ? 'rabbitmq-server is not installed' : undefined;

export const rabbitmq: readonly Source[] = [
  ...fromBinaries({
    title: 'RabbitMQ',
    whyUnavailable: rabbitmqMissing,
    packages: ['rabbitmq-server'],
    start,
  }),
  fromDocker('rabbitmq', 5672, urlAt),
];
