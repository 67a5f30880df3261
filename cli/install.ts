import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join, relative, resolve, sep } from 'node:path';
import { SvcError } from '../core/errors.ts';
import { version } from '../core/version.ts';

const LOCK_FILES: Readonly<Record<string, string>> = { 'pnpm-lock.yaml': 'pnpm', 'yarn.lock': 'yarn' };

/** Installs with npm, or with the package manager of the project's lock file. Its output goes to stderr. */
export async function installPackages(root: string, note: (line: string) => void): Promise<void> {
  const lock = Object.keys(LOCK_FILES).find((file) => existsSync(join(root, file)));
  const manager = (lock !== undefined && LOCK_FILES[lock]) || 'npm';
  const args = manager === 'npm' ? ['install', '--no-audit', '--no-fund', '--loglevel=error'] : ['install'];
  note(`installing with ${manager} …`);
  const failure = await run(manager, args, root);
  if (failure === undefined) return;
  throw new SvcError('install_failed', `${manager} install failed.`, {
    why: failure,
    state: 'The files were written.',
    next: [`${manager} install`],
  });
}

function run(command: string, args: readonly string[], cwd: string): Promise<string | undefined> {
  return new Promise((settle) => {
    const child = spawn(command, args, { cwd, stdio: ['ignore', 2, 2], shell: process.platform === 'win32' });
    child.on('error', (error) => settle(error.message));
    child.on('close', (code, signal) =>
      settle(code === 0 ? undefined : `It exited with ${signal ?? `status ${code}`}.`),
    );
  });
}

const INSTALLED = /^(.*)[\\/]node_modules[\\/]@svc[\\/]sdk[\\/]/;

/**
 * The version of `@svc/sdk` for a new project in the folder `root`: SVC_SDK_SPEC, or the one in the project whose node_modules
 * contain this CLI (npx installs a tarball there), or this version from the registry. The path of a tarball is relative to `root`.
 */
export function sdkSpec(root: string): string {
  const override = process.env.SVC_SDK_SPEC;
  if (override) return override;
  const project = INSTALLED.exec(import.meta.filename)?.[1];
  const declared = project === undefined ? undefined : specInManifest(project, root);
  return declared ?? `^${version}`;
}

function specInManifest(project: string, root: string): string | undefined {
  const file = join(project, 'package.json');
  if (!existsSync(file)) return undefined;
  const { dependencies, devDependencies }: Record<string, Record<string, string> | undefined> = JSON.parse(
    readFileSync(file, 'utf8'),
  );
  const spec = { ...devDependencies, ...dependencies }['@svc/sdk'];
  if (!spec?.startsWith('file:')) return spec;
  const path = relative(root, resolve(project, spec.slice('file:'.length)));
  return `file:${path.split(sep).join('/')}`;
}
