import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** A script of the suites in a process of its own. */
interface StartedScript {
  readonly child: ChildProcess;
  /** Resolves when the process has ended. */
  readonly ended: Promise<undefined>;
  /** What it has written to stderr. */
  errors(): string;
  /** Kills the process, which runs no cleanup, and waits for its end. */
  kill(): Promise<void>;
}

interface ScriptOptions {
  readonly stdout?: 'ignore' | 'pipe';
  /** Added to that of this process. */
  readonly environment?: NodeJS.ProcessEnv;
}

/** Starts a script with the loader of this process. */
export function startScript(
  name: 'broker-process' | 'dialect-process' | 'key-value-file-process',
  args: readonly string[],
  { stdout = 'ignore', environment = {} }: ScriptOptions = {},
): StartedScript {
  // Next to this file: TypeScript in this repository, JavaScript in the package.
  const file = new URL(`./${name}.${import.meta.url.endsWith('.ts') ? 'ts' : 'js'}`, import.meta.url);
  const child = fork(file, args, {
    env: { ...process.env, ...environment },
    execArgv: nodeOptions(file),
    serialization: 'advanced',
    stdio: ['ignore', stdout, 'pipe', 'ipc'],
  });
  let errors = '';
  child.stderr?.setEncoding('utf8').on('data', (text) => {
    errors += text;
  });
  const ended = once(child, 'close').then(() => undefined);
  return {
    child,
    ended,
    errors: () => errors.trim(),
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

export function moduleUrl(module: URL | string): string {
  if (module instanceof URL) return module.href;
  if (module.startsWith('file:')) return module;
  return pathToFileURL(createRequire(join(process.cwd(), 'package.json')).resolve(module)).href;
}

/** The options of this process, such as a loader, without those of a test runner. */
function nodeOptions(file: URL): string[] {
  const options = process.execArgv.filter((option) => !option.startsWith('--test'));
  return file.pathname.endsWith('.ts') && !options.some((option) => option.includes('tsx'))
    ? [...options, '--import', 'tsx']
    : options;
}
