import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { SvcError } from '../core/errors.ts';

const LOCKS: Readonly<Record<string, string>> = { 'pnpm-lock.yaml': 'pnpm', 'yarn.lock': 'yarn' };

/** `npm install`, or what the project's lock file asks for. What it prints goes to stderr. */
export async function installPackages(root: string, note: (line: string) => void): Promise<void> {
  const lock = Object.keys(LOCKS).find((file) => existsSync(join(root, file)));
  const manager = (lock !== undefined && LOCKS[lock]) || 'npm';
  const args = manager === 'npm' ? ['install', '--no-audit', '--no-fund', '--loglevel=error'] : ['install'];
  note(`installing with ${manager} …`);
  const failure = await run(manager, args, root);
  if (failure === undefined) return;
  throw new SvcError('install_failed', `${manager} install failed.`, {
    why: failure,
    state: 'The files are written.',
    next: [`${manager} install`],
  });
}

function run(command: string, args: readonly string[], cwd: string): Promise<string | undefined> {
  return new Promise((settle) => {
    const child = spawn(command, args, { cwd, stdio: ['ignore', 2, 2], shell: process.platform === 'win32' });
    child.on('error', (error) => settle(error.message));
    child.on('close', (code, signal) =>
      settle(code === 0 ? undefined : `It ended with ${signal ?? `status ${code}`}.`),
    );
  });
}
