import { spawn } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { QUICK } from './quick.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const BUILT = join(ROOT, 'dist/cli/main.cjs');
const LOADER = import.meta.resolve('tsx');

/** What to spawn for the real CLI, from any folder: the built one, which starts faster, unless a source is newer. */
export const command: readonly [string, ...string[]] = isBuilt()
  ? [process.execPath, BUILT]
  : [process.execPath, '--import', LOADER, join(ROOT, 'cli/bundle/main.ts')];

function isBuilt(): boolean {
  if (!existsSync(BUILT)) return false;
  const built = statSync(BUILT).mtimeMs;
  return ['core', 'plugins', 'config', 'cli'].every((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).every(
      (file) => statSync(join(ROOT, folder, file)).mtimeMs < built,
    ),
  );
}

/** What to spawn for a script of a test instead. */
export function scripted(script: string): readonly [string, ...string[]] {
  return [process.execPath, QUICK, '--import', LOADER, script];
}

export interface Ran {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  /** A script to run instead of the CLI. */
  readonly script?: string;
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Options of Node. */
  readonly node?: readonly string[];
}

/** An environment in which nothing of the tester's own decides. */
export function cleanEnv(more: RunOptions['env'] = {}): NodeJS.ProcessEnv {
  const { SVC_ENV: _env, NO_COLOR: _color, CI: _ci, FORCE_COLOR: _force, npm_command: _npm, ...rest } = process.env;
  return { ...rest, ...more };
}

/** Runs the real CLI in a process of its own. */
export function svc(args: readonly string[], { cwd, env, script, node: options = [] }: RunOptions): Promise<Ran> {
  const [node, ...before] = script === undefined ? command : scripted(script);
  return new Promise((settle, fail) => {
    const child = spawn(node, [...options, ...before, ...args], {
      cwd,
      env: cleanEnv(env),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    child.on('error', fail);
    child.on('close', (status) => settle({ status, stdout, stderr }));
  });
}
