import { SvcError } from '../core/errors.ts';

interface ExitWatch {
  /** Call it once the result is printed: it is then the exit status, even if closing what the command used never ends. */
  printed(status: number): number;
  stop(): void;
}

/**
 * Reports a process that ends before its command does. A module of the project may call process.exit(), or wait for
 * something that never happens: the exit status would be 0. `report` prints the error and returns the exit status.
 */
export function watchExit(signal: AbortSignal, report: (error: SvcError) => number): ExitWatch {
  let result: number | undefined;
  let crashed = false;
  const crash = (): void => {
    crashed = true;
  };
  const exit = (status: number): void => {
    if (result !== undefined) process.exitCode = result;
    // A second Ctrl-C ends the process.
    else if (!crashed && !(signal.aborted && status !== 0)) process.exitCode = report(endedEarly());
  };
  process.on('uncaughtExceptionMonitor', crash).on('exit', exit);
  return {
    printed: (status) => {
      result = status;
      return status;
    },
    stop: () => {
      process.off('uncaughtExceptionMonitor', crash).off('exit', exit);
    },
  };
}

const endedEarly = (): SvcError =>
  new SvcError('interrupted', 'The process ended before the command was done.', {
    why: 'The configuration, a plugin or a migration file called process.exit(), or waits for something that never happens.',
    state: 'What was done until then remains.',
    next: ['Run it with NODE_OPTIONS=--trace-exit, which prints where process.exit() is called.'],
  });
