import { chownSync, existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fromBinaries } from '../debian.ts';
import { fromDocker } from '../docker.ts';
import { account, findProgram, isRoot, localMachine, type Machine, pathInside } from '../machine.ts';
import type { Launch, Source } from '../source.ts';

/** The folder with the programs of the newest PostgreSQL on that machine, or undefined. */
export function postgresqlPrograms({ root }: Machine): string | undefined {
  const versions = join(root, '/usr/lib/postgresql');
  const packaged = existsSync(versions)
    ? readdirSync(versions)
        .sort((a, b) => Number(b) - Number(a))
        .map((version) => join(versions, version, 'bin'))
    : [];
  const found = root === '' ? findProgram('initdb') : undefined;
  return [...packaged, ...(found === undefined ? [] : [dirname(found)])].find((bin) =>
    ['initdb', 'postgres'].every((name) => existsSync(join(bin, name))),
  );
}

/** Why the installed PostgreSQL cannot be used, or undefined. It does not run as root. */
export function whyPostgresqlUnavailable(): string | undefined {
  if (postgresqlPrograms(localMachine) === undefined) return 'initdb and postgres are not installed';
  if (isRoot() && account(localMachine, 'postgres') === undefined)
    return 'PostgreSQL does not run as root, and there is no user postgres';
  return undefined;
}

/** A server with the superuser `postgres` and no password. It never syncs: its data would not survive a power cut. */
export async function startPostgresql(
  machine: Machine,
  launch: Launch,
  port: number,
  settings: readonly string[] = [],
): Promise<string> {
  const bin = postgresqlPrograms(machine);
  if (bin === undefined) throw new Error('initdb and postgres are not installed');
  const user = isRoot() ? account(machine, 'postgres') : undefined;
  if (user) chownSync(launch.folder, user.uid, user.gid);
  const folder = join(launch.folder, 'data');
  const data = pathInside(machine, folder);
  const asPostgres = { as: 'postgres' };
  launch.report('creating a cluster');
  await launch.run(
    machine,
    pathInside(machine, join(bin, 'initdb')),
    ['-D', data, '-A', 'trust', '-U', 'postgres', '-E', 'UTF8', '--locale=C.UTF-8', '--no-sync'],
    asPostgres,
  );
  const all = [
    ...['fsync=off', 'full_page_writes=off', 'synchronous_commit=off', 'autovacuum=off'],
    ...['unix_socket_directories=', 'max_connections=200'],
    'dynamic_shared_memory_type=mmap', // Inside its folder: segments in /dev/shm outlive a kill.
    ...settings,
  ];
  launch.report(`starting on port ${port}`);
  launch.spawn(
    machine,
    pathInside(machine, join(bin, 'postgres')),
    ['-D', data, '-p', String(port), '-h', '127.0.0.1', ...all.flatMap((setting) => ['-c', setting])],
    { ...asPostgres, signal: 'SIGINT', data: folder }, // Fast shutdown: SIGTERM waits until every client has disconnected.
  );
  const url = `postgresql://postgres@127.0.0.1:${port}/postgres`;
  await launch.waitForAnswer('postgresql', url);
  return url;
}

export const postgresql: readonly Source[] = [
  ...fromBinaries({
    title: 'PostgreSQL',
    whyUnavailable: () => whyPostgresqlUnavailable(),
    packages: ['postgresql'],
    start: async (machine, launch) => startPostgresql(machine, launch, await launch.port(5432)),
  }),
  fromDocker('postgresql', 5432, (port) => `postgresql://postgres@127.0.0.1:${port}/postgres`),
];
