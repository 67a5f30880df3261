import { spawn } from '@lydell/node-pty';
import { cleanEnv, command, type RunOptions, scripted } from './cli.ts';

export interface Terminal {
  /** The output of the terminal so far. */
  readonly shown: () => string;
  /** Waits until the terminal shows the text. */
  until(text: string | RegExp): Promise<void>;
  type(keys: string): void;
  readonly ended: Promise<number>;
}

const PATIENCE_MS = 60_000;

interface TerminalOptions extends RunOptions {
  readonly cols?: number;
  /** The terminal stays open until Enter is typed: 200 ms after its process has ended, node-pty drops unread output. */
  readonly staysOpen?: boolean;
}

/** The real CLI on a pseudo-terminal. */
export function terminal(
  args: readonly string[],
  { cwd, env, script, cols = 200, staysOpen = false }: TerminalOptions,
): Terminal {
  const words = [...(script === undefined ? command : scripted(script)), ...args];
  const [program = '', ...rest] = staysOpen
    ? ['sh', '-c', '"$@"; code=$?; read -r _; exit $code', 'sh', ...words]
    : words;
  const child = spawn(program, rest, {
    cwd,
    env: cleanEnv({ TERM: 'xterm-256color', ...env }),
    cols,
    rows: 50,
  });
  let shown = '';
  let exited: number | undefined;
  const listeners = new Set<() => void>();
  const notify = (): void => {
    for (const listener of listeners) listener();
  };
  child.onData((data) => {
    shown += data;
    notify();
  });
  const ended = new Promise<number>((resolve) => {
    child.onExit(({ exitCode }) => {
      exited = exitCode;
      resolve(exitCode);
      notify();
    });
  });
  return {
    shown: () => shown,
    type: (keys) => child.write(keys),
    ended,
    until: (text) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => finish(new Error(`The terminal never showed ${text}:\n${shown}`)), PATIENCE_MS);
        const finish = (error?: Error): void => {
          clearTimeout(timer);
          listeners.delete(check);
          if (error) reject(error);
          else resolve();
        };
        const check = (): void => {
          if (typeof text === 'string' ? shown.includes(text) : text.test(shown)) finish();
          else if (exited !== undefined) finish(new Error(`The command ended before it showed ${text}:\n${shown}`));
        };
        listeners.add(check);
        check();
      }),
  };
}
