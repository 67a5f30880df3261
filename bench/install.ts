import { existsSync } from 'node:fs';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from './command.ts';

/** Those that migrate. */
const MIGRATORS = new URL('./peers/', import.meta.url);
const root = fileURLToPath(new URL('..', import.meta.url));

/** npm may need a proxy, a registry or a certificate. */
const inherited = process.env as Readonly<Record<string, string>>;

/** Installs the peers into their own folder where that has not happened yet. */
export async function installPeers(folder = MIGRATORS): Promise<void> {
  const peers = fileURLToPath(folder);
  if (existsSync(`${peers}/node_modules/.package-lock.json`)) return;
  // Not `npm ci`: registries do not carry the binary of dbmate for every platform, and it wants all in the lock.
  console.error(`Installing the peers into ${relative(root, peers)} ...`);
  await run({
    program: 'npm',
    args: ['install', '--no-save', '--no-audit', '--no-fund', '--engine-strict=false'],
    cwd: peers,
    env: inherited,
    timeoutMs: 600_000,
  });
}

export async function buildSdk(): Promise<void> {
  console.error('Building ...');
  await run({ program: 'npm', args: ['run', 'build'], cwd: root, env: inherited, timeoutMs: 300_000 });
}
