import { existsSync, mkdirSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { delimiter, join } from 'node:path';

/** Where programs run: this machine, or a Debian in a folder of the cache, entered with chroot. */
export interface Machine {
  /** The folder of the Debian; empty for this machine. */
  readonly root: string;
}

export const localMachine: Machine = { root: '' };

export const isRoot = (): boolean => userInfo().uid === 0;

/** A path as seen from inside the chroot. */
export const pathInside = ({ root }: Machine, path: string): string => path.slice(root.length);

interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** A user of that machine, or undefined. */
export function account({ root }: Machine, name: string): Account | undefined {
  const passwd = join(root, '/etc/passwd');
  const line = (existsSync(passwd) ? readFileSync(passwd, 'utf8') : '')
    .split('\n')
    .find((entry) => entry.startsWith(`${name}:`))
    ?.split(':');
  return line && { uid: Number(line[2]), gid: Number(line[3]) };
}

/** The command that runs a file of that machine, as that user if this process is root. */
export function commandOn(
  machine: Machine,
  file: string,
  args: readonly string[],
  as?: string,
): { file: string; args: readonly string[]; user: Account | undefined } {
  const user = as === undefined || !isRoot() ? undefined : account(machine, as);
  if (machine.root === '') return { file, args, user };
  const userFlags = user === undefined ? [] : [`--userspec=${user.uid}:${user.gid}`];
  return { file: 'chroot', args: [...userFlags, machine.root, file, ...args], user: undefined };
}

const TMPFS = 0x01021994;

/**
 * The command with a copy of that folder in memory, which no other process sees and which ends with it. The command itself
 * where temporary files are on a disk.
 */
export function withInMemory<C extends { file: string; args: readonly string[] }>(folder: string, command: C): C {
  if (statfsSync(tmpdir()).type !== TMPFS) return command;
  const script =
    'mkdir "$0.disk" && mount --bind "$0" "$0.disk" && mount -t tmpfs svc "$0" && cp -a "$0.disk/." "$0" && exec "$@"';
  return { ...command, file: 'unshare', args: ['--mount', 'sh', '-c', script, folder, command.file, ...command.args] };
}

/** The path of the first of these programs that is installed. */
export function findProgram(...names: readonly string[]): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin', '/opt/homebrew/bin'];
  return names
    .flatMap((name) => (name.startsWith('/') ? [name] : folders.map((folder) => join(folder, name))))
    .find((path) => existsSync(path));
}

/** Parent folder of the servers of this machine. Not the home directory, which the users they run as may not enter. */
export function serversTempFolder(): string {
  const { uid, username } = userInfo();
  const folder = join(tmpdir(), `svc-test-servers-${username}`);
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  if (uid >= 0 && statSync(folder).uid !== uid) throw new Error(`${folder} belongs to somebody else`);
  return folder;
}
