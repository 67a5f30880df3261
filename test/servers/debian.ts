import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { build } from './build.ts';
import { built, cacheFolder } from './cache.ts';
import { isRoot, program } from './machine.ts';
import type { Tell } from './source.ts';
import { told } from './told.ts';

/** A change of what is put into the folders needs a new name. */
const BASE = 'debian-sid-1';
/** MySQL and DocumentDB are in Debian's unstable only. */
const SUITE = 'sid';
/** Servers have their folders here, seen from within the same. */
const SERVERS = 'var/lib/svc';

/** Why no Debian of our own can be had, or nothing. */
export function debianMissing(name: string): string | undefined {
  if (process.platform !== 'linux') return "Debian's packages run on Linux only";
  if (!isRoot()) return "Debian's packages need root";
  if (existsSync(join(cacheFolder(), folderOf(name)))) return undefined;
  if (program('debootstrap') === undefined) return 'debootstrap is not installed (apt-get install debootstrap)';
  return undefined;
}

/** A folder with a minimal Debian and these packages. */
export function debian(name: string, packages: readonly string[], tell: Tell): Promise<string> {
  return built(folderOf(name), async (folder) => {
    const base = await built(BASE, async (root) => {
      tell(`unpacks a minimal Debian (${SUITE})`);
      // What it mounts vanishes with the namespace, however the build ends: removing the folder never meets /proc.
      await build('unshare', ['--mount', 'debootstrap', '--variant=minbase', SUITE, root]);
      put(root, 'usr/sbin/policy-rc.d', '#!/bin/sh\nexit 101\n');
      chmodSync(join(root, 'usr/sbin/policy-rc.d'), 0o755);
      put(root, 'etc/postgresql-common/createcluster.conf', 'create_main_cluster = false\n');
      put(root, 'etc/hosts', '127.0.0.1 localhost\n');
      put(root, 'etc/dpkg/dpkg.cfg.d/svc', 'force-unsafe-io\nforce-confold\n');
      mkdirSync(join(root, SERVERS), { recursive: true });
    });
    tell(`installs ${packages.join(', ')}`);
    await build('cp', ['-a', '--reflink=auto', `${base}/.`, folder]);
    const install = () =>
      within(folder, ['apt-get', 'install', '--yes', '--no-install-recommends', '--quiet', ...packages]);
    try {
      await install();
    } catch {
      // Of an old folder: unstable has moved on. A mirror that stands still is as good as any here.
      await within(folder, ['apt-get', 'update', '--quiet', '-o', 'Acquire::Check-Valid-Until=false']);
      await install();
    }
  });
}

/** Runs a command of that Debian, with the /proc that packages ask for when they are installed. */
async function within(root: string, words: readonly string[]): Promise<void> {
  const script = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"';
  try {
    await build('unshare', ['--mount', 'sh', '-c', script, root, ...words], {
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C.UTF-8' },
    });
  } catch (error) {
    throw new Error(`${words.join(' ')}: ${told(error)}`);
  }
}

export const serversIn = (root: string): string => join(root, SERVERS);

const folderOf = (name: string): string => `${BASE}-${name}`;

function put(root: string, path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}
