import { existsSync } from 'node:fs';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from './command.ts';

/** The migration tools. */
const MIGRATORS = new URL('./peers/', import.meta.url);
const root = fileURLToPath(new URL('..', import.meta.url));

/** npm may need a proxy, a registry or a certificate from the environment. */
const inherited = process.env as Readonly<Record<string, string>>;

/** Installs the peers into their own folder, unless they are installed. */
export async function installPeers(folder = MIGRATORS): Promise<void> {
  const peers = fileURLToPath(folder);
  if (existsSync(`${peers}/node_modules/.package-lock.json`)) return;
  // Not `npm ci`, which requires the lock file to list dbmate's binary for every platform; registries lack some of them.
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
