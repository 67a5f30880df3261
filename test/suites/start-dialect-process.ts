import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Dialect } from '../../core/dialect.ts';
import type { Answer, Job, Jobs } from './dialect-process.ts';
import type { DialectUnderTest } from './dialect-under-test.ts';

type Arguments<J extends keyof Jobs> = Parameters<Jobs[J]> extends [Dialect, ...infer Rest] ? Rest : never;

/** Another process with the dialect. */
export interface DialectProcess {
  /** Runs a job. Rejects with its error, or if the process ends first. */
  run<J extends keyof Jobs>(name: J, ...args: Arguments<J>): Promise<Awaited<ReturnType<Jobs[J]>>>;
  /** Whether the process has ended by SIGKILL. */
  wasKilled(): boolean;
  /** Kills the process, which runs no cleanup, and waits for its end. */
  kill(): Promise<void>;
}

/** The process itself, next to this file: TypeScript in this repository, JavaScript in the package. */
const script = import.meta.url.endsWith('.ts')
  ? new URL('./dialect-process.ts', import.meta.url)
  : new URL('./dialect-process.js', import.meta.url);

/** `environment` is added to that of this process. */
export function startDialectProcess(
  { module, dialect }: DialectUnderTest,
  environment: NodeJS.ProcessEnv = {},
): DialectProcess {
  const child = forkScript(script, [moduleUrl(module), dialect.name], 'ignore', environment);
  let errors = '';
  child.stderr?.setEncoding('utf8').on('data', (text) => {
    errors += text;
  });
  const ended = once(child, 'close');
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  return {
    async run(name, ...args) {
      const answered = once(child, 'message') as Promise<[Answer]>;
      const job: Job = { name, args };
      // A dead process is reported below.
      if (!hasEnded()) child.send(job, () => {});
      const [answer] = await Promise.race([answered, ended.then(() => [undefined])]);
      if (answer === undefined) {
        throw new Error(`The process ended (${child.signalCode ?? child.exitCode}) during "${name}". ${errors.trim()}`);
      }
      if ('error' in answer) throw new Error(`In another process, "${name}" failed: ${answer.error}`);
      return answer.value as never;
    },
    wasKilled: () => child.signalCode === 'SIGKILL',
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** Starts a script of the suites with the loader of this process. */
export function forkScript(
  file: URL,
  args: readonly string[],
  stdout: 'ignore' | 'pipe',
  environment: NodeJS.ProcessEnv = {},
): ChildProcess {
  return fork(file, args, {
    execArgv: nodeOptions(file),
    env: { ...process.env, ...environment },
    serialization: 'advanced',
    stdio: ['ignore', stdout, 'pipe', 'ipc'],
  });
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
