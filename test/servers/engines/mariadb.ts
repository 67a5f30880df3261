import { join } from 'node:path';
import { fromBinaries } from '../debian.ts';
import { fromDocker } from '../docker.ts';
import { findProgram, isRoot, type Machine, pathInside } from '../machine.ts';
import type { Launch, Source } from '../source.ts';

const INSTALLER = ['mariadb-install-db', '/usr/bin/mariadb-install-db'];
const SERVER = ['mariadbd', '/usr/sbin/mariadbd'];

async function start(machine: Machine, launch: Launch): Promise<string> {
  const port = await launch.port(3306, 3307);
  const [installer, server] = [INSTALLER, SERVER].map(([name = '', packaged = '']) =>
    machine.root === '' ? (findProgram(name) ?? name) : packaged,
  ) as [string, string];
  const at = (name: string) => pathInside(machine, join(launch.folder, name));
  const common = ['--no-defaults', ...(isRoot() ? ['--user=root'] : []), `--datadir=${at('data')}`];
  launch.report('creating its data folder');
  await launch.run(machine, installer, [
    ...common,
    '--auth-root-authentication-method=normal',
    '--skip-test-db',
    '--skip-name-resolve',
    '--force', // Otherwise it looks up the host name, which a minimal Debian cannot resolve.
  ]);
  launch.report(`starting on port ${port}`);
  launch.spawn(
    machine,
    server,
    [
      ...common,
      `--port=${port}`,
      '--bind-address=127.0.0.1',
      `--socket=${at('socket')}`,
      `--pid-file=${at('pid')}`,
      '--skip-log-bin',
      '--performance-schema=OFF',
      '--innodb-flush-log-at-trx-commit=0',
      '--character-set-server=utf8mb4', // As Debian configures it; before 11.6 it is latin1.
      '--collation-server=utf8mb4_general_ci',
      '--skip-name-resolve',
      '--max-connections=500',
    ],
    { data: join(launch.folder, 'data') },
  );
  const url = urlAt(port);
  await launch.waitForAnswer('mariadb', url);
  return url;
}

const urlAt = (port: number): string => `mariadb://root@127.0.0.1:${port}/`;

export const mariadb: readonly Source[] = [
  ...fromBinaries({
    title: 'MariaDB',
    whyUnavailable: () =>
      [INSTALLER, SERVER].some(([name = '']) => findProgram(name) === undefined)
        ? 'mariadbd and mariadb-install-db are not installed'
        : undefined,
    packages: ['mariadb-server-core', 'mariadb-client-core'],
    start,
  }),
  fromDocker('mariadb', 3306, urlAt),
];
