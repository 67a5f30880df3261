import { join } from 'node:path';
import { fromBinaries } from '../binaries.ts';
import { fromDocker } from '../docker.ts';
import { inside, isRoot, type Machine, program } from '../machine.ts';
import type { Launch, Source } from '../source.ts';

const INSTALLER = ['mariadb-install-db', '/usr/bin/mariadb-install-db'];
const SERVER = ['mariadbd', '/usr/sbin/mariadbd'];

async function start(machine: Machine, launch: Launch): Promise<string> {
  const port = await launch.port(3306, 3307);
  const [installer, server] = [INSTALLER, SERVER].map(([name = '', packaged = '']) =>
    machine.root === '' ? (program(name) ?? name) : packaged,
  ) as [string, string];
  const at = (name: string) => inside(machine, join(launch.folder, name));
  const common = ['--no-defaults', ...(isRoot() ? ['--user=root'] : []), `--datadir=${at('data')}`];
  launch.tell('makes its data folder');
  await launch.run(machine, installer, [
    ...common,
    '--auth-root-authentication-method=normal',
    '--skip-test-db',
    '--skip-name-resolve',
    '--force', // Else it asks for the machine's name, which a minimal Debian does not know.
  ]);
  launch.tell(`starts on port ${port}`);
  launch.spawn(machine, server, [
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
  ]);
  const url = urlAt(port);
  await launch.answers('mariadb', url);
  return url;
}

const urlAt = (port: number): string => `mariadb://root@127.0.0.1:${port}/`;

export const mariadb: readonly Source[] = [
  ...fromBinaries({
    title: 'MariaDB',
    missing: () =>
      [INSTALLER, SERVER].some(([name = '']) => program(name) === undefined)
        ? 'mariadbd and mariadb-install-db are not installed'
        : undefined,
    packages: ['mariadb-server-core', 'mariadb-client-core'],
    start,
  }),
  fromDocker('mariadb', 3306, urlAt),
];
