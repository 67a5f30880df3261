import { chownSync, existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fromBinaries } from '../binaries.ts';
import { fromDocker } from '../docker.ts';
import { account, here, inside, isRoot, type Machine, program } from '../machine.ts';
import type { Launch, Source } from '../source.ts';

/** The folder of a PostgreSQL's programs on that machine, the newest; nothing where none is installed. */
export function postgresqlPrograms({ root }: Machine): string | undefined {
  const versions = join(root, '/usr/lib/postgresql');
  const packaged = existsSync(versions)
    ? readdirSync(versions)
        .sort((a, b) => Number(b) - Number(a))
        .map((version) => join(versions, version, 'bin'))
    : [];
  const found = root === '' ? program('initdb') : undefined;
  return [...packaged, ...(found === undefined ? [] : [dirname(found)])].find((bin) =>
    ['initdb', 'postgres'].every((name) => existsSync(join(bin, name))),
  );
}

/** PostgreSQL refuses to run as root. */
export function postgresqlMissing(): string | undefined {
  if (postgresqlPrograms(here) === undefined) return 'initdb and postgres are not installed';
  if (isRoot() && account(here, 'postgres') === undefined)
    return 'PostgreSQL does not run as root, and there is no user postgres';
  return undefined;
}

/** A server with a superuser `postgres` who needs no password; nothing in it survives a power cut. */
export async function startPostgresql(
  machine: Machine,
  launch: Launch,
  port: number,
  settings: readonly string[] = [],
): Promise<string> {
  const bin = postgresqlPrograms(machine);
  if (bin === undefined) throw new Error('initdb and postgres are not there');
  const user = isRoot() ? account(machine, 'postgres') : undefined;
  if (user) chownSync(launch.folder, user.uid, user.gid);
  const data = inside(machine, join(launch.folder, 'data'));
  const as = { as: 'postgres' };
  launch.tell('makes a cluster');
  await launch.run(
    machine,
    inside(machine, join(bin, 'initdb')),
    ['-D', data, '-A', 'trust', '-U', 'postgres', '-E', 'UTF8', '--locale=C.UTF-8', '--no-sync'],
    as,
  );
  const all = [
    ...['fsync=off', 'full_page_writes=off', 'unix_socket_directories=', 'max_connections=200'],
    'dynamic_shared_memory_type=mmap', // In its folder: what is in /dev/shm outlives a kill.
    ...settings,
  ];
  launch.tell(`starts on port ${port}`);
  launch.spawn(
    machine,
    inside(machine, join(bin, 'postgres')),
    ['-D', data, '-p', String(port), '-h', '127.0.0.1', ...all.flatMap((setting) => ['-c', setting])],
    { ...as, signal: 'SIGINT' }, // The fast shutdown: SIGTERM waits until every client has left.
  );
  const url = `postgresql://postgres@127.0.0.1:${port}/postgres`;
  await launch.answers('postgresql', url);
  return url;
}

export const postgresql: readonly Source[] = [
  ...fromBinaries({
    title: 'PostgreSQL',
    missing: () => postgresqlMissing(),
    packages: ['postgresql'],
    start: async (machine, launch) => startPostgresql(machine, launch, await launch.port(5432)),
  }),
  fromDocker('postgresql', 5432, (port) => `postgresql://postgres@127.0.0.1:${port}/postgres`),
];
