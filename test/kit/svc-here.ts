import { start } from '../../cli/start.ts';
import type { CommandResult } from './cli.ts';

/** Runs a command in this process, which is faster than to start one: for tests of what a command does, one at a time. */
export async function svcHere(args: readonly string[], cwd: string): Promise<CommandResult> {
  const printed = { stdout: '', stderr: '' };
  const restore = (['stdout', 'stderr'] as const).map((name) => {
    const { write } = process[name];
    process[name].write = (text: unknown, ...rest: readonly unknown[]): boolean => {
      printed[name] += String(text);
      const written = rest.find((one): one is () => void => typeof one === 'function');
      written?.();
      return true;
    };
    return () => {
      process[name].write = write;
    };
  });
  const before = process.cwd();
  process.chdir(cwd);
  try {
    return { status: await start(args), ...printed };
  } finally {
    process.chdir(before);
    for (const put of restore) put();
  }
}
