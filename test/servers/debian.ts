import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { buildOnce, cacheFolder } from './cache.ts';
import { findProgram, isRoot, localMachine, type Machine, serversTempFolder } from './machine.ts';
import { errorLine, runProgram } from './program.ts';
import type { Launch, ReportProgress, Source } from './source.ts';

/** Change the name whenever the content of the folders changes. */
const BASE = 'debian-sid-1';
/** MySQL and DocumentDB are in Debian's unstable only. */
const SUITE = 'sid';
/** Parent folder of the servers, relative to the root of the Debian. */
const SERVERS = 'var/lib/svc';

/** Why a Debian cannot be unpacked on this machine, or undefined. */
export function whyDebianUnavailable(name: string): string | undefined {
  if (process.platform !== 'linux') return "Debian's packages run on Linux only";
  if (!isRoot()) return "Debian's packages need root";
  if (existsSync(join(cacheFolder(), folderOf(name)))) return undefined;
  if (findProgram('debootstrap') === undefined) return 'debootstrap is not installed (apt-get install debootstrap)';
  return undefined;
}

/** A folder with a minimal Debian and these packages. */
export function debian(name: string, packages: readonly string[], report: ReportProgress): Promise<string> {
  return buildOnce(folderOf(name), async (folder) => {
    const base = await buildOnce(BASE, async (root) => {
      report(`unpacking a minimal Debian (${SUITE})`);
      // Its mounts vanish with the namespace, however the build ends: removing the folder never deletes from /proc.
      await runProgram('unshare', ['--mount', 'debootstrap', '--variant=minbase', SUITE, root]);
      writeFile(root, 'usr/sbin/policy-rc.d', '#!/bin/sh\nexit 101\n');
      chmodSync(join(root, 'usr/sbin/policy-rc.d'), 0o755);
      writeFile(root, 'etc/postgresql-common/createcluster.conf', 'create_main_cluster = false\n');
      writeFile(root, 'etc/hosts', '127.0.0.1 localhost\n');
      writeFile(root, 'etc/dpkg/dpkg.cfg.d/svc', 'force-unsafe-io\nforce-confold\n');
      mkdirSync(join(root, SERVERS), { recursive: true });
    });
    report(`installing ${packages.join(', ')}`);
    await runProgram('cp', ['-a', '--reflink=auto', `${base}/.`, folder]);
    const install = () =>
      runInside(folder, ['apt-get', 'install', '--yes', '--no-install-recommends', '--quiet', ...packages]);
    try {
      await install();
    } catch {
      // The package lists of an older folder are outdated in unstable. A mirror that is no longer updated is fine here.
      await runInside(folder, ['apt-get', 'update', '--quiet', '-o', 'Acquire::Check-Valid-Until=false']);
      await install();
    }
  });
}

/** Runs a command inside that Debian with /proc mounted, which some packages need during installation. */
async function runInside(root: string, command: readonly string[]): Promise<void> {
  const script = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"';
  try {
    await runProgram('unshare', ['--mount', 'sh', '-c', script, root, ...command], {
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C.UTF-8' },
    });
  } catch (error) {
    throw new Error(`${command.join(' ')}: ${errorLine(error)}`);
  }
}

export const serversIn = (root: string): string => join(root, SERVERS);

const folderOf = (name: string): string => `${BASE}-${name}`;

function writeFile(root: string, path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

/** A server that runs as a program, installed on this machine or in a Debian of the cache. */
export interface BinarySource {
  readonly title: string;
  /** Why the installed program cannot be used, or undefined. */
  whyUnavailable(): string | undefined;
  /** Debian packages that contain it. */
  readonly packages: readonly [string, ...string[]];
  start(machine: Machine, launch: Launch): Promise<string>;
}

/** Prefers the installed program, unless `SVC_TEST_INSTALLED=off`. */
export function fromBinaries({ title, whyUnavailable: missing, packages, start }: BinarySource): readonly Source[] {
  const name = packages[0];
  return [
    {
      from: `an installed ${title}`,
      whyUnavailable: () =>
        process.env.SVC_TEST_INSTALLED === 'off'
          ? `installed servers are disabled (SVC_TEST_INSTALLED=off)`
          : missing(),
      prepare: async () => ({ folder: serversTempFolder(), start: (launch) => start(localMachine, launch) }),
    },
    {
      from: `Debian's ${name}`,
      whyUnavailable: () => whyDebianUnavailable(name),
      prepare: async (report) => {
        const root = await debian(name, packages, report);
        return { folder: serversIn(root), start: (launch) => start({ root }, launch) };
      },
    },
  ];
}
