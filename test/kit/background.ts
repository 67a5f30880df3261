import { type ChildProcess, spawn } from 'node:child_process';
import { cleanEnv, command, type Ran } from './cli.ts';
import { waitUntil } from '../suites/wait-until.ts';

export interface Background {
  readonly child: ChildProcess;
  readonly ended: Promise<Ran>;
  /** Waits until stderr shows the text. */
  shows(text: string): Promise<void>;
  /** What stderr showed so far. */
  said(): string;
}

/** The real CLI, while it runs; with options of Node. */
export function background(args: readonly string[], cwd: string, options: readonly string[] = []): Background {
  const [node, ...before] = command;
  const child = spawn(node, [...options, ...before, ...args], {
    cwd,
    env: cleanEnv(),
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
  const ended = new Promise<Ran>((settle, fail) => {
    child.on('error', fail);
    child.on('close', (status) => settle({ status, stdout, stderr }));
  });
  return {
    child,
    ended,
    said: () => stderr,
    shows: (text) =>
      waitUntil(() => {
        if (child.exitCode !== null && !stderr.includes(text))
          throw new Error(`It ended before it said ${text}: ${stderr}`);
        return stderr.includes(text);
      }, `It never said ${text}`),
  };
}
