import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AGENT_MARKERS } from '../../cli/agent.ts';
import { waitUntil } from '../suites/wait-until.ts';
import { LIFTOFF_ONLY } from './node-flags.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const BUILT = join(ROOT, 'dist/cli/main.cjs');
const LOADER = import.meta.resolve('tsx');

/** The command that starts the real CLI: the built one, which starts faster, unless a source is newer. */
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

/** The command that starts a script of a test. */
export function scripted(script: string): readonly [string, ...string[]] {
  return [process.execPath, LIFTOFF_ONLY, '--import', LOADER, script];
}

export interface CommandResult {
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
  readonly stdin?: string;
}

/** The environment without the variables that change the behavior of the CLI. */
export function cleanEnv(more: RunOptions['env'] = {}): NodeJS.ProcessEnv {
  const { SVC_ENV: _env, NO_COLOR: _color, CI: _ci, FORCE_COLOR: _force, npm_command: _npm, ...rest } = process.env;
  for (const [marker] of AGENT_MARKERS) delete rest[marker];
  return { ...rest, ...more };
}

/** Runs the real CLI in a separate process. What it prints with `--json` must match its documented schema. */
export async function svc(
  args: readonly string[],
  { cwd, env, script, node: options = [], stdin }: RunOptions,
): Promise<CommandResult> {
  const [node, ...before] = script === undefined ? command : scripted(script);
  const child = spawn(node, [...options, ...before, ...args], {
    cwd,
    env: cleanEnv(env),
    stdio: [stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  });
  // A command that reads nothing may have ended before.
  child.stdin?.on('error', () => undefined).end(stdin);
  const result = await collectOutput(child).ended;
  if (script === undefined && args.includes('--json')) {
    const { assertDocumentedOutput } = await import('./json-output.ts');
    assertDocumentedOutput(args, result.stdout);
  }
  return result;
}

/** What a child process has printed so far, and its result. */
interface ChildOutput {
  readonly ended: Promise<CommandResult>;
  stdout(): string;
  stderr(): string;
}

export function collectOutput(child: ChildProcess): ChildOutput {
  let stdout = '';
  let stderr = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const ended = new Promise<CommandResult>((settle, fail) => {
    child.on('error', fail);
    child.on('close', (status) => settle({ status, stdout, stderr }));
  });
  return { ended, stdout: () => stdout, stderr: () => stderr };
}

export interface RunningCli {
  readonly child: ChildProcess;
  readonly ended: Promise<CommandResult>;
  /** Waits until stderr shows the text. */
  untilStderr(text: string): Promise<void>;
  /** The output so far. */
  stdout(): string;
  stderr(): string;
}

/** Starts the real CLI and does not wait for its end. `options` are options of Node. */
export function startCli(
  args: readonly string[],
  cwd: string,
  options: readonly string[] = [],
  env: RunOptions['env'] = {},
): RunningCli {
  const [node, ...before] = command;
  const child = spawn(node, [...options, ...before, ...args], {
    cwd,
    env: cleanEnv(env),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const { ended, stdout, stderr } = collectOutput(child);
  return {
    child,
    ended,
    stdout,
    stderr,
    untilStderr: (text) =>
      waitUntil(() => {
        if (child.exitCode !== null && !stderr().includes(text))
          throw new Error(`It ended before it printed ${text}: ${stderr()}`);
        return stderr().includes(text);
      }, `It never printed ${text}`),
  };
}
