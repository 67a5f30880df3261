import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fromBinaries } from '../debian.ts';
import { fromDocker } from '../docker.ts';
import { findProgram, isRoot, type Machine, pathInside } from '../machine.ts';
import type { Launch, Source } from '../source.ts';

/** MariaDB installs a program named mysqld too. */
function installedMysqld(): string | undefined {
  const mysqld = findProgram('mysqld');
  if (mysqld === undefined) return undefined;
  return /mariadb/i.test(spawnSync(mysqld, ['--version'], { encoding: 'utf8' }).stdout) ? undefined : mysqld;
}

async function start(machine: Machine, launch: Launch): Promise<string> {
  const port = await launch.port(3306, 3307);
  const mysqld = machine.root === '' ? (installedMysqld() ?? 'mysqld') : '/usr/sbin/mysqld';
  const at = (name: string) => pathInside(machine, join(launch.folder, name));
  mkdirSync(join(launch.folder, 'files'));
  // Debian's default for secure-file-priv is a folder that only the full server package creates.
  const common = [
    '--no-defaults',
    ...(isRoot() ? ['--user=root'] : []),
    `--datadir=${at('data')}`,
    `--secure-file-priv=${at('files')}`,
  ];
  launch.report('creating its data folder');
  await launch.run(machine, mysqld, [...common, '--initialize-insecure']);
  launch.report(`starting on port ${port}`);
  launch.spawn(
    machine,
    mysqld,
    [
      ...common,
      `--port=${port}`,
      '--bind-address=127.0.0.1',
      `--socket=${at('socket')}`,
      `--pid-file=${at('pid')}`,
      '--mysqlx=OFF',
      '--skip-log-bin',
      '--performance-schema=OFF',
      '--innodb-flush-log-at-trx-commit=0',
      '--innodb-flush-method=nosync',
      '--max-connections=500',
    ],
    { data: join(launch.folder, 'data') },
  );
  const url = urlAt(port);
  await launch.waitForAnswer('mysql', url);
  return url;
}

const urlAt = (port: number): string => `mysql://root@127.0.0.1:${port}/`;

export const mysql: readonly Source[] = [
  ...fromBinaries({
    title: 'MySQL',
    whyUnavailable: () => (installedMysqld() === undefined ? 'mysqld is not installedMysqld' : undefined),
    packages: ['mysql-server-core'],
    start,
  }),
  fromDocker('mysql', 3306, urlAt),
];
