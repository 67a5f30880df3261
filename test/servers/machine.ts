import { existsSync, readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { delimiter, join } from 'node:path';

/** Where programs are: this machine, or a Debian of our own in a folder, entered with chroot. */
export interface Machine {
  /** Empty for this one. */
  readonly root: string;
}

export const here: Machine = { root: '' };

export const isRoot = (): boolean => userInfo().uid === 0;

/** What a path is called there. */
export const inside = ({ root }: Machine, path: string): string => path.slice(root.length);

interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** A user of that machine, by name; nothing where there is none. */
export function account({ root }: Machine, name: string): Account | undefined {
  const passwd = join(root, '/etc/passwd');
  const line = (existsSync(passwd) ? readFileSync(passwd, 'utf8') : '')
    .split('\n')
    .find((entry) => entry.startsWith(`${name}:`))
    ?.split(':');
  return line && { uid: Number(line[2]), gid: Number(line[3]) };
}

/** How to run a file of that machine from here. */
export function command(
  machine: Machine,
  file: string,
  args: readonly string[],
  as?: string,
): { file: string; args: readonly string[]; user: Account | undefined } {
  const user = as === undefined || !isRoot() ? undefined : account(machine, as);
  if (machine.root === '') return { file, args, user };
  const who = user === undefined ? [] : [`--userspec=${user.uid}:${user.gid}`];
  return { file: 'chroot', args: [...who, machine.root, file, ...args], user: undefined };
}

/** The first of these names that is a program here, with its path. */
export function program(...names: readonly string[]): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin', '/opt/homebrew/bin'];
  return names
    .flatMap((name) => (name.startsWith('/') ? [name] : folders.map((folder) => join(folder, name))))
    .find((path) => existsSync(path));
}
